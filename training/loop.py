"""The step loop: batch, forward, backward, reduce, step, report, maybe save, maybe stop."""

from __future__ import annotations

import gc
import platform
import sys
from dataclasses import replace
from functools import partial, reduce
from typing import NamedTuple

import torch
from torch import Tensor

from training import build
from training.allocator import keep_freed_memory
from training.checkpoint.state import State
from training.config.errors import JobError, refusal
from training.config.job import Job
from training.data.batches import MicroBatch, ahead
from training.elastic.deadline import Deadline, StopRequest
from training.elastic.heartbeat import Heartbeat
from training.evaluation import evaluate
from training.metrics import flops
from training.metrics.divergence import Losses
from training.metrics.events import Evaluation, Report, Start, Step
from training.metrics.profiler import Tracer, ranges
from training.metrics.progress import Tracker
from training.metrics.result import Result
from training.metrics.run_files import Record
from training.metrics.straggler import Pace, straggler
from training.metrics.throughput import Meter
from training.optim.ema import Average
from training.optim.loss import cross_entropy
from training.optim.optimizer import build as build_optimizer
from training.optim.optimizer import learning_rate, set_rate
from training.parallel import Agreement, Ranks, Rows, connect, warm_up
from training.precision import Precision


def train(job: Job, *, report: Report | None = None, stop: StopRequest | None = None) -> Result:
    """Runs the job as this rank, from its newest checkpoint, to its end or until any rank's `stop` is requested.

    report: called on rank 0 with what happens. Raises JobError where the job does not fit its ranks, device, data or
    checkpoint.
    """
    try:
        with connect(job.health.start_seconds) as ranks:
            run = Run(job, ranks, report or Report(), stop)
            try:
                with ranges(job.trace):
                    return run.train()
            finally:
                run.close()
    except JobError as error:
        raise error.of_job(job.name) from error


class Begun(NamedTuple):
    """A report whose numbers are on their way: what was measured when its step was done."""

    step: int
    samples_per_second: float
    seconds: float
    rows: Rows


class Run:
    """One start of a job on one rank: everything built, the state loaded, and the loop that uses it."""

    def __init__(self, job: Job, ranks: Ranks, report: Report, stop: StopRequest | None = None) -> None:
        self.job, self.ranks = job, ranks
        if ranks.device.type == "cpu":
            keep_freed_memory()
        self.data = build.data_of(job).to(ranks.device)
        self.steps = job.total_steps(len(self.data.train))
        model = build.model_of(job, self.data).to(ranks.device)
        self.mode = build.mode_of(job, ranks, model, self.data)
        self.precision = Precision(self.mode.compute, ranks.device, deterministic=job.precision.deterministic)
        layout = self.mode.memory_format
        self.model = model.to(memory_format=layout)
        self.losses = Losses(job.health, scaled=self.precision.scaler.is_enabled())
        self.peak = flops.peak(self.mode.compute, ranks.device)
        self.flops = flops.of_sample(self.model, self.data, job.seed) if self.peak else 0.0
        self.pace, self.tracer = Pace(ranks.device), Tracer(job.trace, job.out, ranks.rank)
        self.parallel = build.parallel_of(job, self.model, ranks, self.steps)
        self.optimizer = build_optimizer(job.optimizer, self.model)
        self.parallel.settle(self.optimizer)
        self.batches = build.batches_of(job, self.data, self.parallel, layout)
        shared, own = self.parallel.shared(), self.parallel.own()
        warm_up(self.model, {**shared, **own}, lambda: self.gradients(1, self.batches.at(0)))
        self.pace.lap()  # of no step
        self.average = Average(self.model, job.optimizer.ema)
        extra, scaler = self.average.tensors, self.precision.scaler
        state = State(self.model, self.optimizer, scaler, extra=extra, shared=shared, own=own, rank=ranks.rank)
        reporter = report if ranks.rank == 0 else Report()
        note = report.note if ranks.rank == 0 else partial(print, file=sys.stderr)
        self.checkpoints = build.checkpoints_of(
            job, self.data, ranks, state, self.parallel, durable=reporter.checkpoint, note=note
        )
        self.done = self.checkpoints.restore()
        if self.done > self.steps:
            key = "epochs" if job.steps is None else "steps"
            before = f"step {self.steps} is before the newest checkpoint, step {self.done}, in {job.out}"
            raise refusal(key, f"{before}; set {key} higher, or another out")
        self.tracker = Tracker(job.out, ranks, self.done, again=self.done < self.steps)
        self.record = Record(job.out, reporter, self.done, tensorboard=job.tensorboard) if ranks.rank == 0 else Report()
        self.meter = Meter(job.data.global_batch)
        self.heartbeat, self.deadline = Heartbeat(), Deadline(stop)
        self.begun: Begun | None = None
        self.loss: float | None = None
        self.accuracy: float | None = None

    def train(self) -> Result:
        """The steps that are left, then the final checkpoint, evaluation and result."""
        job, ranks, optimizer = self.job, self.ranks, self.optimizer
        self.report_start()
        if any(ranks.vote(self.stop_requested()).result()):
            return self.stopped(self.done)
        agreement = Agreement(ranks, self.done, self.parallel.stride)
        with ahead(self.batches, range(self.done, self.steps), job.data.workers) as batches:
            for step, parts in enumerate(batches, self.done + 1):
                self.tracer.began(step)
                self.losses.watch(self.gradients(step, parts))
                self.finish_report()
                agreement.ask(step, stop=self.stop_requested(), save=self.checkpoints.overdue())
                set_rate(optimizer, learning_rate(job.optimizer, step - 1, self.steps))
                self.checkpoints.hold()
                self.precision.step(optimizer, job.optimizer.clip_norm)
                self.parallel.stepped(step, optimizer)
                optimizer.zero_grad(set_to_none=True)
                self.average.update(step)
                self.tracker.reached(step)
                self.tracer.ended(step)
                self.meter.count()
                if step == self.done + 1:
                    self.settle()
                if step % job.log_every == 0 or step == self.steps:
                    self.begin_report(step)
                stopping, saving = agreement.settled(step)
                if stopping:
                    return self.stopped(step)
                if (saving or self.checkpoints.due(step)) and step < self.steps:
                    self.finish_report()
                    self.checkpoints.save(step)
                if self.evaluation_due(step) and not self.evaluated(step):
                    return self.stopped(step)
        self.save_last(self.steps)
        return self.result(self.steps) if self.evaluated(self.steps) else self.stopped(self.steps)

    def gradients(self, step: int, parts: list[MicroBatch]) -> Tensor:
        """Forward and backward of this rank's parts, reduced over the ranks; returns the parts' summed loss."""
        losses: list[Tensor] = []
        for part in parts:
            seed(part.seed, self.ranks.device)
            if self.parallel.times_forward:
                self.pace.begin()
            losses.append(self.parallel.forward_backward(part, self.precision, self.summed))
        self.parallel.reduce(step)
        return reduce(torch.add, losses)

    def summed(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """A part's loss; its forward pass ends here, and what follows waits for other ranks."""
        if self.parallel.times_forward:
            self.pace.end()
        return cross_entropy(outputs, targets, self.job.label_smoothing)

    def stop_requested(self) -> bool:
        """Whether this rank is to save and leave; called in every loop, so the heartbeat is here."""
        self.heartbeat.beat()
        return self.deadline.requested()

    def settle(self) -> None:
        """After the first step nothing new is built: spare it the garbage collector, and wait less long for peers."""
        gc.freeze()
        self.checkpoints.prepare()
        self.ranks.wait_at_most(self.job.health.step_seconds)
        if self.done + 1 < self.steps:
            self.meter.restart()

    def stopped(self, step: int) -> Result:
        """Saves this step and ends: all ranks agreed to stop."""
        self.deadline.begin()
        self.save_last(step)
        return self.result(step, finished=False)

    def save_last(self, step: int) -> None:
        """Starts to save this step, unless its report says that the run went wrong; waits for the save before, which
        may take long: the heartbeat pauses until the next beat."""
        self.finish_report()
        self.heartbeat.rest()
        self.checkpoints.save_last(step)

    def evaluation_due(self, step: int) -> bool:
        """The last step's evaluation is not one of these: it follows the final checkpoint."""
        every = self.job.eval.every_steps
        return every is not None and step % every == 0 and step < self.steps

    def evaluated(self, step: int) -> bool:
        """Evaluates and reports it; false where all ranks agreed to stop in the middle."""
        self.finish_report()
        self.checkpoints.hold()
        with self.meter.paused(), self.average.in_place():
            score = evaluate(self.parallel, self.data, self.precision, self.job.eval.batch, self.stop_requested)
        if score is None:
            return False
        self.accuracy = score.accuracy
        seconds = round(self.tracker.seconds(), 3)
        self.record.evaluation(Evaluation(step=step, accuracy=score.accuracy, loss=score.loss, seconds=seconds))
        return True

    def report_start(self) -> None:
        parameters = sum(p.numel() for p in self.model.parameters())
        self.record.start(
            Start(
                name=self.job.name,
                done=self.done,
                steps=self.steps,
                world_size=self.ranks.world,
                parameters=parameters,
                device=device_name(self.ranks.device),
            )
        )

    def begin_report(self, step: int) -> None:
        """Starts the report of a step: the ranks' losses and paces travel while the loop goes on."""
        pace = torch.full((1,), self.pace.lap(), device=self.ranks.device)
        rows = self.ranks.rows(torch.cat([self.losses.sums(), pace]))
        self.begun = Begun(step, self.meter.lap(), round(self.tracker.seconds(), 3), rows)

    def finish_report(self) -> None:
        """Ends the report that was begun, if one was."""
        if self.begun is None:
            return
        (step, rate, seconds, rows), self.begun = self.begun, None
        losses, wrong, paces = zip(*rows.result(), strict=True)
        self.loss = sum(losses) / self.job.data.global_batch / self.parallel.eval_copies
        self.losses.check(step, self.loss, sum(wrong))
        lr = learning_rate(self.job.optimizer, step - 1, self.steps)
        step_report = Step(step=step, steps=self.steps, loss=self.loss, lr=lr, samples_per_second=rate, seconds=seconds)
        used = None if self.peak is None else flops.mfu(rate, self.flops, self.peak, self.ranks.world)
        slowest = straggler(paces) if self.ranks.world > 1 and self.parallel.times_forward else None
        self.record.step(replace(step_report, straggler=slowest, mfu=used))

    def result(self, step: int, *, finished: bool = True) -> Result:
        """Waits until the last checkpoint is durable everywhere, writes what the run came to, waits for the copy."""
        rate = self.meter.overall()
        self.heartbeat.rest()
        self.checkpoints.finish()
        self.tracker.reached(step)
        progress = self.tracker.now
        result = Result(
            name=self.job.name,
            steps=step,
            digest=self.checkpoints.digest() if finished else None,
            accuracy=self.accuracy if finished else None,
            loss=self.loss,
            samples_per_second=round(rate, 1),
            lost_steps=progress.lost_steps,
            restarts=progress.restarts,
            seconds=progress.seconds,
            world_size=self.ranks.world,
            finished=finished,
            device=device_name(self.ranks.device),
            compute=self.mode.compute,
            channels_last=self.mode.channels_last,
            trial_seconds=self.mode.trial_seconds,
            versions={"torch": torch.__version__, "python": platform.python_version()},
        )
        self.record.result(result)
        self.checkpoints.upload(self.deadline.seconds)
        return result

    def close(self) -> None:
        gc.unfreeze()
        self.tracer.close()
        self.tracker.close()
        self.record.close()


def seed(value: int, device: torch.device) -> None:
    """Seeds what a part may draw from. `torch.manual_seed` seeds every kind of device, which takes half a
    millisecond."""
    torch.default_generator.manual_seed(value)
    if device.type == "cuda":
        torch.cuda.manual_seed(value)


def device_name(device: torch.device) -> str:
    """The GPU's product name, or "cpu"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
