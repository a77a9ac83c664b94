"""The elastic agent of this node: torch's LocalElasticAgent with our answers to four questions.

May this job restart at all? How do ranks leave when a node joins? What happens when somebody asks to stop? When is
trying again no use? The overridden methods are the extension points that torch documents for its agents ("Extending
the Agent").
"""

# torch wraps these methods in an untyped decorator, so a checker does not see that they are methods:
# pyright: reportIncompatibleVariableOverride=false, reportCallIssue=false

from __future__ import annotations

import os
import secrets
import signal
import time
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
from training.parallel.process_group import ROUND

STACKS_SECONDS = 2  # for a rank to write where it stands, on a loaded node, too
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
    ) -> None:
        super().__init__(spec, logs, exit_barrier_timeout=EXIT_BARRIER_SECONDS, shutdown_timeout=shutdown_seconds)
        self._logs = logs
        self._request = request
        self._sources = sources
        self._progress = progress
        self._hang_seconds = hang_seconds
        self._ranks: list[int] = []
        self._told = False
        self._before: int | None = None  # the newest checkpoint when the ranks were told to leave

    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        """Find the other nodes. Nothing runs here meanwhile, so a request to stop ends the wait."""
        self._request.idle = True
        if (reason := self._request.reason) is not None:
            raise LaunchExitError(EXIT_PREEMPTED, self._stopped_by(reason))
        super()._rendezvous(worker_group)
        assert worker_group.store is not None
        # All rounds share the store: the ranks of each look below a name that the round's first launcher makes up.
        os.environ[ROUND] = worker_group.store.compare_set("round", "", secrets.token_hex(8)).decode()
        self._request.idle = False

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Start the ranks with SIGTERM blocked: they unblock it once they listen, so none is ever lost."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pids = super()._start_workers(worker_group)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._ranks, self._told = list(pids.values()), False
        return pids

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        """Look after the ranks, ten times a second."""
        if self._request.reason is not None:
            self._ask_to_leave()
            if time.monotonic() > self._request.at + self._shutdown_timeout:
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
        end = time.monotonic() + self._shutdown_timeout
        while time.monotonic() < end and any(map(_runs, self._ranks)):
            time.sleep(0.05)
        super()._stop_workers(worker_group)

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        super()._shutdown(signal.SIGKILL if self._request.at_once else death_sig, timeout)

    def _ask_to_leave(self) -> None:
        """SIGTERM to the ranks, once a round; not to their process groups, whose loaders they still need."""
        if not self._told:
            self._told, self._before = True, self._progress.checkpoint()
            for pid in filter(_runs, self._ranks):
                os.kill(pid, signal.SIGTERM)

    def _end_silent(self) -> None:
        """A rank that does nothing, its interpreter too, answers no signal: it tells its stacks and is killed."""
        for pid, (rank, log) in zip(self._ranks, self._logs.file_of.items(), strict=True):
            seconds = silent_seconds(beat_file(log))
            if seconds > self._hang_seconds and _runs(pid):
                os.kill(pid, signal.SIGUSR1)
                time.sleep(STACKS_SECONDS)
                os.kill(pid, signal.SIGKILL)
                say(f"rank {rank} did nothing for {seconds:.0f} s and is killed; where it stood: {log}")

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
        """The ranks are killed; what they saved since they were told to leave counts."""
        late = f"within {self._shutdown_timeout} s of {reason}"
        if self._progress.checkpoint() == self._before:
            return LaunchExitError(EXIT_FAILED, f"no checkpoint {late}")
        return LaunchExitError(
            EXIT_PREEMPTED, f"{self._stopped_by(reason)}; the ranks did not end {late} and were killed"
        )

    def _stopped_by(self, reason: str) -> str:
        step = self._progress.checkpoint()
        then = "no step was done" if step is None else f"the next launch goes on at step {step}"
        return f"stopped by {reason}; {then}"

    def _goes_on(self) -> str:
        step = self._progress.checkpoint()
        return "starting again" + ("" if step is None else f" at step {step}")


def _runs(pid: int) -> bool:
    """Whether this child of ours has not ended; asked without taking its exit code from torch."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:  # torch took the exit code already
        return False
