"""The service that gives each login of a node its own storage session: real processes of other logins at its socket,
against a metadata service and an STS that check signatures."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_aws import REGION, FakeAws, serving
from storage_service import ADA, AS_SYSTEMD, BEN, FILES, JOB, PYTHON, ROLE, STRANGER, Service, asked, content, reach

MOST_MIB = 50

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes as other logins")


@pytest.fixture
def aws() -> Iterator[FakeAws]:
    with serving() as fake:
        yield fake


@pytest.fixture
def service(aws: FakeAws) -> Iterator[Service]:
    folder = Path(tempfile.mkdtemp(prefix="gpufleet-storage-"))
    folder.chmod(0o755)
    settings = {
        "cloud": "aws",
        "role": ROLE,
        "region": REGION,
        "node": "gpu-1",
        "metadata": aws.address,
        "sts": aws.address,
    }
    for name in ("lasting", "running"):
        (folder / name).mkdir()
        settings[name] = str(folder / name)
    settings_file = folder / "settings.json"
    settings_file.write_text(json.dumps(settings))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "storage.sock"))
        (folder / "storage.sock").chmod(0o666)
        listener.listen(256)
        process = subprocess.Popen(
            [PYTHON, "-c", AS_SYSTEMD, str(listener.fileno()), PYTHON, "-E", "-s", FILES / "service.py", settings_file],
            env={"LISTEN_FDS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
        )
        started = Service(folder, process)
        try:
            yield started
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(folder)


def test_a_tenant_gets_a_session_for_its_own_prefix_and_no_other(service: Service, aws: FakeAws) -> None:
    service.grant(ADA, ("data", "tenants/ada/", "write"), ("more", "tenants/ada/", "write"))
    service.grant(BEN, ("data", "tenants/ben/", "write"))

    ada, ben = asked(service, ADA), asked(service, BEN)

    assert set(ada) == {"Version", "AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}, ada
    policy = aws.policy_of(ada["AccessKeyId"])
    own = ["arn:aws:s3:::data/tenants/ada/*", "arn:aws:s3:::more/tenants/ada/*"]
    assert [reach(policy, f"s3:{verb}Object") for verb in ("Get", "Put", "Delete")] == [own, own, own]
    (listed,) = (one for one in policy["Statement"] if one["Action"] == "s3:ListBucket")
    assert listed["Condition"] == {"StringLike": {"s3:prefix": "tenants/ada/*"}}
    assert reach(policy, "s3:ListBucketMultipartUploads") == []
    assert "ada" not in json.dumps(aws.policy_of(ben["AccessKeyId"]))
    assert [form["RoleSessionName"] for form in aws.assumed] == [f"{ADA}@gpu-1", f"{BEN}@gpu-1"]
    assert {(form["RoleArn"], form["DurationSeconds"]) for form in aws.assumed} == {(ROLE, "3600")}


def test_who_may_read_alone_changes_nothing(service: Service, aws: FakeAws) -> None:
    service.grant(ADA, ("data", "sets/", "read"))

    policy = aws.policy_of(asked(service, ADA)["AccessKeyId"])

    assert reach(policy, "s3:GetObject") == ["arn:aws:s3:::data/sets/*"]
    assert not {"s3:PutObject", "s3:DeleteObject"} & {action for one in policy["Statement"] for action in one["Action"]}


def test_another_login_gets_nothing(service: Service, aws: FakeAws) -> None:
    service.grant(ADA, ("data", "tenants/ada/", "write"))

    assert asked(service, STRANGER) == {"error": f"no storage is granted to {STRANGER}"}
    assert aws.assumed == []


def test_what_a_login_sends_changes_nothing_of_what_it_gets(service: Service, aws: FakeAws) -> None:
    service.grant(ADA, ("data", "tenants/ada/", "write"))
    forged = """
import json, socket, sys
for said in (b'{"login": "daemon"}', b"GET /daemon", b"x" * 100000):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        s.connect(sys.argv[1])
        try:
            s.send(said, socket.MSG_DONTWAIT)
            print(s.recv(65536).decode())
        except OSError:
            print("{}")
"""
    about = pwd.getpwnam(STRANGER)
    said = subprocess.run(
        [PYTHON, "-I", "-c", forged, service.socket],
        user=about.pw_uid,
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )

    answers = [json.loads(line) for line in said.stdout.splitlines() if line]
    assert len(answers) == 3
    assert all(answer in ({}, {"error": f"no storage is granted to {STRANGER}"}) for answer in answers)
    assert aws.assumed == []


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (content(("data", "*", "write")), 0o600),
        (content(("data", "", "write")), 0o600),
        (content(("data", "tenants/../", "read")), 0o600),
        (content(("data", "${aws:username}/", "read")), 0o600),
        (content(("data", "tenants/ada", "read")), 0o600),
        (content(("da*", "tenants/ada/", "read")), 0o600),
        (content(("data", "tenants/ada/", "all")), 0o600),
        (content(("data", "tenants/ada/", "write")), 0o622),
        ("[]", 0o600),
        ("{", 0o600),
    ],
)
def test_a_grant_that_is_none_gives_nothing(service: Service, aws: FakeAws, text: str, mode: int) -> None:
    service.grant(ADA, text=text, mode=mode)

    assert set(asked(service, ADA)) == {"error"}
    assert aws.assumed == []


def test_a_grant_that_a_login_owns_or_links_to_gives_nothing(service: Service, aws: FakeAws) -> None:
    file = service.grant(ADA, ("data", "tenants/ada/", "write"))
    (service.folder / "lasting" / f"{BEN}.json").symlink_to(file)
    linked = asked(service, BEN)
    os.chown(file, pwd.getpwnam(ADA).pw_uid, -1)

    assert "cannot be read as a grant" in linked["error"]
    assert "is not a file that root alone writes" in asked(service, ADA)["error"]
    assert aws.assumed == []


def test_a_run_has_its_own_places_for_as_long_as_its_file_is_locked(service: Service, aws: FakeAws) -> None:
    folder = service.folder / "running" / JOB
    folder.mkdir()
    files = []
    for name in ("run-a", "run-b"):
        (folder / f"{name}.json").write_text(content(("data", f"runs/{name}/", "upload")))
        files.append((folder / f"{name}.json").open())
        fcntl.flock(files[-1], fcntl.LOCK_EX)

    both = aws.policy_of(asked(service, JOB)["AccessKeyId"])
    files[0].close()
    one = aws.policy_of(asked(service, JOB)["AccessKeyId"])
    files[1].close()

    own = [f"arn:aws:s3:::data/runs/{name}/*" for name in ("run-a", "run-b")]
    assert reach(both, "s3:PutObject") == own
    assert reach(one, "s3:PutObject") == own[1:]
    assert reach(one, "s3:ListBucketMultipartUploads") == ["arn:aws:s3:::data"]
    assert asked(service, JOB) == {"error": f"no storage is granted to {JOB}"}


def test_a_session_is_asked_for_once_and_again_when_half_of_its_time_is_over(service: Service, aws: FakeAws) -> None:
    service.grant(ADA, ("data", "tenants/ada/", "write"))
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: asked(service, ADA), range(16)))
    aws.session_seconds = 1700
    service.grant(BEN, ("data", "tenants/ben/", "write"))
    late = [asked(service, BEN)["AccessKeyId"] for _ in range(2)]

    assert {answer["AccessKeyId"] for answer in answers} == {"ASIASESSION1"}
    assert late == ["ASIASESSION2", "ASIASESSION3"]


def test_a_cloud_that_refuses_is_named_and_not_asked_for_every_connection(service: Service, aws: FakeAws) -> None:
    aws.denies = "AccessDenied"
    service.grant(ADA, ("data", "tenants/ada/", "write"))

    said = {asked(service, ADA)["error"] for _ in range(5)}

    assert said == {f"no session for {ADA}: {aws.address.removeprefix('http://')} answers 403 AccessDenied"}
    assert aws.refused == 1


def test_more_places_than_a_session_policy_takes_are_named(service: Service) -> None:
    service.grant(ADA, *((f"bucket-{number}", "tenants/ada/", "write") for number in range(40)))

    assert "40 places make a session policy of" in asked(service, ADA)["error"]


def test_strangers_and_a_slow_cloud_keep_nobody_from_a_session(service: Service, aws: FakeAws) -> None:
    """200 connections of a stranger that stay open, and a login whose session does not come."""
    service.grant(ADA, ("data", "tenants/ada/", "write"))
    assert "AccessKeyId" in asked(service, ADA)
    strangers = []
    for _ in range(200):
        strangers.append(socket.socket(socket.AF_UNIX))
        strangers[-1].connect(str(service.socket))
    aws.pause.clear()
    service.grant(BEN, ("data", "tenants/ben/", "write"))
    slow = threading.Thread(target=asked, args=(service, BEN))
    slow.start()

    began = time.monotonic()
    answer = asked(service, ADA)
    seconds = time.monotonic() - began
    aws.pause.set()
    slow.join()

    assert answer["AccessKeyId"] == "ASIASESSION1"
    assert seconds < 2
    assert service.process.poll() is None
    assert service.mib() < MOST_MIB
    print(f"200 strangers: a session in {seconds:.2f} s, {service.mib():.1f} MiB")
    for stranger in strangers:
        stranger.close()


def test_no_secret_stands_in_arguments_environment_or_log(service: Service) -> None:
    service.grant(ADA, ("data", "tenants/ada/", "write"))
    secret = asked(service, ADA)["SecretAccessKey"]

    shown = [Path(f"/proc/{service.process.pid}/{name}").read_text() for name in ("cmdline", "environ")]
    service.process.send_signal(signal.SIGTERM)
    assert service.process.stderr
    log = service.process.stderr.read().decode()

    assert secret
    assert secret not in "".join([*shown, log])
