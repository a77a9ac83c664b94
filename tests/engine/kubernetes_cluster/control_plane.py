"""Starting and ending the control plane; its programs are those that `python -m tools.setup --tests` leaves."""

from __future__ import annotations

import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubernetes_cluster.api import Api, RefusedError
from kubernetes_cluster.kubelet import Kubelet

REPOSITORY = Path(__file__).resolve().parents[3]
READY_SECONDS = 300.0
P4D = {"cpu": "96", "memory": "1152Gi", "pods": "110", "hugepages-2Mi": "20Gi"}


@dataclass(frozen=True)
class ControlPlane:
    """kubeconfig: a file with the one context `test`, whose user may do everything."""

    folder: Path
    kubeconfig: Path
    api: Api
    kubelet: Kubelet

    def volume(self, storage_class: str, size_gib: int) -> None:
        """A volume that many may mount, for the next claim of its class."""
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": storage_class}}
        self.api.apply({**kind, "provisioner": "kubernetes.io/no-provisioner"})
        spec = {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": f"{size_gib}Gi"},
            "hostPath": {"path": str(self.folder)},
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": storage_class}, "spec": spec}
        self.api.apply(body)

    def node(self, name: str, labels: dict[str, str], resources: dict[str, str]) -> None:
        """A node that kwok plays; what its pods print is what the kubelet is told to say."""
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **labels},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
        }
        self.api.apply(body)
        amounts = {**P4D, **resources}
        status = {
            "allocatable": amounts,
            "capacity": amounts,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.kubelet.port}},
        }
        self.api.apply({**body, "status": status}, part="status")


def programs(of: str = "control-plane") -> Path | None:
    """The folder of the built programs; None where set-up has not built them."""
    told = REPOSITORY / ".gpufleet" / of
    folder = Path(told.read_text().strip()) if told.is_file() else None
    return folder if folder and folder.is_dir() else None


@contextmanager
def running(place: Path) -> Iterator[ControlPlane]:
    """A control plane with the definitions of all custom resources, in a few seconds."""
    built = programs()
    assert built is not None
    place.mkdir(parents=True, exist_ok=True)
    server, client, peer = free_ports(3)
    token, url = secrets.token_hex(16), f"https://127.0.0.1:{server}"
    kubeconfig = _kubeconfig(place, url, token)
    (place / "tokens.csv").write_text(f'{token},admin,1,"system:masters"\n')
    make_key = ["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "", "-f", place / "accounts.key"]
    subprocess.run(make_key, check=True, stdin=subprocess.DEVNULL)
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *options: str) -> None:
        with (place / f"{name}.log").open("wb") as log:
            command = [built / name, *options]
            started.append(subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    store = f"http://127.0.0.1:{client}"
    try:
        start(
            "etcd",
            f"--data-dir={place / 'etcd'}",
            f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        start(
            "kube-apiserver",
            f"--etcd-servers={store}",
            "--bind-address=127.0.0.1",
            f"--secure-port={server}",
            f"--cert-dir={place / 'certificates'}",
            "--service-account-issuer=https://local",
            f"--service-account-key-file={place / 'accounts.key'}",
            f"--service-account-signing-key-file={place / 'accounts.key'}",
            f"--token-auth-file={place / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
        )
        api = Api.of(kubeconfig)
        _wait(api, place / "kube-apiserver.log")
        start(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={place / 'accounts.key'}",
            "--use-service-account-credentials=true",
            "--bind-address=127.0.0.1",
            "--secure-port=0",
            "--leader-elect=false",
            "--node-monitor-grace-period=10m",  # on a busy computer heartbeats come late
        )
        start(
            "kube-scheduler", f"--kubeconfig={kubeconfig}", "--bind-address=127.0.0.1", "--secure-port=0",
            "--leader-elect=false",
        )  # fmt: skip
        for file in sorted((built / "crds").glob("*.yaml")):
            api.define(file.read_bytes())
        _until_served(api)
        with Kubelet.serving(place / "certificates" / "apiserver") as kubelet:
            start(
                "kwok",
                f"--kubeconfig={kubeconfig}",
                "--manage-all-nodes=true",
                f"--config={built / 'stages.yaml'}",
                "--node-ip=127.0.0.1",  # without both, kwok's first word on a node may take its addresses away again
                "--node-name=localhost",
            )
            yield ControlPlane(place, kubeconfig, api, kubelet)
    finally:
        for process in started:
            process.kill()  # nothing of it is kept, and a server that is asked takes its time
            process.wait()


def _kubeconfig(place: Path, url: str, token: str) -> Path:
    """The server's certificate is one that it has made for itself, on loopback."""
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    file = place / "kubeconfig"
    file.write_text(yaml.safe_dump(body))
    return file


def _wait(api: Api, log: Path) -> None:
    limit = time.monotonic() + READY_SECONDS
    while not api.ready():
        assert time.monotonic() < limit, log.read_text()[-2000:]
        time.sleep(0.2)


def _until_served(api: Api) -> None:
    """Definitions are served a moment after they are there."""
    limit = time.monotonic() + READY_SECONDS
    while True:
        try:
            for version, kind in (
                ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
                ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
            ):
                api.path(version, kind, "x", "default")
        except RefusedError:
            assert time.monotonic() < limit, "the definitions are not served"
            time.sleep(0.1)
        else:
            return


def free_ports(count: int) -> list[int]:
    """Of the loopback, so many that nobody listens on."""
    found = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in found]
    for each in found:
        each.close()
    return ports
