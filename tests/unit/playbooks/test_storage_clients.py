"""What SDKs read on a node: a job's upload reaches its cloud's store by the login's session, with no keys and no words
of its own."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from jinja2 import Environment

from training.checkpoint.remote import Remote

VARS = Path(__file__).parents[3] / "playbooks/roles/storage_sessions/vars/main.yml"
SESSION = {
    "Version": 1,
    "AccessKeyId": "STS.A",
    "SecretAccessKey": "secret",
    "SessionToken": "token of the session",
    "Expiration": "2999-01-01T00:00:00Z",
}


def rendered(cloud: str, region: str) -> tuple[dict[str, str], str]:
    """The role's facts of a cloud, and the config file of SDKs, as Ansible makes them."""
    said = yaml.safe_load(VARS.read_text())
    # Ansible's own test of this name
    environment = Environment(keep_trailing_newline=True)
    environment.tests["match"] = lambda text, start: text.startswith(start)
    known: dict[str, Any] = {"storage_sessions_region": region, "storage_sessions_cloud": cloud}
    facts = {
        key: environment.from_string(text).render(known) for key, text in said["storage_sessions_clouds"][cloud].items()
    }
    (config,) = [each for each in said["storage_sessions_plain"] if each["path"] == "/etc/gpufleet/aws/config"]
    known |= {"storage_sessions_clouds": {cloud: facts}, "storage_sessions_folder": said["storage_sessions_folder"]}
    return facts, environment.from_string(config["content"]).render(known)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests that an S3 client would send; none leaves."""
    requests: list[Any] = []
    make = boto3.client

    def recorded(*arguments: Any, **options: Any) -> Any:
        client = make(*arguments, **options)

        def stop(request: Any, **_: Any) -> None:
            requests.append(request)
            raise OSError("nothing is sent")

        client.meta.events.register("before-send.s3", stop)
        return client

    monkeypatch.setattr(boto3, "client", recorded)
    return requests


def upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cloud: str, region: str) -> None:
    _, config = rendered(cloud, region)
    helper = "/usr/bin/python3 -I /usr/local/lib/gpufleet/storage_sessions/credentials.py"
    assert helper in config
    session = tmp_path / "session.json"
    session.write_text(json.dumps(SESSION))
    program = f"{sys.executable} -I -c \"print(open('{session}').read())\""
    (tmp_path / "config").write_text(config.replace(helper, program))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with pytest.raises(Exception, match="nothing is sent"):
        Remote("s3://stack-data/runs/a", None)._recorded("runs/a/rank-0")  # pyright: ignore[reportPrivateUsage]


def said(request: Any, header: str) -> str:
    value = request.headers[header]
    return value.decode() if isinstance(value, bytes) else value


def today() -> str:
    return time.strftime("%Y%m%d", time.gmtime())


def test_an_upload_on_alibaba_cloud_reaches_oss_in_the_network_by_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: list[Any]
) -> None:
    upload(tmp_path, monkeypatch, "alicloud", "cn-beijing")

    assert sent[0].url.startswith("https://stack-data.s3.oss-cn-beijing-internal.aliyuncs.com/?")
    assert f"Credential=STS.A/{today()}/cn-beijing/s3/" in said(sent[0], "Authorization")
    assert said(sent[0], "x-amz-security-token") == SESSION["SessionToken"]


def test_what_a_tenants_own_program_sends_to_oss_is_not_chunked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: list[Any]
) -> None:
    upload(tmp_path, monkeypatch, "alicloud", "cn-beijing")

    with pytest.raises(Exception, match="nothing is sent"):
        boto3.client("s3").put_object(Bucket="stack-data", Key="tenants/ada/a", Body=b"x")

    assert said(sent[-1], "x-amz-content-sha256") == hashlib.sha256(b"x").hexdigest()
    assert {"Content-Encoding", "Transfer-Encoding", "x-amz-trailer"} & set(sent[-1].headers) == set()


def test_an_upload_on_aws_reaches_s3_by_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: list[Any]
) -> None:
    upload(tmp_path, monkeypatch, "aws", "us-east-1")

    assert sent[0].url.startswith("https://stack-data.s3.amazonaws.com/?")


@pytest.mark.parametrize(
    ("cloud", "region", "metadata", "service"),
    [
        ("aws", "us-east-1", "http://169.254.169.254", "sts.us-east-1.amazonaws.com"),
        ("aws", "cn-north-1", "http://169.254.169.254", "sts.cn-north-1.amazonaws.com.cn"),
        ("alicloud", "cn-beijing", "http://100.100.100.200", "sts-vpc.cn-beijing.aliyuncs.com"),
    ],
)
def test_metadata_and_sts_are_those_of_the_cloud_within_its_network(
    cloud: str, region: str, metadata: str, service: str
) -> None:
    facts, _ = rendered(cloud, region)

    assert (facts["metadata"], facts["service"]) == (metadata, service)


def test_every_cloud_of_the_role_has_its_program() -> None:
    clouds = yaml.safe_load(VARS.read_text())["storage_sessions_clouds"]
    specs = yaml.safe_load((VARS.parents[1] / "meta/argument_specs.yml").read_text())

    assert set(clouds) == set(specs["argument_specs"]["main"]["options"]["storage_sessions_cloud"]["choices"])
    assert all((VARS.parents[1] / "files" / f"{cloud}.py").is_file() for cloud in clouds)
