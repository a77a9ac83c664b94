"""The HTTP front: the SDK's own signed requests on the loopback, answered from the cloud's file.

Source: the reference of each API ("Request parameters", "Response parameters"); the protocol is version 3 of request
signatures (Alibaba Cloud SDK, "Request syntax and signature method V3"), of which the presence is checked.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from cloud_provider.kinds import RefusedError
from cloud_provider.store import Row, Store

from alicloud_cloud.kinds import (
    ASSURANCE,
    CONFIGURATION,
    DEPLOYMENT_SET,
    HPC,
    INSTANCE,
    KEY,
    KINDS,
    MIX,
    RULE,
    SNAT,
    hostname,
)

Asked = Mapping[str, str]
Answer = dict[str, Any]


class Front(ThreadingHTTPServer):
    """Serves one cloud until it is shut down. url: for GPUFLEET_ALICLOUD_ENDPOINT."""

    daemon_threads = True

    def __init__(self, file: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.store = Store(file)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Request(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        store, action = cast(Front, self.server).store, self.headers["x-acs-action"]
        assert self.headers["Authorization"].startswith("ACS3-HMAC-SHA256 Credential=")
        store.called(action, "")
        asked = dict(parse_qsl(urlsplit(self.path).query))
        try:
            if action not in ANSWERS:
                raise RefusedError("InvalidAction.NotFound", f"the stand-in cloud does not answer {action}")
            self._send(200, ANSWERS[action](store, asked))
        except RefusedError as refused:
            self._send(400, {"Code": refused.code, "Message": refused.message})

    def _send(self, status: int, told: Answer) -> None:
        body = json.dumps({**told, "RequestId": "0"}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json;charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing: a test's output is its own."""


def _tagged(store: Store, asked: Asked) -> Answer:
    wanted = json.loads(asked["Tags"]).items()
    found = [row for row in store.rows() if row.arn and wanted <= row.tags.items()]
    return {"TagResources": [{"ResourceARN": row.arn, "Tags": _pairs(row, "Key", "Value")} for row in found]}


def _instances(store: Store, asked: Asked) -> Answer:
    return {"Instances": {"Instance": [_instance(store, row) for row in _with_tags(store, INSTANCE, asked)]}}


def _with_tags(store: Store, type_: str, asked: Asked) -> list[Row]:
    wanted = {asked[f"Tag.{n}.Key"]: asked[f"Tag.{n}.Value"] for n in range(1, 9) if f"Tag.{n}.Key" in asked}
    return [row for row in store.of(type_) if wanted.items() <= row.tags.items()]


def _instance(store: Store, row: Row) -> Answer:
    return {
        "InstanceId": row.id,
        "HostName": hostname(row.id),
        "Status": row.outputs["status"],
        "Tags": {"Tag": _pairs(row, "TagKey", "TagValue")},
        "VpcAttributes": {"PrivateIpAddress": {"IpAddress": [row.outputs["primaryIpAddress"]]}},
        "PublicIpAddress": {"IpAddress": []},
        "EipAddress": {"IpAddress": public_address(store, row)},
    }


def public_address(store: Store, row: Row) -> str:
    """Of the EIP that was bound to an instance; empty without one."""
    eips = store.rows("instr(inputs, ?) and type like '%:EipAssociation'", row.id)
    addresses = [eip.outputs["ipAddress"] for each in eips for eip in store.rows("id = ?", each.inputs["allocationId"])]
    return next(iter(addresses), "")


def _pairs(row: Row, key: str, value: str) -> list[dict[str, str]]:
    return [{key: name, value: text} for name, text in row.tags.items()]


def _console(store: Store, asked: Asked) -> Answer:
    """A fresh machine has said nothing yet, until a test writes something there."""
    (row,) = store.rows("id = ?", asked["InstanceId"])
    return {"ConsoleOutput": b64encode(row.outputs.get("console", "").encode()).decode()}


def _released(store: Store, asked: Asked) -> Answer:
    ids = [value for name, value in asked.items() if name.startswith("InstanceId.")]
    store.remove([row for id_ in ids for row in store.rows("type = ? and id = ?", INSTANCE, id_)])
    return {}


def _made_by(key: str) -> Callable[[Store, Asked], list[Answer]]:
    return lambda store, asked: [{"InstanceId": row.id} for row in store.rows("maker = ?", asked[key])]


def _scaling_instances(store: Store, asked: Asked) -> Answer:
    found = _made_by("ScalingGroupId")(store, asked)
    return {"ScalingInstances": found, "TotalCount": len(found)}


def _mix_instances(store: Store, asked: Asked) -> Answer:
    return {"Instances": {"Instance": _made_by("AutoProvisioningGroupId")(store, asked)}}


def _of_group(type_: str, key: str, id_key: str) -> Callable[[Store, Asked], Answer]:
    def answer(store: Store, asked: Asked) -> Answer:
        found = [row for row in store.of(type_) if row.inputs["scalingGroupId"] == asked["ScalingGroupId"]]
        return {key: [{id_key: row.id.rpartition(":")[2]} for row in found]}

    return answer


def _mixes(store: Store, asked: Asked) -> Answer:
    named = [r for r in store.of(MIX) if r.inputs["autoProvisioningGroupName"] == asked["AutoProvisioningGroupName"]]
    groups = [{"AutoProvisioningGroupId": row.id, "Status": "active"} for row in named]
    return {"AutoProvisioningGroups": {"AutoProvisioningGroup": groups}}


def _deployment_sets(store: Store, asked: Asked) -> Answer:
    found = [row for row in store.of(DEPLOYMENT_SET) if row.inputs["deploymentSetName"] == asked["DeploymentSetName"]]
    return {"DeploymentSets": {"DeploymentSet": [{"DeploymentSetId": row.id} for row in found]}}


def _assurances(store: Store, asked: Asked) -> Answer:
    """Those of a status, `Active` if none is asked for."""
    status = asked.get("Status", "Active")
    found = [row for row in _with_tags(store, ASSURANCE, asked) if status in ("All", row.outputs["status"])]
    items = [
        {
            "PrivatePoolOptionsId": row.id,
            "Status": row.outputs["status"],
            "EndTime": row.outputs["endTime"],
            "Tags": {"Tag": _pairs(row, "TagKey", "TagValue")},
        }
        for row in found
    ]
    return {"ElasticityAssuranceSet": {"ElasticityAssuranceItem": items}}


def _hpc_clusters(store: Store, asked: Asked) -> Answer:
    found = [{"HpcClusterId": row.id, "Name": row.inputs["name"]} for row in store.of(HPC)]
    return {"HpcClusters": {"HpcCluster": found}}


def _ways_out(store: Store, asked: Asked) -> Answer:
    found = [row for row in store.of(SNAT) if row.inputs["sourceVswitchId"] == asked["SourceVSwitchId"]]
    entries = [{"SnatTableId": table, "SnatEntryId": entry} for table, _, entry in (r.id.partition(":") for r in found)]
    return {"SnatTableEntries": {"SnatTableEntry": entries}}


def _key(store: Store, asked: Asked) -> Answer:
    (row,) = store.rows("type = ? and id = ?", KEY, asked["KeyId"])
    return {"KeyMetadata": {"KeyId": row.id, "KeyState": row.state or "Enabled"}}


def _offers(store: Store, asked: Asked) -> Answer:
    """Whatever is asked for is there, in zones of every letter that the stacks use."""
    zones = [f"{asked['RegionId']}-{letter}" for letter in "abcdefghijkl"]
    offer = {"Status": "Available", "StatusCategory": "WithStock"}
    return {"AvailableZones": {"AvailableZone": [{"ZoneId": zone, **offer} for zone in zones]}}


def _agent(store: Store, asked: Asked) -> Answer:
    return {"EnableInstallAgentNewECS": True, "Success": True}


ANSWERS: Mapping[str, Callable[[Store, Asked], Answer]] = {
    "DeleteInstances": _released,
    "DescribeAutoProvisioningGroupInstances": _mix_instances,
    "DescribeAutoProvisioningGroups": _mixes,
    "DescribeAvailableResource": _offers,
    "DescribeDeploymentSets": _deployment_sets,
    "DescribeElasticityAssurances": _assurances,
    "DescribeHpcClusters": _hpc_clusters,
    "DescribeInstances": _instances,
    "DescribeKey": _key,
    "DescribeMonitoringAgentConfig": _agent,
    "DescribeScalingConfigurations": _of_group(CONFIGURATION, "ScalingConfigurations", "ScalingConfigurationId"),
    "DescribeScalingInstances": _scaling_instances,
    "DescribeScalingRules": _of_group(RULE, "ScalingRules", "ScalingRuleId"),
    "DescribeSnatTableEntries": _ways_out,
    "GetInstanceConsoleOutput": _console,
    "ListTagResources": _tagged,
}


@contextmanager
def serving(file: Path) -> Iterator[str]:
    """Serves a cloud from a thread of its own; the URL."""
    front = Front(file)
    thread = threading.Thread(target=front.serve_forever)
    thread.start()
    try:
        yield front.url
    finally:
        front.shutdown()
        front.server_close()
        thread.join()


def gone(row: Row) -> bool:
    """Whether Alibaba Cloud merely goes on showing it."""
    return row.state != "" and row.state == KINDS[row.type].ghost
