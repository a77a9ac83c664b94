"""The job: what to train and how. Imports no torch, so that a wrong job file is reported at once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from training.config.data import DATA_SETS, Augment, Batching, Synthetic, SyntheticText
from training.config.errors import JobError, Problem
from training.config.limits import Count, Fraction, Mistakes, Whole
from training.config.model import MODELS, Model
from training.config.optimizer import OPTIMIZERS, Scheduled
from training.config.registry import OneOf
from training.config.run import Checkpoint, Ddp, Fsdp, Health, LocalSgd, Parallel, Pipeline, Tensor, Trace
from training.config.toml_source import fill, present, read, unknown

__all__ = ["Job", "JobError", "load"]

JOBS = Path(__file__).parents[1] / "jobs"
EXCLUSIVE = (frozenset({"steps", "epochs"}), frozenset({"checkpoint.every_steps", "checkpoint.every_seconds"}))


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The numbers of forward and backward; parameters stay fp32.

    compute: auto is the fastest, with the fastest memory format, in a trial of at most 3 s at the first start.
    deterministic: only kernels that compute the same bits every time, which a GPU's fastest ones do not.
    """

    compute: Literal["auto", "fp32", "tf32", "bf16", "fp16"] = "fp32"
    deterministic: bool = False


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
    model: Annotated[Model, OneOf(MODELS)]
    data: Annotated[Batching, OneOf(DATA_SETS)]
    optimizer: Annotated[Scheduled, OneOf(OPTIMIZERS)]
    augment: Augment = field(default_factory=Augment)
    seed: Whole = 1
    steps: Count | None = None
    epochs: Count | None = None
    log_every: Count = 10
    tensorboard: bool = True
    label_smoothing: Fraction = 0.0
    precision: Precision = field(default_factory=Precision)
    parallel: Parallel = field(default_factory=Ddp)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    health: Health = field(default_factory=Health)
    trace: Trace = field(default_factory=Trace)
    eval: Eval = field(default_factory=Eval)

    def rules(self) -> Mistakes:
        if self.steps:
            yield from self.endless_warmup(self.steps)
        if isinstance(self.parallel, Ddp) and self.parallel.shards > self.data.global_batch:
            yield "parallel.shards", f"is larger than data.global_batch = {self.data.global_batch}"
        if self.precision.compute == "fp16" and (why := self.against_fp16()):
            yield "precision.compute", f"fp16 {why}; use bf16 or fp32"
        if isinstance(self.parallel, LocalSgd):
            yield from self.between_averages(self.parallel.every)
            if self.optimizer.ema:
                yield "optimizer.ema", "excludes parallel.kind = localsgd: between its averages ranks differ"
        if self.model.compile and isinstance(self.parallel, Fsdp | Tensor | Pipeline):
            yield "model.compile", f"excludes parallel.kind = {self.parallel.kind}: a model that is cut is not compiled"
        if isinstance(self.data, Synthetic | SyntheticText) and self.data.global_batch > self.data.samples:
            yield "data.global_batch", f"is larger than data.samples = {self.data.samples}"
        yield from self.unfitting()

    def endless_warmup(self, steps: int) -> Mistakes:
        """A warm-up that a run of so many steps does not come to the end of."""
        if self.optimizer.warmup_steps > steps:
            yield "optimizer.warmup_steps", f"is larger than the run's {steps} steps"

    def against_fp16(self) -> str | None:
        """What keeps this job's ranks from scaling the loss, and from leaving out steps that overflowed."""
        match self.parallel:
            case Ddp(compress="powersgd"):
                return "skips steps that overflow, whose gradients powersgd would carry on"
            case Ddp():
                return None
            case LocalSgd():
                return "skips steps that overflow, which each rank of localsgd would do on its own"
            case _:
                return f"scales losses, which {self.parallel.kind} does not"

    def unfitting(self) -> Mistakes:
        """A model that cannot read the data, and changes that the data has no images for."""
        kind, content, reads = self.data.kind, self.data.content, self.model.reads
        if content is not None and content != reads:
            if "images" in (content, reads):
                has, needs = ("images", "tokens") if content == "images" else ("tokens", "images")
                yield "model.kind", f"{self.model.kind} reads {needs}, and data.kind = {kind} has {has}"
            else:
                needs = "running text" if reads == "running text" else "text with classes"
                yield "model.kind", f"{self.model.kind} needs {needs}, which data.kind = {kind} is not"
        if content not in (None, "images") and self.augment != Augment():
            yield "augment", f"changes images, and data.kind = {kind} has none"

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
        steps = self.steps if self.steps is not None else (self.epochs or 0) * per_epoch
        for key, message in self.endless_warmup(steps):
            raise self.refusal(key, message)
        return steps

    def refusal(self, key: str, message: str) -> JobError:
        """The error for a mistake that only shows where the job runs (its ranks, its device, its data)."""
        return JobError(Problem(f"job {self.name}", None, key, message))

    def too_large(self, why: str) -> JobError:
        """What to change where the memory of a device was full, which may happen late in a run, too."""
        if isinstance(self.parallel, Pipeline):
            return self.refusal("parallel.micro_batches", f"{why}; set more than {self.parallel.micro_batches}")
        batch = self.data.micro_batch
        fewer = f"set fewer than {batch}" if batch else "it is 0, a rank's whole share at once: set a part of it"
        return self.refusal("data.micro_batch", f"{why}; {fewer}, or parallel.kind = fsdp")

    def recipe(self) -> dict[str, Any]:
        """What of the job decides the trained weights, as flat dotted keys (see `training.data.recipe`)."""
        tables = {"seed": {"seed": self.seed}, "model": asdict(self.model), "data": asdict(self.data)}
        tables |= {"optimizer": asdict(self.optimizer), "augment": asdict(self.augment)}
        tables["loss"] = {"label_smoothing": self.label_smoothing}
        free = {
            "model.channels_last",
            "model.weights",
            "model.compile",
            "data.micro_batch",
            "data.workers",
            "data.path",
            "data.tokenizer",
            "data.unreadable",
        }
        flat = {f"{table}.{key}": value for table, keys in tables.items() for key, value in keys.items()}
        return {key: [*v] if isinstance(v, tuple) else v for key, v in flat.items() if key not in free}


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
