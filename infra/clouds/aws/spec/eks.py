"""The part of AWS's stack file that makes its nodes a Kubernetes cluster: `eks`, and what cannot stand beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from infra.clouds.kubernetes.spec import OwnTenancy
from infra.spec.cluster import Section, at_least_one
from infra.spec.errors import Contradiction, Mistake, quoted, shown
from infra.spec.fields import Cidr, like

if TYPE_CHECKING:
    from infra.clouds.aws.spec.cluster import AwsSpec

# A session of a role (arn:aws:sts::…) is nobody that an access entry could name (EKS API, CreateAccessEntry).
PRINCIPAL = r"arn:aws:iam::\d{12}:(role|user)/[\w+=,.@/-]+"


def in_quotes(value: Any) -> Any:
    """A version that is a text. Raises ValueError for the number that YAML takes it for."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f'{shown(value)} is a number; write it in quotes, such as "1.35", or 1.40 would be 1.4')
    return value


def _principal(text: str) -> str:
    if ":assumed-role/" in text:
        raise ValueError(f"{quoted(text)} is a session; name its role, arn:aws:iam::<account>:role/<name>")
    return like(PRINCIPAL, "ARN of a role or user, such as arn:aws:iam::111122223333:role/ops")(text)


KubernetesVersion = Annotated[
    str, BeforeValidator(in_quotes), AfterValidator(like(r"1\.\d{2}", 'version of Kubernetes such as "1.35"'))
]
PrincipalArn = Annotated[str, AfterValidator(_principal)]


def _each_once(principals: tuple[str, ...]) -> tuple[str, ...]:
    if mistakes := [((i,), f"{arn} stands there already") for i, arn in enumerate(principals) if arn in principals[:i]]:
        raise Contradiction(mistakes)
    return principals


class Eks(Section):
    """Managed node groups of a cluster of EKS, in place of fleets.

    admins: ARNs of the IAM roles and users who may do everything in it; nobody else may do anything, not even who made
    it. api_from: public networks from which its API is reached; without them it is reached from the VPC alone.
    tenant: whose objects and charts the stack puts into the cluster, None for nobody's.
    """

    version: KubernetesVersion
    admins: Annotated[tuple[PrincipalArn, ...], AfterValidator(at_least_one), AfterValidator(_each_once)]
    api_from: tuple[Cidr, ...] = ()
    tenant: OwnTenancy | None = None


def strangers_to_eks(spec: AwsSpec) -> Iterator[Mistake]:
    """What a cluster of EKS has no use for, each with what does it instead."""
    if spec.access.ssh_from:
        yield ("access", "ssh_from"), "cannot stand beside `eks`: use its `api_from`, or `ssm: true` for the nodes"
    if spec.access.public_key is not None:
        yield ("access", "public_key"), "cannot stand beside `eks`: its nodes know no login key; use `ssm: true`"
    if spec.images.x86_64 or spec.images.arm64:
        yield ("images",), "cannot stand beside `eks`, whose version chooses the image"
    for i, item in enumerate(spec.storage):
        if item.kind == "bucket" and "client" in item.model_fields_set:
            yield ("storage", i, "client"), "cannot stand beside `eks`, where no node mounts a bucket; leave it out"
    for i, group in enumerate(spec.nodes):
        if group.name == "head":
            yield ("nodes", i, "name"), "cannot be 'head' beside `eks`: people come by its API; choose another name"
        if group.mig is not None:
            yield ("nodes", i, "mig"), "cannot stand beside `eks`, whose image brings the driver; leave it out"
        if group.count is None:
            yield ("nodes", i, "min"), "cannot stand beside `eks`, where nothing follows the load yet; give `count`"
