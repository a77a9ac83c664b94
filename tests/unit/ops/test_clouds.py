"""Every cloud answers all that the day-by-day commands ask, and refuses what means nothing there in one line."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from infra.plan import decide
from infra.spec import load
from ops import clouds
from ops.failure import Failure
from ops.project import Project

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("home", clouds.HOMES.values())
def test_a_cloud_has_its_own_word_on_what_has_no_common_answer(home: str) -> None:
    found = import_module(home).Cloud

    assert issubclass(found, clouds.Cloud)
    assert "renew" in vars(found)


@pytest.mark.parametrize("stack", ["local", "onprem-ib", "k8s-a100", "aliyun-a100"])
def test_renewing_what_nobody_bought_is_refused_in_one_line(stack: str) -> None:
    cloud = clouds.of(Project(REPOSITORY), decide(load(REPOSITORY, stack)))

    with pytest.raises(Failure, match=r"^--renew trainer: .+$") as refused:
        cloud.renew("trainer")

    assert refused.value.code == 2
