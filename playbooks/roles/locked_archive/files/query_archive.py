"""Run on a node: prints what is not as the lock says, one a line. Arguments: FILE LINE PATTERN…

FILE must have the LINE, and every PATTERN must be met by a path that exists.
"""

import sys
from pathlib import Path

file, line, *patterns = sys.argv[1:]
proof = Path(file)
if not proof.is_file() or line not in proof.read_text().splitlines():
    print(file)
for pattern in patterns:
    if not any(Path("/").glob(pattern.lstrip("/"))):
        print(pattern)
