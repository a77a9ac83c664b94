"""The C library's allocator, where a CPU trains.

Of its own accord glibc gives the memory that a step frees back to the system, and the system clears the same pages
again in the next step: tens of thousands of page faults a step of ResNet-50. PyTorch's own tuning guide has users load
another allocator for it; telling this one to keep its memory does as much.
"""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
MOST = 2**31 - 1  # bytes: what an int holds


def keep_freed_memory() -> None:
    """What is freed stays with the process, for its next allocation; nothing where the C library has no such switch."""
    switch = getattr(ctypes.CDLL(None), "mallopt", None)
    if switch is not None:
        switch(M_TRIM_THRESHOLD, MOST)
        switch(M_MMAP_THRESHOLD, MOST)
