"""The `gpufleet` command line. Each command imports what it needs when it is called: a typo answers at once."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from infra.catalog import FabricNeed, Precision
from ops.console.terminal import Json, Rate, Screen, Stack, Yes, confirmed, show, write, write_fault, write_json
from ops.errors import CommandError
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


@app.command()
def plan(
    stack: Stack,
    against: Annotated[
        str | None,
        typer.Option(metavar="REF|FILE", help="show what differs from a git commit, or from a saved --json plan"),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="draw the topology, with prices", dir_okay=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a stack would create and cost; creates nothing, needs no credentials."""
    from ops.commands import plan as command

    planned = command.plan(Project.find(), stack, against)
    if picture is not None:
        command.picture(planned, picture)
    show(planned.document, as_json, lambda _: command.text(planned))
    if planned.refused:
        raise typer.Exit(1)


@app.command()
def select(
    gpus: Annotated[int, typer.Option(min=1, help="how many GPUs", show_default=False)],
    region: Annotated[
        str | None, typer.Option(help="where, e.g. us-east-1; without it each type where it costs least")
    ] = None,
    gpu_memory: Annotated[float, typer.Option(metavar="GIB", help="usable memory of each GPU, at least")] = 0.0,
    precision: Annotated[Precision, typer.Option(help="format of the matrix products")] = "bf16",
    fabric: Annotated[FabricNeed, typer.Option(help="a fast network between nodes")] = "preferred",
    budget: Annotated[float | None, typer.Option(metavar="USD", help="at most, per hour, all nodes")] = None,
    clouds: Annotated[
        str, typer.Option(metavar="NAME,…", help="of aws, alicloud, azure, tencent: in one table")
    ] = "aws",
    rate: Rate = None,
    as_json: Json = False,
) -> None:
    """Rank the instance types that fit a job by the price of its work."""
    from ops.commands import select as command

    told = command.select(
        gpus=gpus,
        region=region,
        gpu_memory_gib=gpu_memory,
        precision=precision,
        fabric=fabric,
        budget_usd_per_hour=budget,
        rate=rate,
        clouds=clouds.split(","),
    )
    show(told, as_json, command.text)


@app.command()
def vendors(
    weights: Annotated[
        str, typer.Option(metavar="NAME=WEIGHT,…", help="of compute, cost, supply, operation, openness")
    ] = "",
    rate: Rate = None,
    as_json: Json = False,
) -> None:
    """Compare the vendors of the tables by 23 weighted indices, with the arithmetic."""
    from ops.commands import vendors as command

    show(command.compare(rate, weights), as_json, command.text)


@catalog.command("show")
def catalog_show(
    name: Annotated[str, typer.Argument(help="a type or GPU, or how its name begins")] = "", as_json: Json = False
) -> None:
    """Show a type or GPU in full, several as tables."""
    from ops.commands import catalog as command

    show(command.show(name), as_json, command.text)


@catalog.command("refresh")
def catalog_refresh(
    region: Annotated[
        list[str] | None, typer.Option(help="ask about this region; can be repeated; else all that have prices")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would change, write nothing")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Write the tables anew from what AWS answers: types, offerings, prices, spot. Shows the changes, and asks."""
    from ops.commands import catalog_refresh as command
    from ops.console.phases import Phases

    def agreed(told: dict[str, Any]) -> bool:
        write(command.text(told), error=as_json)
        return not dry_run and (yes or confirmed("write the tables?"))

    told = command.refresh(region or (), Phases(Screen(), quiet=as_json), agreed)
    show(told, as_json, lambda _: "written" if told["written"] else "nothing was written")


@app.command()
def up(
    stack: Stack,
    yes: Yes = False,
    wait: Annotated[bool, typer.Option(help="until the nodes are there, configured and proven ready")] = True,
    renew: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="end this group's nodes and ask for all of them anew")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create or repair a stack's nodes, configure them and prove them ready. Names the price first, and asks."""
    from ops.commands import plan as planning
    from ops.commands import up as command
    from ops.console.phases import Phases

    def agreed(planned: planning.Planned) -> bool:
        write(planning.text(planned), error=as_json)
        cost = planned.decided.cost
        most = f", at most {cost.hourly_max:.2f}" if cost.hourly_max > cost.hourly else ""
        ends = f", after what is left of {', '.join(renew)} has ended" if renew else ""
        return yes or confirmed(f"create this for {cost.hourly:.2f} {cost.currency}/h{most}{ends}?")

    phases = Phases(Screen(), quiet=as_json)
    told = command.up(Project.find(), stack, phases, agreed, wait=wait, renew=renew or ())
    if as_json:
        write_json({"stack": stack, "phases": phases.as_json(), "cluster": told.model_dump()})


@app.command()
def train(
    job: Annotated[str, typer.Argument(help="a job file, or the name of a shipped one (training/jobs)")],
    stack: Annotated[str, typer.Option("--stack", "-s", metavar="STACK", help="where to run it")],
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="change a key, e.g. optimizer.lr=0.05"),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help="whose nodes, where several groups have GPUs")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a training job on a stack's nodes, follow it, and fetch its result. Ctrl-C stops it with a checkpoint."""
    from ops.commands import train as command
    from ops.jobs import progress as report

    project = Project.find()
    with report.Progress(Screen(), quiet=as_json) as progress:
        outcome = command.train(project, stack, job, setting or [], progress.event, group)
    show(report.document(project, stack, outcome), as_json, report.text)


@app.command()
def status(stack: Stack, as_json: Json = False) -> None:
    """Show each node's state, the newest run and the cost."""
    from ops.commands import status as command

    show(command.status(Project.find(), stack), as_json, command.text)


@app.command()
def doctor(
    stack: Stack,
    all_reduce: Annotated[
        bool, typer.Option("--all-reduce", help="let all idle nodes sum numbers together, and count the fabric's bytes")
    ] = False,
    as_json: Json = False,
) -> None:
    """Let every node check itself again; say who is not ready, why, and what to do. Jobs go on meanwhile."""
    from ops.commands import doctor as command
    from ops.console.phases import Phases

    document = command.doctor(Project.find(), stack, Phases(Screen(), quiet=as_json), all_reduce=all_reduce)
    show(document, as_json, command.text)
    if not all(node["ready"] for node in document["nodes"]):
        raise typer.Exit(1)


@app.command()
def down(stack: Stack, yes: Yes = False, as_json: Json = False) -> None:
    """Take a stack down and prove that nothing of it is left. Names what it stops costing, and asks."""
    from ops.commands import down as command
    from ops.console.phases import Phases

    project = Project.find()
    if not yes and not confirmed(
        f"take down stack {stack}, with the disks of its nodes{command.saving(project, stack)}?"
    ):
        raise CommandError("nothing was taken down")
    phases = Phases(Screen(), quiet=as_json)
    found = command.down(project, stack, phases)
    if as_json:
        write_json({"stack": stack, "found": found, "phases": phases.as_json()})
    elif not found:
        write(f"stack {stack} is not up: nothing to take down")


@app.command()
def sweep(
    stack: Stack,
    delete: Annotated[bool, typer.Option("--delete", help="remove them, after asking")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """List what carries a stack's tags and is not in its state; remove it on demand."""
    from ops.commands import sweep as command
    from ops.console.phases import Phases

    def agreed(found: dict[str, Any]) -> bool:
        write(command.text(found), error=True)
        return yes or confirmed(f"remove these {len(found['strays'])} for good?")

    phases = Phases(Screen(), quiet=as_json)
    show(command.sweep(Project.find(), stack, phases, agreed if delete else None), as_json, command.text)


@app.command()
def copy(stack: Stack, as_json: Json = False) -> None:
    """Bring what other stacks keep into this one's buckets (`copies`), by rclone and your own credentials."""
    from ops.commands import copy as command
    from ops.console.phases import Phases

    told = command.copy(Project.find(), stack, Phases(Screen(), quiet=as_json))
    if as_json:
        write_json(told)


@app.command()
def handover(stack: Stack) -> None:
    """Print what playbooks and jobs work from, as JSON: the cluster with the nodes of this moment."""
    from ops import stack as cluster

    write_json(cluster.discovered(Project.find(), stack).told.model_dump(mode="json"))


@app.command()
def env() -> None:
    """Print the engine's settings as shell lines: eval "$(gpufleet env)", then `pulumi` works by hand."""
    from ops.engine import pulumi as engine

    for name, value in sorted(engine.environment(Project.find()).items()):
        if os.environ.get(name) != value:
            write(f"export {name}={shlex.quote(value)}")


def main() -> None:
    """The console script: a CommandError becomes its lines on standard error and its exit code."""
    sys.excepthook = write_fault
    try:
        app()
    except CommandError as error:
        write(str(error), error=True)
        sys.exit(error.code)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
