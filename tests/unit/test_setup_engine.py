"""The engine that set-up chooses, and what it puts beside it."""

from __future__ import annotations

import os
import re
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from tools import engine, system
from tools.engine import at_least, engine_phase, module_version
from tools.phases import CommandError, PhaseError, SkippedError

ROOT = Path(__file__).resolve().parents[2]
WANTED = module_version(ROOT, engine.MODULE)
NEWER, OLDER = "3.999.0", "3.2.0"
BUILT = engine.built


def silent(_: str) -> None:
    pass


def fake(folder: Path, version: str) -> Path:
    """An engine that knows its version and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pulumi"
    path.write_text(f"#!/bin/sh\necho v{version}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose user has an empty cache, no engine on PATH and no Go."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__", ".venv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(engine, "built", no_go)
    return root


def no_go(*_: object) -> Path:
    raise CommandError(["go", "env", "GOVERSION"], "did not start: No such file or directory", ())


def chosen(root: Path) -> Path:
    return Path((root / ".gpufleet" / "engine").read_text().strip())


def cache(tmp_path: Path, version: str) -> Path:
    return tmp_path / "cache" / "gpufleet" / "pulumi" / f"v{version}"


def test_versions_are_compared_as_numbers() -> None:
    assert at_least("3.259.0", "3.99.1")
    assert not at_least("3.99.1", "3.259.0")


def test_the_modules_file_states_the_engines_version_and_the_least_go() -> None:
    assert at_least(WANTED, "3.0.0")
    assert at_least(module_version(ROOT, "go"), "1.20")


def test_the_engine_of_the_cache_is_taken_and_its_path_is_written_down(tmp_path: Path, project: Path) -> None:
    ours = fake(cache(tmp_path, WANTED), WANTED)
    assert engine_phase(project, silent).startswith(f"pulumi {WANTED}, from ")
    assert chosen(project) == ours
    for name in engine.HOSTS:
        assert (ours.parent / name).read_bytes() == (ROOT / "tools" / "language-host" / name).read_bytes()
        assert os.access(ours.parent / name, os.X_OK)


def test_an_older_language_host_of_ours_is_renewed(tmp_path: Path, project: Path) -> None:
    ours = fake(cache(tmp_path, WANTED), WANTED)
    (ours.parent / engine.HOSTS[0]).write_text("#!/usr/bin/env python3\n# of last month\n")
    engine_phase(project, silent)
    assert "of last month" not in (ours.parent / engine.HOSTS[0]).read_text()


def test_a_whole_engine_of_path_is_used_as_it_is(tmp_path: Path, project: Path) -> None:
    theirs = fake(tmp_path / "bin", NEWER)
    (tmp_path / "bin" / engine.HOSTS[0]).write_bytes(b"\x7fELF")
    assert engine_phase(project, silent) == f"pulumi {NEWER}, of {tmp_path / 'bin'}"
    assert chosen(project) == theirs
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == ["pulumi", engine.HOSTS[0]]


def test_an_engine_of_path_without_a_language_host_is_copied_beside_ours(tmp_path: Path, project: Path) -> None:
    fake(tmp_path / "bin", NEWER)
    engine_phase(project, silent)
    assert chosen(project) == cache(tmp_path, NEWER) / "pulumi"
    assert sorted(path.name for path in chosen(project).parent.iterdir()) == sorted(["pulumi", *engine.HOSTS])


def test_an_engine_of_path_that_is_too_old_is_passed_over(tmp_path: Path, project: Path) -> None:
    fake(tmp_path / "bin", OLDER)
    fake(cache(tmp_path, WANTED), WANTED)
    engine_phase(project, silent)
    assert chosen(project) == cache(tmp_path, WANTED) / "pulumi"


def test_an_engine_that_does_not_run_is_made_again(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(cache(tmp_path, WANTED), WANTED).write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setattr(engine, "built", lambda *_: fake(cache(tmp_path, WANTED), WANTED))
    assert engine_phase(project, silent) == f"pulumi {WANTED}, built from Go modules"


def test_without_any_way_to_an_engine_the_reason_and_both_remedies_are_told(project: Path) -> None:
    with pytest.raises(PhaseError) as failed:
        engine_phase(project, silent)
    assert "`go env GOVERSION` did not start" in failed.value.what
    assert f"install Go {module_version(ROOT, 'go')} or newer" in failed.value.remedy
    assert f"pulumi {WANTED} or newer on PATH" in failed.value.remedy
    assert not (project / ".gpufleet" / "engine").exists()


def test_an_engine_is_made_by_go_alone_from_modules_that_the_repository_knows(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def compiler(argv: list[str], *_: object, **__: object) -> list[str]:
        ran.append(argv)
        if "build" in argv:
            fake(tmp_path / "made", WANTED).replace(argv[argv.index("-o") + 1])
        elif argv[0] != "go":
            raise CommandError(argv, "did not start", ())
        return [f"go{module_version(ROOT, 'go')}"]

    monkeypatch.setattr(engine, "built", BUILT)
    monkeypatch.setattr(engine, "command", compiler)

    engine_phase(project, silent)

    assert {Path(argv[0]).name for argv in ran} == {"pulumi", "go"}  # `pulumi version` of the cache, then Go
    assert [argv[2] for argv in ran if argv[:2] == ["go", "build"]] == ["-mod=readonly"]


def test_a_build_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "v1" / "pulumi"

    def broken_off() -> None:
        with engine.replacing(target) as new:
            new.write_text("half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert list(target.parent.iterdir()) == []


def test_go_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "command", lambda *_, **__: ["go1.20.1"])
    with pytest.raises(CommandError, match=r"needs Go [\d.]+ or newer, here is 1\.20\.1"):
        engine.built(ROOT, WANTED, silent)


def test_without_sshd_and_root_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "path_of", lambda program: None if program == "sshd" else f"/usr/bin/{program}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PhaseError, match="no sshd on this computer") as failed:
        system.ssh_phase(silent)
    assert "apt-get install openssh-server" in failed.value.remedy


def test_without_root_the_tests_that_will_be_skipped_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "path_of", lambda program: None)
    with pytest.raises(
        SkippedError, match=r"no systemd-nspawn, mmdebstrap, ip, gpg, nft, rpmbuild, createrepo_c .* machine isolation"
    ):
        system.machines_phase(silent)


def test_the_pages_name_the_providers_of_the_locked_sdks() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    named = set(re.findall(r"(?:plugin install resource |`)(aws|alicloud|kubernetes) (\d+\.\d+\.\d+)", pages))

    assert named == {(name, version(f"pulumi-{name}")) for name in ("aws", "alicloud", "kubernetes")}
