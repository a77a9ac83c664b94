"""Memory that a step frees is the next step's."""

from __future__ import annotations

import subprocess
import sys

import pytest

STEPS = """
import resource
import torch
from training.allocator import keep_freed_memory

def step():
    blocks = [torch.ones(2_000_000) for _ in range(20)]  # 8 MB each

keep_freed_memory()
for _ in range(4):  # until the blocks have found their places
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it is glibc's switch")
def test_a_step_has_no_page_faults_for_memory_that_the_one_before_freed():
    assert int(subprocess.check_output([sys.executable, "-c", STEPS])) < 100
