"""Names of checkpoint folders. Imports nothing, since the launcher uses it before torch is loaded."""


def folder_name(step: int) -> str:
    """Of a checkpoint that counts."""
    return f"step-{step:08d}"


def step_of(name: str) -> int | None:
    """The step of a folder that is called so; None where the name is another."""
    digits = name.removeprefix("step-")
    return int(digits) if digits.isdecimal() and name == folder_name(int(digits)) else None
