"""Run on a node as root: writes who may do what in buckets, and prints the files that were not so, one a line.

Arguments: place | look, which only prints, and FOLDER, `lasting` of `grants`. Standard input: {"tenants","buckets"},
the logins of tenants and the names of buckets; null for tenants leaves them as they are. Each tenant may read, write
and remove below tenants/LOGIN/ of every bucket; the file of a login that is not listed goes.
"""

import json
import os
import sys
from pathlib import Path


def grant(login, buckets):
    places = [{"bucket": bucket, "prefix": f"tenants/{login}/", "mode": "write"} for bucket in buckets]
    return json.dumps({"places": places}, indent=1) + "\n"


def is_right(file, text):
    about = file.lstat() if os.path.lexists(file) else None
    return about is not None and about.st_mode == 0o100600 and about.st_uid == os.geteuid() and file.read_text() == text


def put(file, text):
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    fresh.replace(file)


def main(verb, folder, access):
    if access["tenants"] is None:
        return
    files = {folder / f"{login}.json": grant(login, access["buckets"]) for login in access["tenants"]}
    there = folder.iterdir() if folder.is_dir() else ()
    stale = sorted(file for file in there if file not in files)
    changed = [file for file, text in files.items() if not is_right(file, text)]
    print("\n".join(map(str, [*changed, *stale])))
    if verb == "place":
        for file in stale:
            file.unlink()
        for file in changed:
            put(file, files[file])


main(sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin))
