"""Run on a node: prints what InfiniBand driver the kernel has loaded, if it is another one than the disk has."""

import subprocess
from pathlib import Path

LOADED = Path("/sys/module/mlx5_core")
OWN = "the kernel's own driver"  # which tells no version

answer = subprocess.run(["modinfo", "-F", "version", "mlx5_core"], capture_output=True, text=True, check=False)
disk, version = answer.stdout.strip(), LOADED / "version"
loaded = version.read_text().strip() if version.exists() else OWN
if LOADED.exists() and disk and loaded != disk:
    print(f"{loaded} is loaded and {disk} installed")
