from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from training.checkpoint.digest import digest
from training.checkpoint.state import State
from training.checkpoint.store import Store
from training.checkpoint.writer import Writer


def trained(steps: int, optimizer: str = "AdamW") -> State:
    torch.manual_seed(steps)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 2))
    model.to(memory_format=torch.channels_last)
    made = (
        torch.optim.AdamW(model.parameters()) if optimizer == "AdamW" else torch.optim.SGD(model.parameters(), 0.1, 0.9)
    )
    for _ in range(steps):
        model(torch.randn(4, 1, 5, 5)).sum().backward()
        made.step()
        made.zero_grad()
    return State(model, made, GradScaler("cpu", enabled=True))


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD"])
def test_a_snapshot_put_back_gives_the_same_state_bit_for_bit(optimizer: str):
    one, other = trained(3, optimizer), trained(1, optimizer)
    assert digest(one.tensors()) != digest(other.tensors())

    other.load(one.snapshot())

    assert digest(other.tensors()) == digest(one.tensors())
    assert {name.split(".")[0] for name in one.tensors()} == {"model", "optimizer", "scaler"}


def test_a_snapshot_does_not_change_with_the_model_and_keeps_its_buffers():
    state = trained(2)
    first = state.snapshot()
    before = digest(first)
    with torch.no_grad():
        for tensor in state.model.state_dict().values():
            tensor.add_(1)

    assert digest(first) == before
    assert state.snapshot() is first
    assert digest(first) != before


def test_a_save_that_fails_raises_in_the_loop(tmp_path):
    writer = Writer(Store(tmp_path / "a"), durable=lambda step: None)
    (tmp_path / "a").rmdir()

    writer.save(1, {"w": torch.zeros(1)}, {})

    with pytest.raises(FileNotFoundError):
        writer.wait()
    writer.wait()


def test_the_loop_does_not_wait_for_the_disk_and_one_save_is_in_flight(tmp_path, monkeypatch: pytest.MonkeyPatch):
    disk, told = threading.Event(), []
    store = Store(tmp_path)
    monkeypatch.setattr(store, "save", lambda step, tensors, about: disk.wait(10))
    writer = Writer(store, durable=told.append)

    writer.save(1, {}, {})
    assert told == []
    disk.set()
    writer.save(2, {}, {})
    assert told[0] == 1
    writer.wait()
    assert told == [1, 2]
