"""What was asked: a stack file as frozen, checked types. Imports neither Pulumi nor any cloud's package."""

from infra.spec.alicloud import AlicloudSpec
from infra.spec.aws import AwsSpec
from infra.spec.kubernetes import KubernetesSpec
from infra.spec.load import Spec, StackFile, load, stacks
from infra.spec.local import LocalSpec
from infra.spec.machines import MachinesSpec
from infra.spec.problem import Problem, SpecError

__all__ = [
    "AlicloudSpec",
    "AwsSpec",
    "KubernetesSpec",
    "LocalSpec",
    "MachinesSpec",
    "Problem",
    "Spec",
    "SpecError",
    "StackFile",
    "load",
    "stacks",
]
