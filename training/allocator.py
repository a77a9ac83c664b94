"""glibc's allocator settings for training on a CPU.

By default glibc gives much of the memory that a step frees back to the system, which clears the same pages for the next
step (mallopt(3), M_TRIM_THRESHOLD and M_MMAP_THRESHOLD).
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
