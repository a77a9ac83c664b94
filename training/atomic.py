"""Files written atomically: a reader sees the old content or the new one, never a part of it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Writes a temporary file, syncs and renames it; raises OSError, which names the file, and leaves no temporary
    file."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with aside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        aside.unlink(missing_ok=True)
