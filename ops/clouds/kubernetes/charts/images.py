"""The images that a chart's objects name, where helm is there to render it.

What is rendered is the archive whose digest was checked, with the values of the plan, by a helm without a cluster,
plug-ins or repositories of its own. Source: Helm, "helm template".
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ops.engine import processes

HELM = "helm"
SECONDS, MOST_BYTES = 120, 64 * 2**20
IMAGE = re.compile(r"""^\s*(?:-\s+)?["']?image["']?:\s*["']?([\w][\w./:@+-]*)["']?\s*(?:#.*)?$""", re.MULTILINE)


def named(archive: bytes, name: str, values: Mapping[str, Any]) -> list[str] | None:
    """Sorted; None where there is no helm, or helm does not render the chart. Custom resources may name images under
    other keys, which are not listed."""
    helm = shutil.which(HELM)
    if helm is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        chart, given = Path(folder) / "chart.tgz", Path(folder) / "values.json"
        chart.write_bytes(archive)
        given.write_text(json.dumps(dict(values)))
        command = [helm, "template", name, str(chart), "--values", str(given), "--include-crds=false"]
        alone = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "KUBECONFIG": os.devnull}
        with (Path(folder) / "rendered").open("wb+") as rendered:
            try:
                code = processes.written(command, rendered, env=alone, seconds=SECONDS)
            except OSError:
                return None
            rendered.seek(0)
            text = rendered.read(MOST_BYTES).decode(errors="replace")
    return sorted(set(IMAGE.findall(text))) if code == 0 else None
