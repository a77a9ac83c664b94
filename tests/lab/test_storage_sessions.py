"""Storage sessions on a machine: by them a job's upload and a tenant's reach an S3 server below their own prefixes."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from gpu_machines import GATEWAY, Boot, GpuMachine, Hardware
from moto.server import ThreadedMotoServer
from moto.sts.models import sts_backends
from ssh_hosts import Played, make_key
from test_tenants import tenant

from infra.clouds.local.nodes.site import MACHINE_USER
from infra.handover import Handover, Storage
from ops.jobs import rendezvous, storage_grants
from ops.nodes import ssh

pytestmark = pytest.mark.in_order

MOST_MIB = 50
BUCKET, REGION, ACCOUNT = "stack-data", "us-east-1", "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/storage-role"
HEAD = Hardware(
    model="t4",
    gpu="T4",
    count=0,
    distribution="debian12",
    storage=(Storage(name="data", path="", kind="bucket", source=BUCKET),),
)
METADATA = """
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
class Answers(BaseHTTPRequestHandler):
    def answer(self):
        role = json.dumps({"AccessKeyId": "ASIANODE", "SecretAccessKey": "node", "Token": "node"})
        last = self.path.rpartition("/")[2]
        text = {"token": "token", "": "nodes-role", "nodes-role": role}[last]
        self.send_response(200 if last == "token" or self.headers["X-aws-ec2-metadata-token"] == "token" else 401)
        self.end_headers()
        self.wfile.write(text.encode())
    do_GET = do_PUT = answer
HTTPServer(("169.254.169.254", 80), Answers).serve_forever()
"""
# As training uploads a checkpoint's file, with nothing but what the environment gives.
UPLOAD = """
import hashlib, pathlib, sys, boto3
from training.checkpoint.remote import Remote
file = pathlib.Path.home() / "rank-0"
file.write_bytes(b"weights")
sha256 = hashlib.sha256(b"weights").hexdigest()
remote = Remote(sys.argv[1], sys.argv[2])
remote._send(file, remote._prefix + "rank-0", sha256)
assert remote._recorded(remote._prefix + "rank-0").sha256 == sha256
print(boto3.Session().get_credentials().access_key)
"""
PUT = """
import sys, boto3
session = boto3.Session()
session.client("s3", endpoint_url=sys.argv[1]).put_object(Bucket=sys.argv[2], Key=sys.argv[3], Body=b"x")
print(session.get_credentials().access_key)
"""
ASK = "/usr/bin/python3 -I /usr/local/lib/gpufleet/storage_sessions/credentials.py"


@dataclass
class Cluster:
    node: GpuMachine
    endpoint: str
    keys: dict[str, Path]

    def play(self, *names: str) -> Played:
        tenants = [tenant(name, uid, self.keys[name]) for name, uid in (("ada", 2001), ("ben", 2002)) if name in names]
        return self.node.play(
            handover=self.handover,
            tenants_wanted=tenants,
            storage_sessions_cloud="aws",
            storage_sessions_service=self.endpoint,
            training_package_source=str(Path(__file__).parents[2] / "training"),
        )

    @property
    def handover(self) -> dict[str, Any]:
        return {**self.node.site.handover, "region": REGION, "storage_role": ROLE}

    @property
    def typed_handover(self) -> Handover:
        return Handover.model_validate(self.handover)

    def job(self, program: str, *arguments: str, grant: str = "") -> subprocess.CompletedProcess[str]:
        """A program as `gpufleet train` starts a launcher."""
        before = storage_grants.command(ssh.JOB_LOGIN, "a-1-0000", grant) if grant else ()
        line = rendezvous.python(
            self.typed_handover, self.typed_handover.nodes[0], ["-c", program, *arguments], None, before
        )
        return ssh.run(self.typed_handover, self.typed_handover.nodes[0], line)

    def says(self, login: str) -> str:
        """What the helper of the SDKs says to a login."""
        return self.node.run(f"setpriv --reuid {login} --clear-groups {ASK}", fails=True)

    def logged_in(self, login: str, program: str, *arguments: str) -> str:
        """What a tenant's program prints that is started over SSH."""
        options = ["-F/dev/null", "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-oIdentityAgent=none"]
        options += ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR"]
        line = shlex.join([self.typed_handover.environment.python, "-c", program, *arguments])
        command = ["ssh", *options, f"-i{self.keys[login]}", f"{login}@{self.node.address}", line]
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()


def policy_of(key: str) -> str:
    """The session policy that an access key was asked for with."""
    (assumed,) = (role for role in sts_backends[ACCOUNT]["aws"].assumed_roles if role.access_key_id == key)
    assert assumed.arn.startswith(f"arn:aws:sts::{ACCOUNT}:assumed-role/storage-role/")
    return assumed.policy


def objects(policy: str, action: str) -> list[str]:
    allowed = [one for one in json.loads(policy)["Statement"] if action in [one["Action"], *one["Action"]]]
    return [resource for one in allowed for resource in one["Resource"]]


@pytest.fixture(scope="module")
def cluster(boot: Boot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    keys = {name: make_key(tmp_path_factory.mktemp("keys") / name) for name in ("ada", "ben")}
    with boot(HEAD) as (node,):
        server = ThreadedMotoServer(ip_address=GATEWAY, port=0, verbose=False)
        server.start()
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        boto3.client(
            "s3", endpoint_url=endpoint, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x"
        ).create_bucket(Bucket=BUCKET)
        (node.root / "srv/metadata.py").write_text(METADATA)
        node.run("ip address add 169.254.169.254 dev lo && systemd-run --quiet python3 /srv/metadata.py")
        made = Cluster(node, endpoint, keys)
        played = made.play("ada", "ben")
        assert played.code == 0, played.output
        yield made
        server.stop()


def test_a_second_run_changes_nothing(cluster: Cluster) -> None:
    second = cluster.play("ada", "ben")

    assert (second.code, second.changed) == (0, 0), second.output


def test_a_jobs_upload_arrives_by_a_session_for_its_prefix_alone(cluster: Cluster) -> None:
    upload = f"s3://{BUCKET}/runs/a"
    grant = storage_grants.of_run(cluster.typed_handover, upload)

    answer = cluster.job(UPLOAD, upload, cluster.endpoint, grant=grant)

    assert answer.returncode == 0, answer.stderr
    policy = policy_of(answer.stdout.strip())
    assert objects(policy, "s3:PutObject") == objects(policy, "s3:GetObject") == [f"arn:aws:s3:::{BUCKET}/runs/a/*"]
    kept = cluster.node.run("ls -A /run/gpufleet/storage.d/gpufleet-job")
    assert kept == ""


def test_a_job_without_a_grant_and_one_whose_run_is_over_get_nothing(cluster: Cluster) -> None:
    answer = cluster.job(UPLOAD, f"s3://{BUCKET}/runs/a", cluster.endpoint)

    assert answer.returncode != 0
    assert "no storage is granted to gpufleet-job" in answer.stderr


def test_a_tenant_who_logs_in_reaches_its_own_prefix_without_any_keys(cluster: Cluster) -> None:
    keys = {
        name: cluster.logged_in(name, PUT, cluster.endpoint, BUCKET, f"tenants/{name}/x") for name in ("ada", "ben")
    }

    for name, session in keys.items():
        policy = policy_of(session)
        for action in ("s3:PutObject", "s3:GetObject", "s3:DeleteObject"):
            assert objects(policy, action) == [f"arn:aws:s3:::{BUCKET}/tenants/{name}/*"]
        (listed,) = (one for one in json.loads(policy)["Statement"] if one["Action"] == "s3:ListBucket")
        assert listed["Condition"] == {"StringLike": {"s3:prefix": f"tenants/{name}/*"}}


def test_other_logins_get_nothing_and_nobody_but_root_reads_or_writes_the_table(cluster: Cluster) -> None:
    for login in ("nobody", MACHINE_USER):
        assert cluster.says(login) == f"no storage is granted to {login}"
    files = "/etc/gpufleet/storage.d/ben.json /etc/gpufleet/storage_sessions.json"
    for attack in (f"cat {files}", f"tee {files}", "ls /etc/gpufleet/storage.d", "ls /run/gpufleet/storage.d"):
        said = cluster.node.run(f"setpriv --reuid ada --clear-groups {attack} < /dev/null", fails=True)
        assert "Permission denied" in said


def test_strangers_leave_the_service_alive_and_small(cluster: Cluster) -> None:
    flood = """
import socket
held = [socket.socket(socket.AF_UNIX) for _ in range(200)]
for each in held:
    each.connect("/run/gpufleet/storage.sock")
"""
    (cluster.node.root / "srv/flood.py").write_text(flood)
    cluster.node.run("setpriv --reuid nobody --clear-groups python3 /srv/flood.py")

    answer = json.loads(cluster.says("ada"))
    line = "grep VmHWM /proc/$(systemctl show --value --property MainPID gpufleet-storage.service)/status"
    mib = int(cluster.node.run(line).split()[1]) / 1024

    assert answer["AccessKeyId"]
    assert mib < MOST_MIB
    print(f"after 200 strangers: {mib:.1f} MiB")


def test_the_socket_is_there_after_a_boot_and_the_service_has_no_rights_of_root(cluster: Cluster) -> None:
    shown = cluster.node.run(
        "systemctl is-enabled gpufleet-storage.socket; "
        'grep -E "CapEff|NoNewPrivs" /proc/$(systemctl show --value --property MainPID gpufleet-storage.service)/status'
    )

    assert shown.split() == ["enabled", "CapEff:", "0000000000000000", "NoNewPrivs:", "1"]


def test_a_tenant_who_is_listed_no_longer_gets_nothing(cluster: Cluster) -> None:
    played = cluster.play("ada")

    assert played.code == 0, played.output
    assert cluster.says("ben") == "no storage is granted to ben"
    assert "AccessKeyId" in cluster.says("ada")
