"""The `gpufleet` command line. Each command imports what it needs when it is called: a typo answers at once."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console

from infra.catalog import Precision
from infra.plan.choice import FabricNeed
from ops.failure import Failure
from ops.project import Project

app = typer.Typer(
    name="gpufleet",
    help="From a stack file to a GPU cluster to a finished training job.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
catalog = typer.Typer(help="What the tables know of instance types and GPUs.", no_args_is_help=True)
app.add_typer(catalog, name="catalog")
Stack = Annotated[str, typer.Argument(metavar="STACK", help="the stack: stacks/Pulumi.STACK.yaml", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document instead of text")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


@app.command()
def plan(stack: Stack, as_json: Json = False) -> None:
    """Show what a stack would create and cost; creates nothing, needs no credentials."""
    from ops import plan as command

    planned = command.plan(Project.find(), stack)
    print(json.dumps(planned.document, indent=1) if as_json else command.text(planned))
    if planned.refused:
        raise typer.Exit(1)


@app.command()
def select(
    gpus: Annotated[int, typer.Option(min=1, help="how many GPUs", show_default=False)],
    region: Annotated[str, typer.Option(help="where, e.g. us-east-1", show_default=False)],
    gpu_memory: Annotated[float, typer.Option(metavar="GIB", help="usable memory of each GPU, at least")] = 0.0,
    precision: Annotated[Precision, typer.Option(help="format of the matrix products")] = "bf16",
    fabric: Annotated[FabricNeed, typer.Option(help="a fast network between nodes")] = "preferred",
    budget: Annotated[float | None, typer.Option(metavar="USD", help="at most, per hour, all nodes")] = None,
    cloud: Annotated[list[str] | None, typer.Option(help="only this cloud; can be repeated")] = None,
    as_json: Json = False,
) -> None:
    """Rank the instance types that fit a job by the price of its work."""
    from ops import select as command

    told = command.select(
        gpus=gpus,
        region=region,
        gpu_memory_gib=gpu_memory,
        precision=precision,
        fabric=fabric,
        budget_usd_per_hour=budget,
        clouds=cloud or (),
    )
    show(told, as_json, command.text)


@catalog.command("show")
def catalog_show(
    name: Annotated[str, typer.Argument(help="a type or GPU, or how its name begins")] = "", as_json: Json = False
) -> None:
    """Show a type or GPU in full, several as tables."""
    from ops import catalog as command

    show(command.show(name), as_json, command.text)


@app.command()
def up(stack: Stack, as_json: Json = False) -> None:
    """Create or repair a stack's nodes, configure them and prove them ready."""
    from ops import up as command
    from ops.phases import Phases

    phases = Phases(Console(), quiet=as_json)
    told = command.up(Project.find(), stack, phases)
    if as_json:
        print(json.dumps({"stack": stack, "phases": phases.as_json(), "cluster": told.model_dump()}, indent=1))


@app.command()
def train(
    job: Annotated[str, typer.Argument(help="a job file, or the name of a shipped one (training/jobs)")],
    stack: Annotated[str, typer.Option("--stack", "-s", metavar="STACK", help="where to run it")],
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="change a key, e.g. optimizer.lr=0.05"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a training job on a stack's nodes, follow it, and fetch its result. Ctrl-C stops it with a checkpoint."""
    from ops import report
    from ops import train as command

    project = Project.find()
    with report.Progress(Console(), quiet=as_json) as progress:
        outcome = command.train(project, stack, job, setting or [], progress.event)
    show(report.document(project, stack, outcome), as_json, report.text)


@app.command()
def status(stack: Stack, as_json: Json = False) -> None:
    """Show each node's state, the newest run and the cost."""
    from ops import status as command

    show(command.status(Project.find(), stack), as_json, command.text)


@app.command()
def down(stack: Stack, yes: Yes = False, as_json: Json = False) -> None:
    """Take a stack down and prove that nothing of it is left."""
    from ops import down as command
    from ops.phases import Phases

    if not yes and not typer.confirm(f"take down stack {stack}, with the disks of its nodes?"):
        raise Failure("nothing was taken down")
    phases = Phases(Console(), quiet=as_json)
    found = command.down(Project.find(), stack, phases)
    if as_json:
        print(json.dumps({"stack": stack, "found": found, "phases": phases.as_json()}, indent=1))
    elif not found:
        print(f"stack {stack} is not up: nothing to take down")


@app.command()
def env() -> None:
    """Print the engine's settings as shell lines: eval "$(gpufleet env)", then `pulumi` works by hand."""
    from ops import engine

    for name, value in sorted(engine.environment(Project.find()).items()):
        if os.environ.get(name) != value:
            print(f"export {name}={shlex.quote(value)}")


def show(document: dict[str, Any], as_json: bool, text: Callable[[dict[str, Any]], str]) -> None:
    """One document, for a machine or for a person."""
    if as_json:
        print(json.dumps(document, indent=1))
    else:
        Console(highlight=False, soft_wrap=True).print(text(document))


def main() -> None:
    """The console script: a Failure becomes its lines on standard error and its exit code."""
    try:
        app()
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(failure.code)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
