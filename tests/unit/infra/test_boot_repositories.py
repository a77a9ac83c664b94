"""A node that starts while repositories are down asks them again, and never lets apt do so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from infra.clouds.alicloud.resources.nodes import user_data as alicloud
from infra.clouds.aws.resources.nodes import user_data as aws

# Down for the first two times that the lists are read; each call is a line in a file.
APT_GET = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in *update) [ "$(grep -c update "$CALLS")" -gt 2 ] ;; esac
"""


@pytest.mark.parametrize("script", [aws.SCRIPT, alicloud.SCRIPT], ids=["aws", "alicloud"])
def test_lists_are_read_again_by_the_script_and_not_by_apt(tmp_path: Path, script: str) -> None:
    for name, text in {"apt-get": APT_GET, "sleep": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    packages = script.partition("install -d -m")[0].replace("/var/log", str(tmp_path))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")}

    subprocess.run(["bash"], input=packages, text=True, env=environment, check=True)

    *updates, install = (tmp_path / "calls").read_text().splitlines()
    assert len(updates) == 3
    assert all("Acquire::Retries=0" in each for each in updates)
    assert "install python3" in install
