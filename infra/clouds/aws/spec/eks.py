"""The section `eks` of AWS's stack file, which makes its nodes a Kubernetes cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from infra.clouds.kubernetes.spec.cluster import OwnTenancy
from infra.spec.cluster import Section, at_least_one
from infra.spec.errors import ContradictionError, quoted
from infra.spec.fields import Cidr, like, version_text

# A session of a role (arn:aws:sts::…) is nobody that an access entry could name (EKS API, CreateAccessEntry).
PRINCIPAL = r"arn:aws:iam::\d{12}:(role|user)/[\w+=,.@/-]+"


def _principal(text: str) -> str:
    if ":assumed-role/" in text:
        raise ValueError(f"{quoted(text)} is a session; name its role, arn:aws:iam::<account>:role/<name>")
    return like(PRINCIPAL, "ARN of a role or user, such as arn:aws:iam::111122223333:role/ops")(text)


KubernetesVersion = Annotated[
    str, BeforeValidator(version_text), AfterValidator(like(r"1\.\d{2}", 'version of Kubernetes such as "1.35"'))
]
PrincipalArn = Annotated[str, AfterValidator(_principal)]


def _each_once(principals: tuple[str, ...]) -> tuple[str, ...]:
    if mistakes := [((i,), f"{arn} stands there already") for i, arn in enumerate(principals) if arn in principals[:i]]:
        raise ContradictionError(mistakes)
    return principals


class Eks(Section):
    """Managed node groups of a cluster of EKS, in place of fleets.

    admins: ARNs of the IAM roles and users who may do everything in it; nobody else may do anything, not even the
    creator. api_from: public networks from which its API is reached; without them it is reached from the VPC alone.
    tenant: its objects and charts are installed into the cluster; None without one.
    """

    version: KubernetesVersion
    admins: Annotated[tuple[PrincipalArn, ...], AfterValidator(at_least_one), AfterValidator(_each_once)]
    api_from: tuple[Cidr, ...] = ()
    tenant: OwnTenancy | None = None
