"""The `gpufleet` command line: the list of sub-commands, and how an error becomes an exit code.

A sub-command's module loads when it is called, so that `--help` and a typo answer at once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ops.console.terminal import write, write_fault
from ops.errors import CommandError

# Name and summary. Options, call and whole help text of each: `command` in ops/commands/<name>.py,
# those of `catalog` in ops/commands/catalog.
COMMANDS = {
    "plan": "Show what a stack would create and cost.",
    "select": "Rank the instance types that fit a job by the price of its work.",
    "vendors": "Compare the vendors of the tables by weighted indices.",
    "up": "Create or repair a stack's nodes, configure and verify them.",
    "train": "Run a training job on a stack's nodes and fetch its result.",
    "status": "Show each node's state, the newest run and the cost.",
    "doctor": "Run every node's readiness checks again.",
    "down": "Delete a stack and verify that nothing of it is left.",
    "sweep": "List or delete orphaned resources of a stack.",
    "copy": "Copy other stacks' buckets into this stack's.",
    "handover": "Print the input of playbooks and jobs as JSON.",
    "env": "Print the engine's settings as shell lines.",
}
CATALOG = {
    "show": "Show a type or GPU in full, several as tables.",
    "refresh": "Rewrite the tables from the providers' APIs.",
    "charts": "Verify the Helm charts of the table, and complete their digests.",
}
HELP = {"context_settings": {"help_option_names": ["-h", "--help"]}, "rich_markup_mode": None}


class _Deferred(TyperCommand):
    """A sub-command that is known by its summary until it is called."""

    def __init__(self, module: str, name: str, summary: str) -> None:
        super().__init__(name=name, help=summary, rich_markup_mode=None)
        self.module = module

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        one = typer.Typer(**HELP, add_completion=False)
        one.command(self.name)(import_module(f"ops.commands.{self.module}").command)
        return typer.main.get_command(one).make_context(*arguments, **more)


class _Commands(TyperGroup):
    """The sub-commands, in the order of the list."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in COMMANDS.items():
            self.add_command(_Deferred(name, name, summary))
        tables = [_Deferred(f"catalog.{name}", name, summary) for name, summary in CATALOG.items()]
        help_ = "Show or refresh the tables of instance types and GPUs."
        self.add_command(TyperGroup(name="catalog", commands=tables, help=help_, no_args_is_help=True, **HELP))


app = typer.Typer(**HELP, cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def gpufleet() -> None:
    """From a stack file to a GPU cluster to a finished training job."""


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
