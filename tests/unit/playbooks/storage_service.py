"""A running storage session service, and what a login on its node receives from it."""

from __future__ import annotations

import json
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = Path(__file__).parents[3] / "playbooks/roles/storage_sessions/files"
ROLE = "arn:aws:iam::123456789012:role/storage-role"
ADA, BEN, JOB, STRANGER = "daemon", "bin", "games", "nobody"  # logins that every distribution has
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
AS_SYSTEMD = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.execv(sys.argv[2], sys.argv[2:])"


@dataclass
class Service:
    """A running one. folder: readable by all logins."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def socket(self) -> Path:
        return self.folder / "storage.sock"

    def grant(self, login: str, *places: tuple[str, str, str], text: str | None = None, mode: int = 0o600) -> Path:
        file = self.folder / "lasting" / f"{login}.json"
        file.write_text(content(*places) if text is None else text)
        file.chmod(mode)
        return file

    def mib(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def content(*places: tuple[str, str, str]) -> str:
    return json.dumps({"places": [dict(zip(("bucket", "prefix", "mode"), place, strict=True)) for place in places]})


def asked(service: Service, login: str) -> dict[str, Any]:
    """What the helper of the SDKs prints as a login, or {"error": what it says instead}."""
    about = pwd.getpwnam(login)
    program = (FILES / "credentials.py").read_text()
    answer = subprocess.run(
        [PYTHON, "-I", "-", service.socket],
        input=program,
        user=about.pw_uid,
        group=about.pw_gid,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(answer.stdout) if answer.returncode == 0 else {"error": answer.stderr.strip()}


def reach(policy: dict[str, Any], action: str) -> list[str]:
    """The resources that a session policy allows an action on."""
    allowed = [one for one in policy["Statement"] if action in [one["Action"], *one["Action"]]]
    return [resource for one in allowed for resource in one["Resource"]]
