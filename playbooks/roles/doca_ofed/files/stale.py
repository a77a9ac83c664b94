"""Run on a node: prints what InfiniBand driver the kernel has loaded, if it is another one than the disk has."""

import subprocess
from pathlib import Path

LOADED = Path("/sys/module/mlx5_core/version")

answer = subprocess.run(["modinfo", "-F", "version", "mlx5_core"], capture_output=True, text=True, check=False)
disk, loaded = answer.stdout.strip(), LOADED.read_text().strip() if LOADED.exists() else None
if loaded and disk and loaded != disk:
    print(f"{loaded} is loaded and {disk} installed")
