"""Every cloud answers all that the day-by-day commands ask, and refuses what means nothing there in one line."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from infra import registry
from infra.clouds.local.nodes import sweep
from infra.clouds.local.nodes.errors import LocalError
from infra.evaluate import decide
from infra.spec import load
from ops.clouds import base
from ops.commands import up
from ops.console.phases import Phase, Phases
from ops.console.terminal import Screen
from ops.engine.state_repair import EMPTY
from ops.errors import CommandError
from ops.project import Project

REPOSITORY = Path(__file__).resolve().parents[3]
QUIET = Phases(Screen(), quiet=True)


def agreed(*_: object) -> bool:
    raise AssertionError("nobody is asked about what cannot be done, and nothing is made")


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "Engine", agreed)


@pytest.mark.parametrize("cloud", registry.CLOUDS)
def test_a_cloud_has_its_own_word_on_what_has_no_common_answer(cloud: str) -> None:
    loaded = import_module(f"ops.clouds.{cloud}.cloud").Cloud

    assert issubclass(loaded, base.Cloud)
    assert "renewable" in vars(loaded)


@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize("stack", ["local", "onprem-ib", "k8s-a100", "aliyun-a100"])
def test_renewing_what_nobody_bought_is_refused_in_one_line(stack: str) -> None:
    with pytest.raises(CommandError, match=r"^--renew trainer: .+$") as refused:
        up.up(Project(REPOSITORY), stack, QUIET, agreed, renew=["trainer"])

    assert refused.value.code == 2


def test_what_keeps_a_site_from_going_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def busy(_: Path) -> list[str]:
        raise LocalError("cannot unmount it; end what uses it")

    monkeypatch.setattr(sweep, "left_behind", lambda _: ["mount"])
    monkeypatch.setattr(sweep, "remove", busy)
    cloud = base.of(Project(tmp_path), decide(load(REPOSITORY, "local")))

    with pytest.raises(CommandError, match=r"^cannot unmount it; end what uses it$"):
        cloud.clear(EMPTY, Phase("sweep"))


def test_one_group_that_cannot_be_renewed_keeps_all_as_they_are() -> None:
    with pytest.raises(CommandError, match=r"^--renew typo: is not a group .+ has trainer$"):
        up.up(Project(REPOSITORY), "a100-prod", QUIET, agreed, renew=["trainer", "typo"])
