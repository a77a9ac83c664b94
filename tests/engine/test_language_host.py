"""The real engine runs Python programs through our language host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from ops.engine import pulumi as engine
from ops.project import Project

REPOSITORY = Path(__file__).resolve().parents[2]
STATED = "name: tried\nruntime: {name: python, options: {virtualenv: .venv}}\nmain: infra/\n"


@dataclass(frozen=True)
class Tried:
    """A project of one small program, and the engine on it."""

    root: Path
    environment: dict[str, str]

    def program(self, text: str) -> None:
        (self.root / "infra" / "__main__.py").write_text(text)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["pulumi", *arguments], check=False, stderr=subprocess.STDOUT, **self.ways())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(["pulumi", *arguments], stderr=subprocess.STDOUT, start_new_session=True, **self.ways())

    def up(self, text: str) -> subprocess.CompletedProcess[str]:
        self.program(text)
        return self(*UP)

    def ways(self) -> dict:
        return {
            "cwd": self.root,
            "env": self.environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "text": True,
        }


UP = ("up", "--yes", "--skip-preview", "--non-interactive", "--color", "never", "--stack", "s")


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """A project with a stack `s`; nothing of the caller's own Pulumi settings gets through."""
    root = tmp_path_factory.mktemp("project")
    (root / "infra").mkdir()
    (root / ".gpufleet" / "pulumi").mkdir(parents=True)
    (root / ".gpufleet" / "engine").write_text(f"{engine.binary(Project(REPOSITORY))}\n")
    (root / ".venv").symlink_to(REPOSITORY / ".venv")
    (root / "Pulumi.yaml").write_text(STATED)
    with pytest.MonkeyPatch.context() as caller:
        for name in [name for name in os.environ if name.startswith("PULUMI_")]:
            caller.delenv(name)
        tried = Tried(root, engine.environment(Project(root)))
    made = tried("stack", "init", "s")
    assert made.returncode == 0, made.stdout
    return tried


def diagnostics(answer: subprocess.CompletedProcess[str]) -> list[str]:
    """The engine's last word: the lines between `Diagnostics:` and the outputs or the resources."""
    told = answer.stdout.split("\nDiagnostics:\n", 1)[1]
    for heading in ("\nOutputs:", "\nResources:"):
        told = told.split(heading, 1)[0]
    return [line.removeprefix("    ") for line in told.splitlines() if line.strip()][1:]


def test_a_program_runs_prints_and_exports(tried: Tried) -> None:
    answer = tried.up("import pulumi\nprint('hello from the program')\npulumi.export('answer', 42)\n")
    assert answer.returncode == 0, answer.stdout
    assert diagnostics(answer) == ["hello from the program"]
    assert json.loads(tried("stack", "output", "--json", "--stack", "s").stdout) == {"answer": 42}


def test_the_program_sees_its_stack_its_configuration_and_its_root(tried: Tried) -> None:
    tried("config", "set", "nodes", "4", "--stack", "s")
    tried("config", "set", "--secret", "token", "hush", "--stack", "s")
    answer = tried.up(
        "import pulumi\nc = pulumi.Config()\n"
        "pulumi.export('seen', [pulumi.get_stack(), c.require_int('nodes'), pulumi.get_root_directory()])\n"
        "pulumi.export('token', c.require_secret('token'))\n"
    )
    assert answer.returncode == 0, answer.stdout
    told = json.loads(tried("stack", "output", "--json", "--stack", "s").stdout)
    assert told == {"seen": ["s", 4, str(tried.root)], "token": "[secret]"}


def test_a_run_error_is_one_line(tried: Tried) -> None:
    answer = tried.up("import pulumi\nraise pulumi.RunError('stacks/Pulumi.s.yaml:3 cluster.cloud: unknown')\n")
    assert answer.returncode != 0
    assert diagnostics(answer) == ["error: stacks/Pulumi.s.yaml:3 cluster.cloud: unknown"]


def test_an_exception_shows_the_users_frames_only(tried: Tried) -> None:
    answer = tried.up(
        "import pulumi\n\ndef inner():\n    try:\n        {}['x']\n    except KeyError as e:\n"
        "        raise ValueError('no such node') from e\n\n"
        "pulumi.Output.from_input(1).apply(lambda _: inner())\n"
    )
    assert answer.returncode != 0
    told = diagnostics(answer)
    program = str(tried.root / "infra" / "__main__.py")
    frames = [line.strip() for line in told if line.strip().startswith("File ")]
    assert frames == [
        f'File "{program}", line {n}, in {where}' for n, where in [(5, "inner"), (9, "<lambda>"), (7, "inner")]
    ]
    assert told[0] == "error: the program failed:"
    assert told[-1] == "ValueError: no such node"


def test_a_syntax_error_shows_the_line_and_nothing_else(tried: Tried) -> None:
    told = diagnostics(tried.up("def (:\n"))
    assert [line.strip() for line in told] == [
        "error: the program failed:",
        f'File "{tried.root / "infra" / "__main__.py"}", line 1',
        "def (:",
        "^",
        "SyntaxError: invalid syntax",
    ]


def test_a_program_that_exits_badly_without_a_word_is_an_error(tried: Tried) -> None:
    answer = tried.up("import sys\nsys.exit(3)\n")
    assert answer.returncode != 0
    assert diagnostics(answer) == ["error: the program ended with exit code 3"]


def test_a_missing_virtual_environment_is_one_clear_line(tried: Tried) -> None:
    (tried.root / "Pulumi.yaml").write_text(STATED.replace(".venv", "nowhere"))
    try:
        answer = tried.up("")
    finally:
        (tried.root / "Pulumi.yaml").write_text(STATED)
    assert answer.returncode != 0
    missing = tried.root / "nowhere" / "bin" / "python"
    assert diagnostics(answer) == [
        f"error: Pulumi.yaml: runtime.options.virtualenv is 'nowhere', but {missing} does not exist"
    ]


def test_ctrl_c_ends_a_program_in_a_long_call_quietly_and_the_lock_is_released(tried: Tried) -> None:
    # what is interrupted is the call, so it only has to outlast the signal; it ends by itself where nobody ends it
    tried.program("import time\nprint('asleep', flush=True)\ntime.sleep(600)\n")
    run = tried.start(*UP)
    assert run.stdout is not None
    said = ""
    while "asleep" not in said:
        assert run.poll() is None, said
        said += run.stdout.readline()
    run.send_signal(signal.SIGINT)
    said += run.communicate()[0]
    assert run.returncode != 0
    assert "Traceback" not in said
    assert list((tried.root / ".gpufleet" / "pulumi").glob(".pulumi/locks/**/*.json")) == []
    assert tried.up("").returncode == 0


def test_an_engine_that_is_killed_takes_its_program_along(tried: Tried) -> None:
    pid_file = tried.root / "pid"
    tried.program(f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()) + '.')\ntime.sleep(60)\n")
    run = tried.start(*UP)
    while not (pid_file.exists() and pid_file.read_text().endswith(".")):
        assert run.poll() is None
        time.sleep(0.05)
    program = Path("/proc", pid_file.read_text().rstrip("."))
    run.kill()
    run.communicate()
    while program.exists() and "Z" not in program.joinpath("stat").read_text().split()[2]:
        time.sleep(0.05)
    tried("cancel", "--yes", "--stack", "s")


def test_the_host_without_the_sdk_says_what_to_do(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.symlink_to(Path(os.path.realpath(REPOSITORY / ".venv" / "bin" / "python")))
    host = engine.binary(Project(REPOSITORY)).parent / "pulumi-language-python"
    answer = subprocess.run(
        [str(python), "-I", str(host), "127.0.0.1:1"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert (
        answer.stderr == f"pulumi-language-python: {python} has no package `pulumi`; run `make setup` in the project\n"
    )
