"""The job file's types: what to train and how. Loads without torch, so that a wrong file is told at once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from training.jobfile import JobError, Limit, Problem, fill, present, read, unknown
from training.wanted.limits import Count, Fraction, Mistakes, Positive, Weight, Whole
from training.wanted.run import Checkpoint, Ddp, Health, LocalSgd, Parallel

__all__ = ["Job", "JobError", "load"]

JOBS = Path(__file__).parent / "jobs"
EXCLUSIVE = (frozenset({"steps", "epochs"}), frozenset({"checkpoint.every_steps", "checkpoint.every_seconds"}))


@dataclass(frozen=True, kw_only=True)
class Cnn:
    """Small convolutional network for small images. Without norm no result depends on how a batch is split."""

    kind: Literal["cnn"] = "cnn"
    norm: Literal["none", "batch"] = "none"
    width: Count = 32
    channels_last: bool = True


@dataclass(frozen=True, kw_only=True)
class ResNet:
    """Residual network for images (He et al. 2015), weights exchangeable with torchvision's."""

    kind: Literal["resnet18", "resnet50"]
    channels_last: bool = True


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How a data set is cut into steps.

    global_batch: samples a step over all ranks, whatever their number.
    micro_batch: most samples a rank runs through the model at once; accumulation follows. 0: its whole share.
    workers: threads that prepare batches ahead; 0: in the loop, which is as fast for a set held in memory.
    shift: most pixels a training image is moved at random along each axis.
    warp: most that is added to each entry of the 2 × 2 map a training image is turned, stretched and slanted by.
    """

    global_batch: Count
    micro_batch: Whole = 0
    workers: Whole = 0
    shift: Annotated[int, Limit(lambda n: 0 <= n <= 8, "must be 0 to 8 pixels")] = 0
    warp: Annotated[float, Limit(lambda x: 0 <= x <= 0.5, "must be 0 to 0.5")] = 0.0

    def rules(self) -> Mistakes:
        if self.micro_batch > self.global_batch:
            yield "micro_batch", f"is larger than global_batch = {self.global_batch}"


@dataclass(frozen=True, kw_only=True)
class Mnist5k(Batching):
    """4,000 handwritten digits to train on and 1,000 held out, 28 × 28 pixels."""

    kind: Literal["mnist5k"] = "mnist5k"


@dataclass(frozen=True, kw_only=True)
class Synthetic(Batching):
    """Made-up images that can be learned: a pattern a class under noise. `held_out` of them are for evaluation."""

    kind: Literal["synthetic"] = "synthetic"
    samples: Count = 1024
    held_out: Count = 128
    classes: Annotated[int, Limit(lambda n: n >= 2, "must be 2 or more")] = 10
    image_size: Annotated[int, Limit(lambda n: n >= 8, "must be 8 pixels or more")] = 32
    channels: Count = 3


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """The learning rate: linear warm-up over `warmup_steps`, then down to 0 at the last step, or constant."""

    lr: Positive
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup_steps: Whole = 0
    weight_decay: Weight = 0.0


@dataclass(frozen=True, kw_only=True)
class Sgd(Scheduled):
    """Stochastic gradient descent with (Nesterov) momentum."""

    kind: Literal["sgd"] = "sgd"
    momentum: Fraction = 0.9
    nesterov: bool = False

    def rules(self) -> Mistakes:
        if self.nesterov and not self.momentum:
            yield "nesterov", "needs momentum greater than 0"


@dataclass(frozen=True, kw_only=True)
class AdamW(Scheduled):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    beta1: Fraction = 0.9
    beta2: Fraction = 0.999


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The numbers of forward and backward; parameters stay fp32."""

    compute: Literal["fp32", "tf32", "bf16", "fp16"] = "fp32"


@dataclass(frozen=True, kw_only=True)
class Eval:
    """When to evaluate besides the end, and the samples a rank evaluates at once."""

    every_steps: Count | None = None
    batch: Count = 250


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training job: a job file with its overrides, checked."""

    name: str
    out: Path
    model: Cnn | ResNet
    data: Mnist5k | Synthetic
    optimizer: Sgd | AdamW
    seed: Whole = 1
    steps: Count | None = None
    epochs: Count | None = None
    log_every: Count = 10
    tensorboard: bool = True
    precision: Precision = field(default_factory=Precision)
    parallel: Parallel = field(default_factory=Ddp)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    health: Health = field(default_factory=Health)
    eval: Eval = field(default_factory=Eval)

    def rules(self) -> Mistakes:
        if self.steps and self.optimizer.warmup_steps > self.steps:
            yield "optimizer.warmup_steps", f"is larger than steps = {self.steps}"
        if isinstance(self.parallel, Ddp) and self.parallel.shards > self.data.global_batch:
            yield "parallel.shards", f"is larger than data.global_batch = {self.data.global_batch}"
        if isinstance(self.parallel, LocalSgd):
            yield from self.between_averages(self.parallel.every)
        if isinstance(self.data, Synthetic) and self.data.global_batch > self.data.samples:
            yield "data.global_batch", f"is larger than data.samples = {self.data.samples}"

    def between_averages(self, every: int) -> Mistakes:
        """Between two averages each rank has weights of its own: nothing to save or to judge."""
        for key, steps in (("checkpoint", self.checkpoint.every_steps), ("eval", self.eval.every_steps)):
            if steps is not None and steps % every:
                yield f"{key}.every_steps", f"must be a multiple of parallel.every = {every}"

    def total_steps(self, samples: int) -> int:
        """Steps of the run over a training set of so many samples; an epoch's incomplete last batch is left out."""
        per_epoch = samples // self.data.global_batch
        if per_epoch == 0:
            raise self.refusal("data.global_batch", f"is larger than the training set ({samples} samples)")
        return self.steps if self.steps is not None else (self.epochs or 0) * per_epoch

    def refusal(self, key: str, message: str) -> JobError:
        """The error for a mistake that only shows where the job runs (its ranks, its device, its data)."""
        return JobError(Problem(f"job {self.name}", None, key, message))

    def recipe(self) -> dict[str, Any]:
        """What decides the trained weights, as flat dotted keys: a checkpoint is only resumed with the same recipe."""
        tables = {"seed": {"seed": self.seed}, "model": asdict(self.model), "data": asdict(self.data)}
        tables["optimizer"] = asdict(self.optimizer)
        free = {"model.channels_last", "data.micro_batch", "data.workers"}
        flat = {f"{table}.{key}": value for table, keys in tables.items() for key, value in keys.items()}
        return {key: value for key, value in flat.items() if key not in free}


def load(path_or_name: str | Path, overrides: list[str]) -> Job:
    """The job of a file, or of a name in training/jobs, with `key=value` overrides; JobError holds every mistake."""
    path = find(path_or_name)
    source = read(path)
    for assignment in overrides:
        source.override(assignment, EXCLUSIVE)
    source.tables.setdefault("name", path.stem)
    if isinstance(sharing := source.tables.get("parallel"), dict):
        sharing.setdefault("kind", "ddp")
    source.tables.setdefault("out", f"runs/{source.tables['name']}")
    both = [group for group in EXCLUSIVE if all(present(source.tables, key) for key in group)]
    for group in both:
        first, second = sorted(group, key=lambda key: source.lines.get(key, 0))
        source.complain(second, f"excludes {first}; keep one of them")
    if not any(present(source.tables, key) for key in ("steps", "epochs")):
        source.complain("steps", "is missing; write steps or epochs")
    job = fill(Job, source.tables, source)
    if source.problems or job is None:
        raise JobError(*source.problems)
    return job


def find(path_or_name: str | Path) -> Path:
    """The job file of that path, or of that name in training/jobs; raises JobError with the nearest name."""
    path = Path(path_or_name)
    if path.is_file():
        return path
    named = JOBS / f"{path.name.removesuffix('.toml')}.toml"
    if path.parent == Path() and named.is_file():
        return named
    known = sorted(job.stem for job in JOBS.glob("*.toml"))
    raise JobError(Problem(str(path_or_name), None, "", f"is no file, and {unknown('job', path.stem, known)}"))
