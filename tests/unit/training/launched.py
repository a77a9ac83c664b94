"""Launchers as a person starts them: real processes, their output, their ranks, their end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

JOB = """\
name = "trial"
seed = 3
steps = {steps}
out = "{out}"
log_every = 1
tensorboard = false
[model]
kind = "cnn"
width = 4
[data]
kind = "synthetic"
global_batch = 16
image_size = 8
samples = 256
held_out = 32
[optimizer]
kind = "sgd"
lr = 0.01
[parallel]
shards = 2
[checkpoint]
every_steps = 5
"""

# The same launcher, whose ranks run another `main`: what a launcher does needs no training to be shown.
STANDIN = """\
import sys, training.elastic.launch as launch
program, real = sys.argv.pop(1), launch.worker_command
launch.worker_command = lambda asked: [program, *real(asked)[2:]]
launch.main(sys.argv[1:])
"""
RANK = """\
import json, os, signal, sys, time, types
from pathlib import Path
out, rank = Path(os.environ["OUT"]), int(os.environ["RANK"])

def step(number):
    (out / "progress").mkdir(parents=True, exist_ok=True)
    (out / "progress" / f"rank-{rank}.json").write_text(json.dumps({"step": number}))
    with (out / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": number, "loss": 0.0}) + "\\n")

PROGRAM
sys.modules["training.__main__"] = module = types.ModuleType("training.__main__")
module.main = main
from training.elastic.worker import main
sys.exit(main())
"""


class Launched:
    """One launcher process and what it left in `out`."""

    def __init__(self, process: subprocess.Popen[str], out: Path) -> None:
        self.process = process
        self.out = out

    def ranks(self) -> list[int]:
        """Its living ranks; torch's import has children, too."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children if alive(int(pid)) and b"run" in command_of(int(pid))]

    def steps(self) -> list[int]:
        """The steps logged so far, in the order they were done."""
        return [row["step"] for row in self.rows() if "loss" in row]

    def rows(self) -> list[dict[str, Any]]:
        file = self.out / "metrics.jsonl"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def result(self) -> dict[str, Any]:
        return json.loads((self.out / "result.json").read_text())

    def checkpoints(self) -> list[int]:
        return sorted(int(folder.name[5:]) for folder in (self.out / "checkpoints").glob("step-????????"))

    def until(self, condition: Callable[[], object]) -> None:
        """Waits for the condition; fails with the launcher's words when it ends first."""
        while not condition():
            assert self.process.poll() is None, f"the launcher ended {self.process.returncode}: {self.end()[1]}"
            time.sleep(0.02)

    def ask(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """Nobody writes to its standard input or reads its standard output any more."""
        for pipe in (self.process.stdout, self.process.stdin):
            assert pipe is not None
            pipe.close()
        self.process.stdin = self.process.stdout = None

    def end(self) -> tuple[int, str]:
        """Exit code and what it said on standard error."""
        _, said = self.process.communicate()
        return self.process.returncode, said


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def command_of(pid: int) -> list[bytes]:
    """Its arguments; none once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


class Launchers:
    """Starts launchers of one job and leaves none behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []

    def __call__(
        self, *options: str, out: str = "out", steps: int = 60, program: str = "", **environment: str
    ) -> Launched:
        """One launcher. program: source of a `main(argv)` that its ranks run instead."""
        job = self.job(out, steps)
        code = ["-m", "training"]
        if program:
            source = self.folder / f"{out}.py"
            source.write_text(RANK.replace("PROGRAM", program))
            code = ["-c", STANDIN, str(source)]
        environment |= {"OUT": str(self.folder / out)}
        return Launched(self.python(*code, "launch", str(job), *options, **environment), self.folder / out)

    def job(self, out: str, steps: int = 60) -> Path:
        """The job file of a run that writes into `out`."""
        file = self.folder / f"{out}.toml"
        file.write_text(JOB.format(out=self.folder / out, steps=steps))
        return file

    def store(self, address: str = "127.0.0.1") -> tuple[subprocess.Popen[str], str]:
        """A rendezvous store and its HOST:PORT."""
        process = self.python("-m", "training", "store", "--bind", address)
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        return process, f"{where['address']}:{where['port']}"

    def python(self, *code: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": str(self.folder), **environment},
        )
        self.started.append(process)
        return process


@contextmanager
def launchers(folder: Path) -> Iterator[Launchers]:
    """Launchers in a folder of their own; whatever still runs at the end is killed."""
    starting = Launchers(folder)
    try:
        yield starting
    finally:
        for process in starting.started:
            with process:  # closes its pipes and waits
                process.kill()  # its ranks die with it: the launcher's own promise
