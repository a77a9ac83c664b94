"""Uploading the checkpoints of a run, and downloading the newest one at its start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from training.checkpoint.manifest import CorruptCheckpointError, read_manifest
from training.checkpoint.remote import InvalidEndpointError, ObjectStoreError, Remote, Uploads
from training.checkpoint.store import Store
from training.config.run import Checkpoint
from training.parallel import Ranks

ASK_SECONDS = 2  # between two exchanges of whether an upload is under way and how much time is left


class Copies:
    """The uploads of rank 0; on the other ranks, and without `checkpoint.upload`, nothing is done."""

    def __init__(self, config: Checkpoint, ranks: Ranks, store: Store, note: Callable[[str], None]) -> None:
        self._config, self._ranks, self._store, self._note = config, ranks, store, note
        self._uploads: Uploads | None = None
        self._uploaded: list[int] = []

    def connect(self) -> tuple[str, str] | None:
        """Looks for uploaded checkpoints, and uploads from now on; where it cannot, returns the job's key that is at
        fault, and why."""
        config = self._config
        if config.upload is None or self._ranks.rank != 0:
            return None
        try:
            remote = Remote(config.upload, config.endpoint)
            self._bring(remote)
        except InvalidEndpointError as why:
            return "checkpoint.endpoint", str(why)
        except ObjectStoreError as why:
            return "checkpoint.upload", str(why)
        self._uploads = Uploads(remote, self._note)
        return None

    def _bring(self, remote: Remote) -> None:
        """Fetches the newest uploaded checkpoint where the folder has none as new."""
        newest = self._store.newest().contents
        here = newest.step if newest else -1
        self._uploaded = remote.steps()
        for step in reversed([step for step in self._uploaded if step > here]):
            try:
                remote.fetch(step, self._store)
                self._note(f"checkpoint step {step} downloaded from {self._config.upload}")
                return
            except CorruptCheckpointError as why:
                self._note(f"uploaded checkpoint step {step} skipped: {why}")

    def make_up(self, step: int) -> None:
        """Offers the checkpoint that was loaded, and verified then, where its upload was cut off."""
        folder = self._store.folder(step)
        if step not in self._uploaded and folder.is_dir():
            self.offer(folder)

    def offer(self, folder: Path) -> None:
        """This checkpoint is the newest; where it cannot be read, that is noted."""
        if self._uploads is None:
            return
        try:
            self._uploads.offer(folder, read_manifest(folder, self._store.key))
        except OSError as why:
            self._note(f"{folder.name} is not uploaded: {why}")

    @property
    def sending(self) -> Path | None:
        """The folder that is on its way, which must stay until it is there."""
        return None if self._uploads is None else self._uploads.sending

    def finish(self, step: int, seconds_left: Callable[[], float]) -> None:
        """Returns on all ranks when the newest checkpoint, of this step, is uploaded or has failed, or when a rank has
        no time left; an upload that is given up is reported. All ranks wait: the launcher ends a rank that others leave
        behind."""
        waiting = self._uploads is not None
        while True:
            states = self._ranks.gather((waiting, seconds_left()))
            seconds = min(left for _, left in states)
            if not any(waits for waits, _ in states):
                return
            if seconds <= 0:
                if waiting:
                    self._note(f"step {step} is not uploaded yet: the next start uploads it")
                return
            if self._uploads is not None:
                waiting = not self._uploads.finish(min(seconds, ASK_SECONDS))
