"""How ranks share a run, when it is saved and when it is stopped: [parallel], [checkpoint], [health] and [trace]."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from training.config.limits import Count, Mistakes, Positive, Whole
from training.config.toml_source import Limit

Several = Annotated[int, Limit(lambda n: n >= 2, "must be 2 or more")]


@dataclass(frozen=True, kw_only=True)
class Ddp:
    """Every rank holds the whole model and a share of the batch; gradients are averaged.

    shards: above 0 so many fixed logical shards, the same bits for every number of ranks up to it.
    compress: how gradients travel. fp16 and bf16 halve the bytes; powersgd sends two thin matrices of `rank` columns
    instead of each large one and keeps what they miss for the next step (Vogels et al. 2019).
    """

    kind: Literal["ddp"] = "ddp"
    shards: Whole = 0
    compress: Literal["none", "fp16", "bf16", "powersgd"] = "none"
    rank: Annotated[int, Limit(lambda n: 1 <= n <= 64, "must be 1 to 64")] = 4

    def rules(self) -> Mistakes:
        if self.shards and self.compress != "none":
            yield "compress", f'excludes shards = {self.shards}: set compress = "none", or shards = 0'


@dataclass(frozen=True, kw_only=True)
class LocalSgd:
    """Ranks step on their own and average weights and optimizer every `every` steps (Lin et al. 2020, post-local SGD).

    after: plain data parallel training for so many steps first.
    """

    kind: Literal["localsgd"] = "localsgd"
    every: Several = 8
    after: Whole = 0

    def rules(self) -> Mistakes:
        if self.after % self.every:
            yield "after", f"must be a multiple of every = {self.every}"


@dataclass(frozen=True, kw_only=True)
class Fsdp:
    """Parameters, gradients and optimizer are cut over all ranks (torch's fully_shard); needs a shared folder."""

    kind: Literal["fsdp"] = "fsdp"


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """Layers are cut over `ways` neighbouring ranks, as the model's own plan says; groups of them share the batch."""

    kind: Literal["tensor"] = "tensor"
    ways: Several = 2


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Consecutive layers are on `stages` ranks, and `micro_batches` run through them one after the other."""

    kind: Literal["pipeline"] = "pipeline"
    stages: Several = 2
    micro_batches: Count = 4
    schedule: Literal["1f1b", "gpipe"] = "1f1b"

    def rules(self) -> Mistakes:
        if self.micro_batches < self.stages:
            yield "micro_batches", f"must be at least stages = {self.stages}: a stage would have nothing to do"


Parallel = Ddp | LocalSgd | Fsdp | Tensor | Pipeline


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """When to save besides the end and an interruption, how many to keep, and where copies go.

    every_seconds: a time, or "auto": the interval that loses least, from the measured cost of a save and `mtbf_hours`
    (see checkpoint/interval.py). mtbf_hours: mean time between interruptions of the whole job; without it 50,000 hours
    a rank. keep: so many newest ones stay, and one that is being sent. upload: s3://bucket/prefix that gets a copy of
    the last checkpoint, and before that of the newest one whenever the copy before it is there; endpoint: URL of
    another service that speaks S3 (OSS: https://s3.oss-REGION.aliyuncs.com). Credentials are never in a job file: boto3
    finds them. key: a file with the key that manifests are signed with; what it has not signed is passed over.
    """

    every_steps: Count | None = None
    every_seconds: Positive | Literal["auto"] | None = None
    mtbf_hours: Positive | None = None
    keep: Annotated[int, Limit(lambda n: n >= 2, "must be 2 or more: the newest may be the damaged one")] = 2
    upload: (
        Annotated[str, Limit(lambda url: url.startswith("s3://") and len(url) > 5, "must be s3://bucket/prefix")] | None
    ) = None
    endpoint: (
        Annotated[
            str, Limit(lambda url: url.startswith(("http://", "https://")), "must begin with http:// or https://")
        ]
        | None
    ) = None
    key: Path | None = None

    def rules(self) -> Mistakes:
        if self.mtbf_hours is not None and self.every_seconds != "auto":
            yield "mtbf_hours", 'needs every_seconds = "auto"'
        if self.endpoint is not None and self.upload is None:
            yield "endpoint", "needs upload = s3://bucket/prefix"


@dataclass(frozen=True, kw_only=True)
class Health:
    """What ends a run that goes wrong.

    finite: stop where a loss is NaN or infinite. spike: stop where a reported loss is so many times the median of the
    twenty before it; 0: never. start_seconds, step_seconds: how long a rank waits for its peers up to the first step
    and from the last save on, and in between. hang_seconds: a rank that does nothing for so long is killed and the
    round starts again.
    """

    finite: bool = True
    spike: Annotated[float, Limit(lambda x: x == 0 or x > 1, "must be 0 or more than 1")] = 0.0
    start_seconds: Count = 600
    step_seconds: Count = 120
    hang_seconds: Count = 300

    def rules(self) -> Mistakes:
        if self.hang_seconds <= self.step_seconds:
            yield "hang_seconds", f"must be more than step_seconds = {self.step_seconds}, or waiting ranks are killed"


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What a few steps do.

    from_step: the first one that torch's profiler records, into trace/; 0: none. steps: so many. nvtx: every operation
    is a range for Nsight Systems (`nsys profile`).
    """

    from_step: Whole = 0
    steps: Count = 3
    nvtx: bool = False
