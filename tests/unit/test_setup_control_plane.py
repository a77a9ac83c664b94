"""The control plane's phase of set-up, with a Go that builds nothing: whole or not at all, and a reason when not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tools import control_plane, controllers
from tools.control_plane import DEFINITIONS, PROGRAMS
from tools.phases import CommandError, PhaseError, SkippedError

ROOT = Path(__file__).resolve().parents[2]
SUMS = {each.module: each.sum for each in DEFINITIONS}
Go = Callable[[Sequence[str]], list[str]]


def silent(_: str) -> None:
    pass


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the modules' files, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "tools").symlink_to(ROOT / "tools")
    return root


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Go]:
    """What the stand-in does for `go env`, `go build`, `go list` and `go mod`, which a test may change."""
    source = tmp_path / "source"
    for definitions in DEFINITIONS:
        file = source / definitions.files.replace("*-crd", "x-crd").replace("*", f"x{len(definitions.module)}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"of {definitions.module}")

    def build(words: Sequence[str]) -> list[str]:
        Path(words[words.index("-o") + 1]).write_text("program")
        return ["k8s.io/api/core/v1"]

    does: dict[str, Go] = {
        "env": lambda _: ["go1.99.0"],
        "build": build,
        "list": lambda _: [str(source)],
        "mod": lambda words: [json.dumps({"Dir": str(source), "Sum": SUMS[words[-1]]})],
    }
    monkeypatch.setattr(control_plane, "command", lambda words, *_, **__: does[words[1]](words))
    return does


def test_what_was_built_is_whole_and_found_the_second_time(checkout: Path, go: dict[str, Go]) -> None:
    assert control_plane.control_plane_phase(checkout, silent).endswith("built from Go modules")

    folder = Path((checkout / ".gpufleet" / "control-plane").read_text().strip())
    assert {file.name for file in folder.iterdir()} == {*PROGRAMS, "stages.yaml", "crds"}
    assert "from" in control_plane.control_plane_phase(checkout, silent)
    assert [each.name for each in folder.parent.iterdir()] == [folder.name]


def test_the_controllers_are_kept_with_their_webhooks_beside_it(checkout: Path, go: dict[str, Go]) -> None:
    (source,) = go["list"]([])
    for webhooks in controllers.WEBHOOKS.values():
        file = Path(source, webhooks.files)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"of {webhooks.module}")

    note = controllers.controllers_phase(checkout, silent)

    folder = Path((checkout / ".gpufleet" / "controllers").read_text().strip())
    assert note == "jobset v0.12.0 and trainer v2.3.0, built from Go modules"
    assert {file.name for file in folder.iterdir()} == {
        *controllers.PROGRAMS,
        *(f"{name}-webhooks.yaml" for name in controllers.PROGRAMS),
    }
    assert folder.parent == control_plane.cache(checkout).parent


def test_without_go_tests_of_kubernetes_are_skipped(checkout: Path, go: dict[str, Go]) -> None:
    def absent(words: Sequence[str]) -> list[str]:
        raise CommandError(words, "did not start: No such file or directory", ())

    go["env"] = absent
    with pytest.raises(SkippedError, match="no Go to build a control plane with: tests of Kubernetes will be skipped"):
        control_plane.control_plane_phase(checkout, silent)


def test_an_old_go_is_as_good_as_none(checkout: Path, go: dict[str, Go]) -> None:
    go["env"] = lambda _: ["go1.19.8"]
    with pytest.raises(SkippedError, match=r"Go 1\.19\.8 is too old"):
        control_plane.control_plane_phase(checkout, silent)


def test_a_build_that_fails_leaves_nothing_and_tells_why(checkout: Path, go: dict[str, Go]) -> None:
    def full(words: Sequence[str]) -> list[str]:
        raise CommandError(words, "ended with exit code 1", ("no space left on device",))

    go["build"] = full
    with pytest.raises(PhaseError) as failed:
        control_plane.control_plane_phase(checkout, silent)
    assert failed.value.tail == ("no space left on device",)
    assert list(control_plane.cache(checkout).parent.iterdir()) == []


def test_a_module_with_other_files_is_refused(checkout: Path, go: dict[str, Go]) -> None:
    go["mod"] = lambda _: ['{"Dir": "/", "Sum": "h1:other"}']
    with pytest.raises(PhaseError, match=r"^sigs\.k8s\.io/kueue@v0\.19\.2 is h1:other, not h1:mPNz"):
        control_plane.control_plane_phase(checkout, silent)
    assert not control_plane.cache(checkout).exists()


def test_two_checkouts_may_build_the_same_at_once(checkout: Path, go: dict[str, Go]) -> None:
    other, folder = go["list"], control_plane.cache(checkout)

    def while_another_is_done(words: Sequence[str]) -> list[str]:
        folder.mkdir()
        (folder / "etcd").write_text("of the other")
        return other(words)

    go["list"] = while_another_is_done
    control_plane.control_plane_phase(checkout, silent)
    assert (folder / "etcd").read_text() == "of the other"
