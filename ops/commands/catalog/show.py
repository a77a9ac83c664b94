"""`gpufleet catalog show`: the tables of instance types and GPUs, with source and date of every figure."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Annotated, Any

import typer

from infra import catalog
from infra.catalog import Catalog, Gpu, InstanceType, UnknownNameError
from ops.console import terminal
from ops.console.terminal import Json
from ops.errors import CommandError

Document = dict[str, Any]


def command(
    name: Annotated[str, typer.Argument(help="a type or GPU, or how its name begins")] = "", as_json: Json = False
) -> None:
    """Show a type or GPU in full, several as tables."""
    terminal.show(show(name), as_json, text)


def show(name: str = "") -> Document:
    """The document of `--json`: the type or GPU of that name, else all whose name begins so; everything without a name.

    A type brings its GPU along, a GPU its types. Raises CommandError, code 2, for a name that nothing begins with.
    """
    tables = catalog.load()
    types = [kind for kind in tables.types if name in {kind.name, kind.gpu}]
    gpus = [gpu for gpu in tables.gpus if gpu.name == name]
    if not types and not gpus:
        types = [kind for kind in tables.types if matches(kind.name, name) or matches(kind.gpu or "", name)]
        gpus = [gpu for gpu in tables.gpus if matches(gpu.name, name)]
    if not types and not gpus:
        names = [row.name for row in (*tables.types, *tables.gpus)]
        raise CommandError(f"{UnknownNameError(name, names)} (`gpufleet catalog show` lists all)", code=2)
    named = {kind.gpu for kind in types} | {gpu.name for gpu in gpus}
    return {
        "types": [json_row(asdict(kind)) | {"prices": prices(tables, kind)} for kind in types],
        "gpus": [gpu_document(gpu) for gpu in tables.gpus if gpu.name in named],
    }


def matches(name: str, start: str) -> bool:
    return name.lower().startswith(start.lower())


def prices(tables: Catalog, kind: InstanceType) -> list[Document]:
    return [json_row(asdict(price)) for price in tables.prices if price.type == kind.name]


def gpu_document(gpu: Gpu) -> Document:
    share = gpu.measured_share
    return json_row(asdict(gpu)) | {"bf16_measured_share": share and round(share, 4)}


def json_row(row: Document) -> Document:
    """A row as JSON: a date as text, a tuple as a list."""
    return {
        name: value.isoformat() if isinstance(value, date) else list(value) if isinstance(value, tuple) else value
        for name, value in row.items()
    }


def text(document: Document) -> str:
    """One type or GPU in full, several as two tables."""
    types, gpus = document["types"], document["gpus"]
    if len(types) == 1:
        return "\n".join([*full_lines(types[0]), "", *full_lines(gpus[0])] if gpus else full_lines(types[0]))
    if not types and len(gpus) == 1:
        return "\n".join(full_lines(gpus[0]))
    tables = [[type_row(kind) for kind in types], [gpu_row(gpu) for gpu in gpus]]
    return "\n\n".join("\n".join(rows) for rows in tables if rows)


def full_lines(row: Document) -> list[str]:
    """Every non-empty column, prices last."""
    cells = {key: cell(value) for key, value in row.items() if key not in {"name", "prices"}}
    if "compute_capability" in cells:
        cells["compute_capability"] = str(row["compute_capability"])  # a version: 8.0, not 8
    lines = [row["name"], *(f"  {key:<22} {value}" for key, value in cells.items() if value)]
    for price in row.get("prices", []):
        money = f"{price['on_demand_per_hour']} {price['currency']}/h"
        lines.append(f"  {'on demand':<22} {money} in {price['region']} ({price['date']}, {price['source']})")
    return lines


def cell(value: Any) -> str:
    """One figure as a person reads it, "" where none is known."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else f"{value:g}" if isinstance(value, float) else str(value)


def type_row(kind: Document) -> str:
    gpus = f"{kind['gpu_count'] * kind['gpu_share']:g} × {kind['gpu']}" if kind["gpu"] else "no GPU"
    machine = f"{quantity(kind['vcpus'], 'vCPU'):<9} {quantity(kind['memory_gib'], 'GiB'):<9}"
    fabric = f"{kind['fabric']} × {quantity(kind['fabric_interfaces'])}" if kind["fabric"] else ""
    costs = [f"{price['on_demand_per_hour']:.2f} {price['currency']}/h {price['region']}" for price in kind["prices"]]
    more = f" and {len(costs) - 1} more" if len(costs) > 1 else ""
    return f"{kind['name']:<25} {gpus:<30} {machine} {fabric:<9} {costs[0] + more if costs else 'no price'}"


def gpu_row(gpu: Document) -> str:
    bf16 = f"bf16 {quantity(gpu['bf16_dense_tflops'])} dense, {quantity(gpu['bf16_measured_tflops'])} measured TFLOPS"
    return f"{gpu['name']:<26} CC {gpu['compute_capability']:<5} {gpu['memory_gb']:>3} GB  {bf16}"


def quantity(figure: float | None, unit: str = "") -> str:
    return "?" if figure is None else f"{figure:g} {unit}".rstrip()
