"""No credentials that live for ever, and none that lie in the open.

Sources: IAM User Guide, "Security best practices" (workloads use roles); Systems Manager User Guide, "Parameter types".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from infra.policy.rule import Resource, Violation, rule
from infra.policy.user_data import secret_in

ACCESS_KEY, LOGIN = "aws:iam/accessKey:AccessKey", "aws:iam/userLoginProfile:UserLoginProfile"
PARAMETER = "aws:ssm/parameter:Parameter"
SECRET_NAME = re.compile(r"(?i)(password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key)")


@rule("no-lasting-credentials", ACCESS_KEY, LOGIN)
def no_lasting_credentials(resource: Resource) -> Iterator[Violation]:
    """A stack makes no access key and no password: what runs has a role."""
    yield "", "is valid until somebody remembers it, and stands in the stack's state; use a role"


@rule("secret-parameter", PARAMETER)
def secret_parameter(resource: Resource) -> Iterator[Violation]:
    """A parameter that holds a secret is encrypted."""
    if resource.inputs.get("type") == "SecureString":
        return
    value = resource.inputs.get("value") or resource.inputs.get("insecureValue")
    if SECRET_NAME.search(str(resource.inputs.get("name", ""))) or secret_in(str(value)) or value == "[secret]":
        yield "type", "must be SecureString: everybody who may read parameters would read the secret"
