"""Installers as archives: what the real ones need, refuse and leave behind, none of their code.

Sources: AWS EC2 User Guide, "Get started with EFA and MPI"; aws-parallelcluster-cookbook, cookbooks of efa (the line in
efa_installed_packages); Alibaba Cloud, "Configure eRDMA on a GPU instance".
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

EFA = """#!/bin/sh
set -e
case " $* " in *" -y "*) ;; *) echo "Do you want to continue? (y/N)"; exit 1 ;; esac
if grep -q '^ID=ubuntu' /etc/os-release && ! [ -e /usr/share/standin/modules-extra ]; then
  echo "modprobe: FATAL: Module ib_uverbs not found"; exit 1
fi
mkdir -p /opt/amazon/efa/bin /opt/amazon/ofi-nccl/lib
printf '#!/bin/sh\\necho provider: efa\\n' > /opt/amazon/efa/bin/fi_info
chmod 755 /opt/amazon/efa/bin/fi_info
touch /opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so
printf '# EFA installer version: VERSION\\n# Debug packages installed: no\\n' > /opt/amazon/efa_installed_packages
"""
ERDMA = """#!/bin/sh
set -e
[ "$1" = --batch ] && [ "$ERDMA_CM_NO_BOUND_IF" = 1 ]
command -v cmake >/dev/null || { echo "cmake: not found"; exit 1; }
grep -q compat_mode=Y /etc/modprobe.d/*.conf || { echo "the module would be loaded without compat_mode"; exit 1; }
printf '#!/bin/sh\\necho eadm VERSION\\n' > /usr/bin/eadm
chmod 755 /usr/bin/eadm
"""
MOUNTPOINT = """#!/bin/sh
exec python3 /usr/local/lib/standin/standin_disks.py bucket "$@"
"""
# what it brings → the archive's name, the folder in it, its installer
ARCHIVES = {
    "efa": ("aws-efa-installer-{}.tar.gz", "aws-efa-installer", "efa_installer.sh", EFA),
    "mountpoint": ("{0}/x86_64/mount-s3-{0}-x86_64.tar.gz", ".", "bin/mount-s3", MOUNTPOINT),
    "erdma": ("erdma_installer-{}.tar.gz", "erdma_installer", "install.sh", ERDMA),
}


def write(folder: Path, what: str, version: str) -> str:
    """An archive in a folder; its sha256."""
    name, inside, script, text = ARCHIVES[what]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo(f"{inside}/{script}")
        body = text.replace("VERSION", version).encode()
        entry.size, entry.mode = len(body), 0o755
        tar.addfile(entry, io.BytesIO(body))
    archive = folder / name.format(version)
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(packed.getvalue())
    return hashlib.sha256(packed.getvalue()).hexdigest()
