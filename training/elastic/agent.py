"""The elastic agent of a node: torch's LocalElasticAgent, changed in four places.

Which failures end the job; how ranks save and leave when a node joins; how a request to stop is carried out; and when
restarting is given up. The overridden methods are the extension points that torch documents for its agents ("Extending
the Agent").
"""

# torch wraps these methods in an untyped decorator, so a checker does not see that they are methods:
# pyright: reportIncompatibleVariableOverride=false, reportCallIssue=false

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent

from training.elastic.exit_codes import EXIT_BAD_JOB, EXIT_FAILED, EXIT_PREEMPTED, LaunchExitError, say
from training.elastic.failures import Logs, beat_file, first_failure
from training.elastic.heartbeat import silent_seconds
from training.elastic.notices import Source
from training.elastic.progress import ROUNDS_WITHOUT_A_STEP, Progress
from training.elastic.request import Request
from training.elastic.system import CLOCK, PROCESSES, Clock, Processes, random_name
from training.parallel.process_group import ROUND

STACKS_SECONDS = 2  # for a rank to write its stacks, on a loaded node, too
EXIT_BARRIER_SECONDS = 30  # a node that is lost after the last step must not hold the others for long


class Agent(LocalElasticAgent):
    """Runs the ranks of this node, round after round, until the job ends.

    A round ends when a rank fails anywhere or a node joins; the next one starts from the newest checkpoint. `run()`
    returns when the job finished and raises `LaunchExitError` otherwise.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        logs: Logs,
        *,
        request: Request,
        sources: Sequence[Source],
        progress: Progress,
        shutdown_seconds: int,
        hang_seconds: int,
        clock: Clock = CLOCK,
        processes: Processes = PROCESSES,
    ) -> None:
        super().__init__(spec, logs, exit_barrier_timeout=EXIT_BARRIER_SECONDS, shutdown_timeout=shutdown_seconds)
        self._logs = logs
        self._request = request
        self._sources = sources
        self._progress = progress
        self._hang_seconds = hang_seconds
        self._clock, self._processes = clock, processes
        self._ranks: list[int] = []
        self._notified = False
        self._before: int | None = None  # the newest checkpoint when the ranks were notified

    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        """Find the other nodes. Nothing runs here meanwhile, so a request to stop ends the wait."""
        self._request.idle = True
        if (reason := self._request.reason) is not None:
            raise LaunchExitError(EXIT_PREEMPTED, self._stopped_by(reason))
        super()._rendezvous(worker_group)
        assert worker_group.store is not None
        # All rounds share the store: the ranks of each look below a name that the round's first launcher makes up.
        os.environ[ROUND] = worker_group.store.compare_set("round", "", random_name()).decode()
        self._request.idle = False

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Start the ranks with SIGTERM blocked: they unblock it once they listen, so none is ever lost."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pids = super()._start_workers(worker_group)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._ranks, self._notified = list(pids.values()), False
        return pids

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        """Look after the ranks, ten times a second."""
        if self._request.reason is not None:
            self._ask_to_leave()
            if self._clock.monotonic() > self._request.at + self._shutdown_timeout:
                self._request.at_once = True
                raise self._out_of_time(self._request.reason)
        self._end_silent()
        result = super()._monitor_workers(worker_group)
        if result.state is WorkerState.FAILED:
            self._judge(result)
        return result

    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        """Let running ranks save before the next round: a node that joins costs no step."""
        self._ask_to_leave()
        end = self._clock.monotonic() + self._shutdown_timeout
        while self._clock.monotonic() < end and any(map(self._processes.runs, self._ranks)):
            self._clock.sleep(0.05)
        super()._stop_workers(worker_group)

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        super()._shutdown(signal.SIGKILL if self._request.at_once else death_sig, timeout)

    def _ask_to_leave(self) -> None:
        """SIGTERM to the ranks, once a round; not to their process groups, whose loaders they still need."""
        if not self._notified:
            self._notified, self._before = True, self._progress.checkpoint()
            for pid in filter(self._processes.runs, self._ranks):
                self._processes.send(pid, signal.SIGTERM)

    def _end_silent(self) -> None:
        """Have a rank without a heartbeat write its stacks, and kill it: it may not answer any other signal."""
        for pid, (rank, log) in zip(self._ranks, self._logs.file_of.items(), strict=True):
            seconds = silent_seconds(beat_file(log), self._clock)
            if seconds > self._hang_seconds and self._processes.runs(pid):
                self._processes.send(pid, signal.SIGUSR1)
                self._clock.sleep(STACKS_SECONDS)
                self._processes.send(pid, signal.SIGKILL)
                say(f"rank {rank} showed no sign of life for {seconds:.0f} s and is killed; its stacks: {log}")

    def _judge(self, result: RunResult) -> None:
        """Raise `LaunchExitError` when the failed round was the last one; say what happened otherwise."""
        codes = {failure.exitcode for failure in result.failures.values()}
        reason = self._request.reason or next((r for s in self._sources if (r := s.requested()) is not None), None)
        if codes == {EXIT_PREEMPTED}:
            if reason is not None:
                raise LaunchExitError(EXIT_PREEMPTED, self._stopped_by(reason))
            say(f"another node left or joined; {self._goes_on()}")
            return
        failure = first_failure(result.failures, self._logs)
        if reason is not None:
            raise LaunchExitError(EXIT_FAILED, f"stopped by {reason}, but {failure.full()}")
        if EXIT_BAD_JOB in codes:
            raise LaunchExitError(EXIT_BAD_JOB, failure.line())
        self._progress.round_failed()
        if self._progress.stalled:
            raise LaunchExitError(EXIT_FAILED, f"no new step in {ROUNDS_WITHOUT_A_STEP} rounds: {failure.full()}")
        say(f"{failure.line()}; {self._goes_on()}")

    def _out_of_time(self, reason: str) -> LaunchExitError:
        """The ranks are killed; what they saved since they were notified counts."""
        late = f"within {self._shutdown_timeout} s of {reason}"
        if self._progress.checkpoint() == self._before:
            return LaunchExitError(EXIT_FAILED, f"no checkpoint {late}")
        return LaunchExitError(
            EXIT_PREEMPTED, f"{self._stopped_by(reason)}; the ranks did not end {late} and were killed"
        )

    def _stopped_by(self, reason: str) -> str:
        step = self._progress.checkpoint()
        then = "no step was done" if step is None else f"the next launch resumes at step {step}"
        return f"stopped by {reason}; {then}"

    def _goes_on(self) -> str:
        step = self._progress.checkpoint()
        return "restarting" + ("" if step is None else f" from step {step}")
