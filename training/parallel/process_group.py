"""The process group: rank, world size, device, and the collectives that all ranks call."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, Store, TCPStore  # pyright: ignore[reportPrivateImportUsage]: documented there

CHUNK_BYTES = 256 * 2**20
MOST_GATHERED_BYTES = 64 * 2**20  # of one rank
ROUND = "GPUFLEET_ROUND"  # set by our launcher


class Vote:
    """Numbers on their way to all ranks; `result` is the same everywhere: of each the largest that any rank gave."""

    def __init__(self, values: list[int] | Tensor, work: dist.Work | None = None) -> None:
        self._values, self._work = values, work

    def result(self) -> list[int]:
        if self._work is not None:
            self._work.wait()
        return self._values.tolist() if isinstance(self._values, Tensor) else self._values


class Rows:
    """Every rank's numbers on their way to all, a row each, in the order of the gradients' group; `result` waits for
    them, not for what the device was given since."""

    def __init__(self, rows: Tensor, work: dist.Work | None) -> None:
        self._rows, self._work, self._copied = rows, work, None
        if rows.is_cuda:
            if work is not None:
                work.wait()  # the stream waits, the host does not
            self._rows = torch.empty_like(rows, device="cpu", pin_memory=True)
            self._rows.copy_(rows, non_blocking=True)
            self._work, self._copied = None, torch.cuda.Event()
            self._copied.record()

    def result(self) -> list[list[float]]:
        if self._work is not None:
            self._work.wait()
        if self._copied is not None:
            self._copied.synchronize()
        return self._rows.tolist()


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Rank, world size and device. In a world of one there is no process group and nothing is sent.

    control: a gloo group of all ranks for agreements and loading, apart from the gradients' group, so that an agreement
    needs no device and never waits behind a gradient. saving: one for the thread that writes checkpoints. ways: those
    that a way of training made for itself.
    """

    rank: int
    world: int
    local_rank: int
    device: torch.device
    control: dist.ProcessGroup | None
    saving: dist.ProcessGroup | None
    groups: list[dist.ProcessGroup] = field(default_factory=list)

    def vote(self, *values: int) -> Vote:
        """Starts an agreement (maximum over the ranks) that travels while this rank goes on."""
        if self.control is None:  # called at every step: a tensor would cost more than all else here
            return Vote([*values])
        own = torch.tensor(values)
        return Vote(own, dist.all_reduce(own, dist.ReduceOp.MAX, group=self.control, async_op=True))

    def rows(self, values: Tensor) -> Rows:
        """Starts to give every rank the numbers of all, while this rank goes on; values: [numbers], on the device.
        The reader adds them up: where ranks are as many as cores, gloo's take more from the steps."""
        if self.control is None:
            return Rows(values[None], None)
        rows = values.new_empty(self.world, len(values))
        return Rows(rows, dist.all_gather_into_tensor(rows.flatten(), values, async_op=True))

    def gather(self, value: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
        """Everybody's value, in rank order; for small values of JSON's kinds, since torch's own way would run whatever
        code a peer sends. Where there are peers a tuple comes back as a list, and a dataclass as a dict of its fields.
        group: control where none is given."""
        if not self.control:
            return [value]
        text = json.dumps(value, default=vars).encode()
        group, sizes = group or self.control, torch.empty(self.world, dtype=torch.int64)
        dist.all_gather_into_tensor(sizes, torch.tensor([len(text)]), group=group)
        longest = int(sizes.max())
        if longest > MOST_GATHERED_BYTES:
            raise ValueError(f"a rank gives {longest} bytes to be gathered, more than {MOST_GATHERED_BYTES}")
        rows = torch.empty(self.world, longest, dtype=torch.uint8)
        own = torch.frombuffer(bytearray(text.ljust(longest)), dtype=torch.uint8)
        dist.all_gather_into_tensor(rows.flatten(), own, group=group)
        return [json.loads(row.numpy().tobytes()) for row in rows]

    def broadcast(self, data: bytes | bytearray | None, source: int) -> bytes:
        """The source's bytes, on every rank; others give None."""
        if not self.control:
            assert data is not None
            return bytes(data)
        size = self.gather(len(data) if data is not None else 0)[source]
        buffer = torch.empty(size, dtype=torch.uint8)
        if self.rank == source and data:
            buffer = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        for piece in buffer.split(CHUNK_BYTES):
            dist.broadcast(piece, source, group=self.control)
        return buffer.numpy().tobytes()

    def broadcast_buffers(self, buffers: list[Tensor], group: dist.ProcessGroup | None) -> None:
        """Gives every rank of a group (None: all) the values that its first has in these."""
        if not self.control:
            return
        for kind in dict.fromkeys(buffer.dtype for buffer in buffers):
            alike = [buffer for buffer in buffers if buffer.dtype == kind]
            flat = torch.cat([buffer.flatten() for buffer in alike])
            dist.broadcast(flat, group=group, group_src=0)
            for buffer, values in zip(alike, flat.split([buffer.numel() for buffer in alike]), strict=True):
                buffer.copy_(values.view_as(buffer))

    def wait_at_most(self, seconds: int) -> None:
        """How long a collective may take from now on before the process gives its peers up. Not those of the threads
        that write checkpoints: there a rank waits for another's disk, which may be slow for longer than a step."""
        if self.control:
            for group in (None, self.control, *self.groups):
                dist.set_timeout(timedelta(seconds=seconds), group)

    def barrier(self) -> None:
        """Returns when every rank is here."""
        self.gather(None)


@contextmanager
def connect(patience_seconds: int) -> Iterator[Ranks]:
    """Joins the ranks that torchrun's environment names, or a world of one without it; leaves them at the end.

    patience_seconds: how long a collective may take at first: a peer may still be importing, compiling or reading data.
    """
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if world == 1:
        yield Ranks(rank=0, world=1, local_rank=0, device=device, control=None, saving=None)
        return
    patience = timedelta(seconds=patience_seconds)
    store = round_store(patience)
    dist.init_process_group(
        "nccl" if cuda else "gloo",
        timeout=patience,
        device_id=device if cuda else None,
        **({"store": store, "rank": rank, "world_size": world} if store else {}),
    )
    control, saving = (dist.new_group(backend="gloo", timeout=patience) for _ in range(2))
    assert isinstance(control, dist.ProcessGroup)
    assert isinstance(saving, dist.ProcessGroup)
    try:
        yield Ranks(rank=rank, world=world, local_rank=local_rank, device=device, control=control, saving=saving)
    finally:
        dist.destroy_process_group()


def round_store(patience: timedelta) -> Store | None:
    """The launcher's store, below the name of this round; None under another launcher, such as torchrun, whose
    environment has torch open a store of its own."""
    name = os.environ.get(ROUND)
    if name is None:
        return None
    at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return PrefixStore(name, TCPStore(*at, is_master=False, wait_for_workers=False, timeout=patience))
