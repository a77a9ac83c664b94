"""Run on a node: prints its memory and free disk space in GiB, and its own firewalls, as JSON.

Arguments: FOLDER, look | begin.

begin: the node is about to be changed, so what an earlier run proved of it no longer holds until `verify` says so. And
root takes FOLDER back, where an earlier version gave it to the login of jobs: root writes there, never through a link.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

GIB = 1024**3


def firewalls():
    """Those that filter. ufw's unit is active with every boot, and whether it filters its settings say."""
    daemon = ("systemctl", "is-active", "--quiet", "firewalld")
    if shutil.which("systemctl") and subprocess.run(daemon, check=False).returncode == 0:
        yield "firewalld"
    settings = Path("/etc/ufw/ufw.conf")
    if settings.exists() and "ENABLED=yes" in settings.read_text().split():
        yield "ufw"


folder, purpose = Path(sys.argv[1]), sys.argv[2]
ready = folder / "ready.json"
if purpose == "begin" and folder.is_dir() and os.geteuid() == 0:
    os.chown(folder, 0, 0)
    folder.chmod(0o755)
if purpose == "begin" and os.path.lexists(ready):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    check = {"name": "configured", "ok": False, "detail": "gpu_node.yml has not finished on it"}
    fresh = ready.with_suffix(".new")
    try:
        fresh.unlink(missing_ok=True)
        with fresh.open("x") as out:
            out.write(json.dumps({"ready": False, "checks": [check], "time": now}) + "\n")
        fresh.replace(ready)
    except OSError:  # a full disk takes no word, and a node that gives none is not ready
        ready.unlink()

disk = next(above for above in (folder, *folder.parents) if above.exists())
space = os.statvfs(disk)
memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
print(
    json.dumps(
        {
            "memory_gib": round(memory / GIB, 2),
            "disk_gib": round(space.f_bavail * space.f_frsize / GIB, 2),
            "disk": str(disk),
            "firewalls": list(firewalls()),
        }
    )
)
