"""Work that is mostly imports, without Python looking for garbage in between."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses garbage collection, which frees nothing during imports and takes a fifth of their time.

    New objects belong to the oldest generation afterwards: as young objects, all would be scanned at once.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()
        if enabled:
            gc.enable()
