"""Another apt at work on a lab machine, as at its first boot: holds its locks until somebody asks, and a while longer.

SECONDS FILE …
"""

import ctypes
import fcntl
import os
import sys
import time

IN_OPEN = 0x20  # inotify(7)

if __name__ == "__main__":
    seconds, *files = sys.argv[1:]
    for file in files:
        fcntl.lockf(os.open(file, os.O_WRONLY | os.O_CREAT), fcntl.LOCK_EX)
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init()
    for file in files:
        libc.inotify_add_watch(watch, file.encode(), IN_OPEN)
    os.read(watch, 4096)
    time.sleep(float(seconds))
