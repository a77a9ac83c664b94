"""The spec: a stack file as frozen, validated types. Imports neither Pulumi nor any cloud's package."""

from infra.spec.errors import Problem, SpecError
from infra.spec.load import StackFile, load, stacks

__all__ = ["Problem", "SpecError", "StackFile", "load", "stacks"]
