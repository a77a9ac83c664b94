"""Another apt at work on a lab machine, as at its first boot: holds apt's locks for a while. SECONDS FILE …"""

import fcntl
import os
import sys
import time

if __name__ == "__main__":
    seconds, *files = sys.argv[1:]
    for file in files:
        fcntl.lockf(os.open(file, os.O_WRONLY | os.O_CREAT), fcntl.LOCK_EX)
    time.sleep(float(seconds))
