"""Which MIG slices fit on a GPU together, by the places that each profile may begin at.

The tables say which profiles a GPU has, and how many of each at most (`Gpu.mig_profiles`). Where a slice may begin
follows from its width in memory slices, and that follows from how many of it there can be.
Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles", and the placements that `nvidia-smi mig -lgipp`
lists. A slice of media engines (`+me`) takes the place of its plain sister, and there is one on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from infra.catalog.rows import Gpu

MEDIA = "+me"
# Memory slices and compute slices of a whole GPU, by the most slices that it can be cut into.
WHOLE = {7: (8, 7), 4: (4, 4)}


def refusal(gpu: Gpu, layout: Sequence[str]) -> str | None:
    """Why a GPU cannot be cut into these slices, None if it can. layout: a profile (3g.20gb) for each."""
    most = _most(gpu)
    if not most:
        return f"{gpu.name} cannot be cut into slices"
    if unknown := [profile for profile in layout if profile.removesuffix(MEDIA) not in most]:
        return f"{gpu.name} has no slice {unknown[0]}; it has {', '.join(most)}"
    if (media := sum(profile.endswith(MEDIA) for profile in layout)) > 1:
        return f"{gpu.name} has media engines for one slice ({MEDIA}), not for {media}"
    plain = [profile.removesuffix(MEDIA) for profile in layout]
    if not _fits(gpu, tuple(sorted(plain, key=lambda profile: most[profile]))):
        return (
            f"{' and '.join(plain)} do not fit on {gpu.name} together; at most {_layout_text(most)}, of one kind alone"
        )
    return None


def _most(gpu: Gpu) -> dict[str, int]:
    """How many of each profile there can be, as the tables have it: "7x1g.5gb"."""
    pairs = (each.split("x", 1) for each in gpu.mig_profiles)
    return {profile: int(many) for many, profile in pairs}


def _layout_text(most: dict[str, int]) -> str:
    return ", ".join(f"{many} × {profile}" for profile, many in most.items())


@cache
def _fits(gpu: Gpu, layout: tuple[str, ...]) -> bool:
    """layout: the widest slices first. Compute slices are counted, memory slices are placed."""
    memory, compute = WHOLE[max(_most(gpu).values())]
    return sum(map(_compute, layout)) <= compute and _placed(gpu, layout, frozenset(range(memory)))


def _placed(gpu: Gpu, layout: tuple[str, ...], free: frozenset[int]) -> bool:
    if not layout:
        return True
    width, starts = _places(gpu, layout[0])
    taken = (frozenset(range(start, start + width)) for start in starts)
    return any(_placed(gpu, layout[1:], free - slices) for slices in taken if slices <= free)


def _places(gpu: Gpu, profile: str) -> tuple[int, range]:
    """A slice's width, and where it may begin: four-sevenths and wholes at 0 only, the others wherever they align."""
    most = _most(gpu)
    memory, compute = WHOLE[max(most.values())]
    many = most[profile]
    if many == 1:
        return (memory if _compute(profile) == compute else memory // 2), range(1)
    width = max(each for each in (1, 2, 4) if each * many <= memory)
    return width, range(0, width * many, width)


def _compute(profile: str) -> int:
    """3 of 3g.20gb."""
    return int(profile.partition("g")[0])
