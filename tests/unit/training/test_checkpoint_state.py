from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from training.checkpoint.digest import digest
from training.checkpoint.snapshot import Snapshot, Writer
from training.checkpoint.state import State


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
def test_a_state_put_back_is_the_same_bit_for_bit(optimizer: str):
    one, other = trained(3, optimizer), trained(1, optimizer)
    assert digest(one.tensors()) != digest(other.tensors())

    other.load({name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in one.tensors().items()})

    assert digest(other.tensors()) == digest(one.tensors())
    assert {name.split(".")[0] for name in one.tensors()} == {"model", "optimizer", "scaler"}
    strides = {name: tensor.stride() for name, tensor in one.tensors().items()}
    assert {name: tensor.stride() for name, tensor in other.tensors().items()} == strides


def test_what_belongs_to_a_rank_or_is_extra_is_filled_in_place():
    model = nn.Linear(2, 2)
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    average, thin, residue = torch.ones(3), torch.ones(1), torch.ones(2)
    extra, shared, own = {"ema.w": average}, {"q": thin}, {"residue": residue}
    state = State(model, sgd, GradScaler("cpu", enabled=False), extra=extra, shared=shared, own=own, rank=7)
    assert set(state.own()) == {"rank.7.residue"}
    assert state.changed_by_gradients() == {"extra.q", "rank.7.residue"}
    filled = {"extra.ema.w": torch.full((3,), 5.0), "extra.q": torch.full((1,), 2.0), "rank.7.residue": torch.zeros(2)}

    state.load({**state.tensors(), **filled})

    assert (average.tolist(), thin.tolist(), residue.tolist()) == ([5.0] * 3, [2.0], [0.0] * 2)


def test_a_snapshot_does_not_change_with_the_model():
    state = trained(2)
    live = state.tensors()
    before = digest(live)
    snapshot = Snapshot(live, state.changed_by_gradients())
    snapshot.begin(live)
    copied = snapshot.complete()
    with torch.no_grad():
        for tensor in state.model.state_dict().values():
            tensor.add_(1)

    assert digest(copied) == before
    assert digest(state.tensors()) != before


def test_buffers_are_copied_before_the_next_forward_and_parameters_before_the_next_step():
    state = trained(2)
    live = state.tensors()
    before = digest(live)
    snapshot = Snapshot(live, state.changed_by_gradients())
    snapshot.begin(live)

    state.model(torch.randn(4, 1, 5, 5))  # changes the running statistics

    assert digest(state.tensors()) != before
    assert digest(snapshot.complete()) == before
    snapshot.hold()  # returns: everything is copied


def test_the_optimizer_waits_for_the_copy():
    snapshot = Snapshot({"w": torch.zeros(1)}, set())
    snapshot.begin({"w": torch.ones(1)})
    held = threading.Thread(target=snapshot.hold, daemon=True)
    held.start()
    held.join(0.1)
    assert held.is_alive()

    snapshot.complete()

    held.join(10)
    assert not held.is_alive()


def test_an_error_of_a_save_is_raised_once_by_the_next_wait():
    def disk_full() -> None:
        raise OSError(28, "No space left on device")

    writer = Writer()
    writer.start("checkpoint 1", disk_full)

    with pytest.raises(OSError, match="No space left"):
        writer.wait()
    writer.wait()


def test_the_loop_does_not_wait_for_the_disk_and_one_save_is_in_flight():
    disk, done = threading.Event(), []
    writer = Writer()

    writer.start("checkpoint 1", lambda: done.append(disk.wait(10)))
    assert done == []
    disk.set()
    writer.start("checkpoint 2", lambda: done.append("second"))
    assert done[0] is True
    writer.wait()
    assert done == [True, "second"]
