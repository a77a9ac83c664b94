"""Cuts SSH on a lab machine in the middle of Ansible's N-th task there: killed, not asked. Arguments: N USER.

Every task of a play is one sudo. So for so many of them another program stands before sudo in the login's PATH, counts
them, and takes itself away with the last, which is not over before the cut, however short it is.
"""

import sys
from pathlib import Path

BEFORE_SUDO = Path("/usr/local/bin/sudo")
COUNTS = """#!/bin/sh
real=/usr/bin/sudo
count=$(($($real cat {count} 2> /dev/null || echo 0) + 1))
echo $count | $real tee {count} > /dev/null
if [ $count = {number} ]; then
    $real rm {program} {count}
    (sleep 0.1; $real pkill -KILL -f '^sshd: {login}') > /dev/null 2>&1 < /dev/null &
    $real "$@"
    wait
    exit
fi
exec $real "$@"
"""

if __name__ == "__main__":
    filled = COUNTS.format(program=BEFORE_SUDO, count="/run/standin/cut", number=int(sys.argv[1]), login=sys.argv[2])
    BEFORE_SUDO.write_text(filled)
    BEFORE_SUDO.chmod(0o755)
