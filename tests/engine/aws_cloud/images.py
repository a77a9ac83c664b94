"""Public parameters of Systems Manager: the machine images that AWS publishes by name."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from aws_cloud.kinds import ACCOUNT


def parameter(name: str, region: str) -> dict[str, Any]:
    """A parameter's attributes; its value is an image id that is always the same for a name and a region."""
    image = f"ami-0{sha256(f'{region} {name}'.encode()).hexdigest()[:16]}"
    return {
        "arn": f"arn:aws:ssm:{region}:{'' if name.startswith('/aws/service/') else ACCOUNT}:parameter{name}",
        "id": name,
        "insecureValue": image,
        "region": region,
        "type": "String",
        "value": image,
        "version": 1,
    }
