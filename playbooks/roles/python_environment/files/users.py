"""Run on a node: prints which processes run from environments, as JSON {folder: [pid]}; one without any is left out.

Arguments: FOLDER…. Who runs from one has a library of it in its memory, as all do that have imported torch, on GPUs or
without; others cannot be told from users of the interpreter that the environment was made with.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path


def users(folder):
    inside = f" {Path(folder).resolve()}/".encode()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):  # it has ended meanwhile, or is another login's
            if inside in maps.read_bytes():
                yield int(maps.parent.name)


processes = {folder: sorted(users(folder)) for folder in sys.argv[1:]}
print(json.dumps({folder: pids for folder, pids in processes.items() if pids}))
