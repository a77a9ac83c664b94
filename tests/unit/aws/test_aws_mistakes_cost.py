"""A malformed stack file costs less than a second, and asks nobody: neither the engine nor AWS."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import pytest
from clusters import Project
from malformed import CASES, expected, stack_file

from infra.spec import SpecError

SAMPLE = ("unknown instance type", "admins that are nobody", "budgets")
COMMAND = """
import json, runpy, sys
try:
    runpy.run_module("ops", run_name="__main__")
finally:
    print(json.dumps([name for name in sys.modules if name.partition(".")[0] in ("pulumi", "pulumi_aws", "boto3")]))
"""


@pytest.mark.parametrize("title", SAMPLE)
def test_gpufleet_plan_answers_and_asks_nobody(aws: Project, title: str) -> None:
    with pytest.raises(SpecError) as caught:
        aws.load(stack_file(CASES[title]))

    _, answer = asked(aws)

    assert answer.returncode == 2
    assert answer.stderr.splitlines() == str(caught.value).splitlines()
    assert len(answer.stderr.splitlines()) == len(expected(CASES[title]))
    assert json.loads(answer.stdout) == []
    assert not (aws.root / ".gpufleet").exists()


@pytest.mark.drill  # of an idle computer
@pytest.mark.parametrize("title", SAMPLE)
def test_gpufleet_plan_answers_in_less_than_a_second(aws: Project, title: str) -> None:
    with pytest.raises(SpecError):
        aws.load(stack_file(CASES[title]))

    assert min(asked(aws)[0] for _ in range(3)) < 1


@pytest.mark.drill
def test_reading_any_of_them_takes_a_small_part_of_a_second(aws: Project) -> None:
    slowest = 0.0
    for text in CASES.values():
        began = time.process_time()
        with pytest.raises(SpecError):
            aws.load(stack_file(text))
        slowest = max(slowest, time.process_time() - began)

    assert slowest < 0.2


def asked(project: Project) -> tuple[float, subprocess.CompletedProcess[str]]:
    """What `gpufleet plan x` answers, and its seconds of processor time, of which a wait is no part."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", COMMAND, "plan", "x"]
    answer = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, answer
