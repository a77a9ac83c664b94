"""Compatibility of a GPU, its driver and the software above it: each constraint a small function with its source.

`faults` of a locked combination is empty. It is checked before anything is installed: on a node, the same conflicts
show as `Driver/library version mismatch`, CUDA error 802 or a kernel image that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from infra.catalog.drivers import (
    NVLINK5_GENERATIONS,
    NVSWITCH_GENERATIONS,
    DriverTuple,
    FabricInstaller,
    KnownBad,
    load,
)
from infra.catalog.rows import Gpu

# NVIDIA data centre driver documentation, supported drivers (read 2026-11-21).
BRANCH_ENDS = {535: date(2026, 6, 30), 580: date(2028, 6, 30), 595: date(2027, 3, 31), 610: date(2026, 8, 31)}
FIRST_BRANCH = {"ubuntu2204": 0, "ubuntu2404": 0, "debian12": 0, "debian13": 590, "rhel9": 0}  # cuda-repo-management#38
LAST_BRANCH = {"Volta": 580}  # as BRANCH_ENDS
# NVIDIA driver installation guide, "NVIDIA Open GPU Kernel Modules"
FLAVOURS = {"Volta": ("proprietary",), "Blackwell": ("open",), "Blackwell Ultra": ("open",)}
# CUDA toolkit release notes, table "CUDA Toolkit and Corresponding Driver Versions" and CUDA compatibility guide
BUILT_WITH = {
    "12.8.0": "570.26", "12.9.0": "575.51.03", "12.9.1": "575.57.08", "13.0.0": "580.65.06", "13.0.1": "580.82.07",
    "13.0.2": "580.95.05", "13.1.0": "590.44.01", "13.1.1": "590.48.01", "13.2.0": "595.45.04", "13.2.1": "595.58.03",
    "13.3.0": "610.43.02",
}  # fmt: skip
LOWEST_BRANCH = {11: 450, 12: 525, 13: 580}
# Package metadata of torch; the other wheels: pytorch/test-infra, build matrix of 2026-08-21. First tag: the default.
WHEELS = {
    "2.10.0": ("cu128", "cu126", "cu130"), "2.11.0": ("cu130", "cu126", "cu128"), "2.12.0": ("cu130", "cu126", "cu132"),
    "2.13.0": ("cu130", "cu126", "cu132"), "2.14.0": ("cu130", "cu126", "cu132", "cu134"), "2.15.0": ("cu132",),
}  # fmt: skip
BROUGHT_NCCL = {"2.10.0": "2.27.5", "2.11.0": "2.28.9", "2.12.0": "2.29.7", "2.14.0": "2.30.7", "2.15.0": "2.30.7"}
# Compute capabilities in a wheel: the matrix above; of cu132 as torch 2.15.0 itself says (torch.cuda.get_arch_list).
WHEEL_CODE = {
    "cu126": (5.0, 6.0, 7.0, 7.5, 8.0, 8.6, 9.0),
    "cu128": (7.5, 8.0, 8.6, 9.0, 10.0, 12.0),
    "cu130": (7.5, 8.0, 8.6, 9.0, 10.0, 12.0),
    "cu132": (7.5, 8.0, 8.6, 9.0, 10.0, 12.0),
}
EXPORTER_BUILT_ON = {"4.8.2": "4.5.3"}  # dcgm-exporter, its Dockerfile of 4.8.2


@dataclass(frozen=True, kw_only=True)
class Case:
    """A tuple on a GPU and a distribution, and what brings its fabric. parts: more versions, by name."""

    row: DriverTuple
    gpu: Gpu
    distribution: str
    fabric: FabricInstaller | None
    parts: dict[str, str]


FACTS: list[Callable[[Case], Iterator[str]]] = []


def faults(
    row: DriverTuple,
    gpu: Gpu,
    distribution: str,
    fabric: FabricInstaller | None = None,
    parts: dict[str, str] | None = None,
) -> tuple[str, ...]:
    """Every reason why this tuple cannot run on this GPU, one line each; none for one that can."""
    if problem := _unreadable(row):
        return (problem,)
    case = Case(row=row, gpu=gpu, distribution=distribution, fabric=fabric, parts=parts or {})
    return tuple(fault for fact in FACTS for fault in fact(case))


def fact(function: Callable[[Case], Iterator[str]]) -> Callable[[Case], Iterator[str]]:
    FACTS.append(function)
    return function


def _unreadable(row: DriverTuple) -> str | None:
    if not re.fullmatch(r"\d{3}\.\d+(\.\d+)?", row.driver):
        return f"driver {row.driver} is no exact version such as 580.178.04"
    for name in ("cuda_toolkit", "dcgm", "torch", "nccl", "container_toolkit"):
        if (text := getattr(row, name)) is not None and not re.fullmatch(r"\d+(\.\d+)+", text):
            return f"{name} {text} is no exact version"
    return None


@fact
def _row_is_of_the_gpu(case: Case) -> Iterator[str]:
    if case.row.architecture != case.gpu.architecture:
        yield f"{case.gpu.name} is of {case.gpu.architecture}, and the tuple of {case.row.architecture}"


@fact
def _repository_has_the_branch(case: Case) -> Iterator[str]:
    first = FIRST_BRANCH.get(case.distribution)
    if first is None:
        yield f"NVIDIA's repository of {case.distribution} is not known; known are {', '.join(FIRST_BRANCH)}"
    elif case.row.branch < first:
        yield f"the repository of {case.distribution} begins at driver {first}, and has no {case.row.branch}"


@fact
def _branch_is_kept_up(case: Case) -> Iterator[str]:
    ends = BRANCH_ENDS.get(case.row.branch)
    if ends is None:
        yield f"driver branch {case.row.branch} is none of {', '.join(map(str, BRANCH_ENDS))}"
    elif ends < case.row.date:
        yield f"driver branch {case.row.branch} had its last fix in {ends:%B %Y}"


@fact
def _branch_knows_the_gpu(case: Case) -> Iterator[str]:
    first, last = case.gpu.driver_branch_min, LAST_BRANCH.get(case.gpu.architecture)
    if first is not None and case.row.branch < first:
        yield f"{case.gpu.name} needs driver {first} or newer, not {case.row.branch}"
    if last is not None and case.row.branch > last:
        yield f"{last} is the last driver for {case.gpu.architecture}, not {case.row.branch}"


@fact
def _module_binds(case: Case) -> Iterator[str]:
    possible = FLAVOURS.get(case.gpu.architecture, ("open", "proprietary"))
    if case.row.flavour not in possible:
        yield f"the {case.row.flavour} module does not run {case.gpu.name}: it needs the {possible[0]} one"


@fact
def _fabric_manager_is_the_drivers(case: Case) -> Iterator[str]:
    """The manager refuses a driver of another version; the GPUs then answer CUDA with 802 (Fabric Manager guide)."""
    needed = case.row.architecture in NVSWITCH_GENERATIONS
    if needed and case.row.fabric_manager is None:
        yield f"{case.row.architecture} boards have NVSwitches, and the tuple has no fabric manager"
    elif not needed and case.row.fabric_manager is not None:
        yield f"{case.row.architecture} has no NVSwitch that a fabric manager could manage"
    elif needed and case.row.fabric_manager != case.row.driver:
        yield f"fabric manager {case.row.fabric_manager} must be the driver's own version, {case.row.driver}"


@fact
def _subnet_manager_has_nvlink5(case: Case) -> Iterator[str]:
    if case.row.nvlsm is not None and case.row.architecture not in NVLINK5_GENERATIONS:
        yield f"nvlsm manages NVLink 5, which {case.row.architecture} does not have"


@fact
def _driver_runs_the_toolkit(case: Case) -> Iterator[str]:
    """What a toolkit compiles just in time needs a driver as new as the toolkit (CUDA compatibility guide)."""
    if case.row.cuda_toolkit is None:
        return
    built = BUILT_WITH.get(case.row.cuda_toolkit)
    if built is None:
        yield f"CUDA toolkit {case.row.cuda_toolkit} is none of {', '.join(BUILT_WITH)}"
    elif numbers(case.row.driver) < numbers(built):
        yield f"CUDA toolkit {case.row.cuda_toolkit} needs driver {built} or newer, not {case.row.driver}"


@fact
def _gpu_runs_the_toolkit(case: Case) -> Iterator[str]:
    if case.row.cuda_toolkit is None:
        return
    toolkit = numbers(case.row.cuda_toolkit)
    if case.gpu.cuda_last is not None and toolkit[0] > numbers(case.gpu.cuda_last)[0]:
        yield f"CUDA {case.gpu.cuda_last} is the last for {case.gpu.name}, not {case.row.cuda_toolkit}"
    if case.gpu.cuda_first is not None and toolkit < numbers(case.gpu.cuda_first):
        yield f"{case.gpu.name} needs CUDA {case.gpu.cuda_first} or newer, not {case.row.cuda_toolkit}"


@fact
def _wheel_exists(case: Case) -> Iterator[str]:
    if case.row.torch is None:
        return
    tags = WHEELS.get(case.row.torch)
    if tags is None:
        yield f"torch {case.row.torch} is none of {', '.join(WHEELS)}"
    elif case.row.torch_cuda not in tags:
        yield f"torch {case.row.torch} is built for {', '.join(tags)}, not {case.row.torch_cuda}"


@fact
def _driver_runs_the_wheel(case: Case) -> Iterator[str]:
    """Minor version compatibility: every CUDA 13 runs on the first driver of CUDA 13 (CUDA compatibility guide)."""
    major = cuda_major(case.row.torch_cuda)
    if major is not None and case.row.branch < LOWEST_BRANCH[major]:
        yield f"torch for {case.row.torch_cuda} needs driver {LOWEST_BRANCH[major]} or newer, not {case.row.branch}"


@fact
def _wheel_has_code_for_the_gpu(case: Case) -> Iterator[str]:
    """Code runs on its own and on later minor compute capabilities of the same major one (CUDA programming guide)."""
    code, own = WHEEL_CODE.get(case.row.torch_cuda or ""), case.gpu.compute_capability
    if code is not None and not any(int(each) == int(own) and each <= own for each in code):
        yield f"torch for {case.row.torch_cuda} has no code for {case.gpu.name} (compute capability {own})"


@fact
def _nccl_is_the_wheels(case: Case) -> Iterator[str]:
    default = WHEELS.get(case.row.torch or "", ("",))[0]
    brought = BROUGHT_NCCL.get(case.row.torch or "") if case.row.torch_cuda == default else None
    if brought is not None and case.row.nccl not in (brought, None):
        yield f"torch {case.row.torch} brings NCCL {brought}, not {case.row.nccl}"


@fact
def _dcgm_has_the_parts_of_the_driver(case: Case) -> Iterator[str]:
    """DCGM loads the parts of the driver's CUDA major, for Volta those of 12 as well (DCGM user guide)."""
    needed = {str(max(major for major, branch in LOWEST_BRANCH.items() if case.row.branch >= branch))}
    needed |= {"12"} if case.gpu.architecture == "Volta" else set()
    if lacking := sorted(needed - set(case.row.dcgm_cuda)):
        yield f"DCGM lacks its parts for CUDA {' and '.join(lacking)}, which driver {case.row.branch} wants"


@fact
def _exporter_knows_the_dcgm(case: Case) -> Iterator[str]:
    oldest = EXPORTER_BUILT_ON.get(case.row.dcgm_exporter or "")
    if oldest and case.row.dcgm and numbers(case.row.dcgm) < numbers(oldest):
        yield f"dcgm-exporter {case.row.dcgm_exporter} is built on DCGM {oldest}, newer than {case.row.dcgm}"


@fact
def _archive_can_be_checked(case: Case) -> Iterator[str]:
    sha256 = case.fabric.sha256 if case.fabric else None
    if sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        yield f"the sha256 of the {case.fabric and case.fabric.fabric} installer is none: 64 hexadecimal digits"


@fact
def _plugin_is_the_installers(case: Case) -> Iterator[str]:
    plugin = case.parts.get("plugin")
    if case.fabric and plugin and case.fabric.plugin and plugin != case.fabric.plugin:
        yield f"installer {case.fabric.installer} brings plug-in {case.fabric.plugin}, not {plugin}"


@fact
def _nothing_is_known_bad(case: Case) -> Iterator[str]:
    there = {**{name: str(value) for name, value in vars(case.row).items() if value is not None}, **case.parts}
    if case.fabric:
        there[case.fabric.fabric] = case.fabric.installer
    yield from (_message(bad, there) for bad in load().known_bad if _meets(bad, there))


def _meets(bad: KnownBad, there: dict[str, str]) -> bool:
    first = bad.component in there and holds(there[bad.component], bad.versions)
    return first and (bad.other is None or (bad.other in there and holds(there[bad.other], bad.other_versions)))


def _message(bad: KnownBad, there: dict[str, str]) -> str:
    beside = f" beside {bad.other} {there[bad.other]}" if bad.other else ""
    return f"{bad.component} {there[bad.component]}{beside}: {bad.reason} ({bad.source})"


def holds(version: str, conditions: tuple[str, ...]) -> bool:
    """Whether a version meets all of `<1.2`, `>=1.2` and `=text`."""
    for condition in conditions:
        sign, bound = re.fullmatch(r"(<|>=|=)(.+)", condition).groups()  # pyright: ignore[reportOptionalMemberAccess]
        if sign == "=" and version != bound:
            return False
        if sign == "<" and not numbers(version) < numbers(bound):
            return False
        if sign == ">=" and not numbers(version) >= numbers(bound):
            return False
    return True


def cuda_major(tag: str | None) -> int | None:
    """13 of cu132."""
    return int(tag[2:4]) if tag else None


def numbers(version: str) -> tuple[int, ...]:
    """A version as what it is ordered by."""
    return tuple(int(part) for part in version.split("."))
