"""The real controllers of Kubeflow Trainer and JobSet beside a control plane, with their admission webhooks."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from kubernetes_cluster.control_plane import ControlPlane, free_ports, programs

GROUPS = {"jobset": "config.jobset.x-k8s.io", "trainer": "config.trainer.kubeflow.org"}
CERTIFICATES = {"jobset": "internalCertManagement", "trainer": "certManagement"}


@contextmanager
def running(cluster: ControlPlane) -> Iterator[None]:
    """Both controllers, as processes of this computer that the API server reaches by URL."""
    built = programs("controllers")
    assert built is not None
    pair = cluster.folder / "k8s-webhook-server" / "serving-certs"  # where both look for it, below TMPDIR
    pair.mkdir(parents=True)
    for suffix in ("crt", "key"):  # the API server's own, which is for 127.0.0.1 too
        shutil.copy(cluster.folder / "certificates" / f"apiserver.{suffix}", pair / f"tls.{suffix}")
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name in GROUPS:
            webhook, health = free_ports(2)
            started.append(_start(cluster, built, name, webhook, health))
            _wait(health, started[-1], cluster.folder / f"{name}.log")
            for body in _webhooks(built / f"{name}-webhooks.yaml", name, webhook, pair / "tls.crt"):
                cluster.api.apply(body)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def _start(cluster: ControlPlane, built: Path, name: str, webhook: int, health: int) -> subprocess.Popen[bytes]:
    """As the project's own manifests configure it, but for what needs a cluster around it."""
    config = {
        "apiVersion": f"{GROUPS[name]}/v1alpha1",
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": webhook},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        CERTIFICATES[name]: {"enable": False},
    }
    file = cluster.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(config))
    with (cluster.folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [built / name, f"--config={file}", f"--kubeconfig={cluster.kubeconfig}"],
            env={**os.environ, "TMPDIR": str(cluster.folder)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _webhooks(file: Path, name: str, port: int, authority: Path) -> Iterator[dict[str, Any]]:
    """The project's own, reached by URL in place of a service of the cluster."""
    bundle = b64encode(authority.read_bytes()).decode()
    for body in yaml.safe_load_all(file.read_text()):
        body["metadata"]["name"] = f"{name}-{body['metadata']['name']}"
        for webhook in body["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
        yield body


def _wait(health: int, process: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{health}/readyz", timeout=5).close()
        except OSError:
            assert process.poll() is None, log.read_text()[-2000:]
            time.sleep(0.2)
        else:
            return
