"""NVIDIA's packages as data: their names, versions, dependencies and traps, none of their code.

Modelled: dependencies by >= (the trap that pins are for), names that lose their branch at 590 on Ubuntu, modules that
exclude each other, a module that is only `added` without the kernel's headers, DCGM 3 that throws version 4 out, and a
package `cuda` that brings a driver along. What the programs in them do stands in standin_gpu.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from apt_repository import Package

DRIVERS = ("580.126.20", "580.178.04", "595.91.07", "610.57.04")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SHARE = "/usr/share/standin"
PROFILER = "nsight-systems-2025.3.2"
NEXT_KERNEL = "6.99.0-next"
IDLE = "/bin/sleep infinity"

# What names the GPUs anew at every boot and for every new driver, but not when they are cut (NVIDIA Container Toolkit
# 1.20, "Automatic CDI Specification Generation").
REFRESH = {
    "/etc/systemd/system/nvidia-cdi-refresh.service": "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
    "Environment=NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/var/run/cdi/nvidia.yaml\nExecStart=/usr/bin/nvidia-ctk cdi generate\n"
    "[Install]\nWantedBy=multi-user.target\n",
    "/etc/systemd/system/nvidia-cdi-refresh.path": "[Path]\nPathChanged=/usr/share/standin/module\n"
    "[Install]\nWantedBy=multi-user.target\n",
}
REFRESHED = "systemctl daemon-reload; systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service || true"


def program(verb: str, module: str = "standin_gpu") -> str:
    return f'#!/bin/sh\nexec python3 /usr/local/lib/standin/{module}.py {verb} "$@"\n'


def unit(command: str, check: str = "/bin/true") -> str:
    service = f"[Service]\nExecStartPre={check}\nExecStart={command}\nExecReload=/bin/true\n"
    return f"[Unit]\nDescription=Stand-in\n{service}[Install]\nWantedBy=multi-user.target\n"


def cuda(distribution: str) -> Iterator[Package]:
    """The repository of driver, CUDA and DCGM. Debian 13 never got the branch 580."""
    for version in DRIVERS:
        if distribution != "debian13" or version > "590":
            yield from _driver(distribution, version)
    yield Package(name="nvlsm", version="2025.10.14-1", files={"/usr/bin/nvlsm": "#!/bin/sh\n"})
    for series, version in (("12-9", "12.9.1-1"), ("13-0", "13.0.2-1")):
        place = f"/usr/local/cuda-{series.replace('-', '.')}/bin/nvcc"
        yield Package(name=f"cuda-toolkit-{series}", version=version, files={place: "#!/bin/sh\n"})
        needs = f"{PROFILER} (>= {PROFILER.rpartition('-')[2]})"
        yield Package(name=f"cuda-nsight-systems-{series}", version=version, depends=needs)
    profiler = {f"/opt/nvidia/{PROFILER}/bin/nsys": "#!/bin/sh\n"}
    yield Package(name=PROFILER, version="2025.3.2.474-1", files=profiler)
    yield Package(name="cuda", version="13.0.2-1", depends="cuda-toolkit-13-0, nvidia-open")
    for version in ("1:4.5.3-1", "1:4.6.0-1"):
        yield from _dcgm(version)
    old = {"/usr/bin/dcgmi": program("dcgmi"), f"{SHARE}/dcgm": "3.3.9\n"}
    yield Package(
        name="datacenter-gpu-manager", version="1:3.3.9-1", files=old, conflicts="datacenter-gpu-manager-4-core"
    )
    yield Package(
        name="datacenter-gpu-manager-exporter",
        version="4.8.2-1",
        depends="datacenter-gpu-manager-4-core",
        files={"/lib/systemd/system/nvidia-dcgm-exporter.service": unit("/usr/bin/python3 -m http.server 9400")},
    )


def toolkit() -> Iterator[Package]:
    """The repository of the container toolkit."""
    for version in ("1.19.1-1", "1.20.0-1"):
        needs = f"nvidia-container-toolkit-base (>= {version}), libnvidia-container-tools (>= {version})"
        yield Package(name="nvidia-container-toolkit", version=version, depends=needs)
        tool = {"/usr/bin/nvidia-ctk": program("nvidia-ctk"), **REFRESH}
        yield Package(name="nvidia-container-toolkit-base", version=version, files=tool, postinst=REFRESHED)
        library = f"libnvidia-container1 (>= {version})"
        yield Package(name="libnvidia-container-tools", version=version, depends=library)
        yield Package(name="libnvidia-container1", version=version)


def lustre() -> Iterator[Package]:
    """The repository of the client of FSx for Lustre, built for one kernel at a time."""
    client = {"/usr/sbin/mount.lustre": program("bucket", "standin_disks")}
    yield Package(name=f"lustre-client-modules-{os.uname().release}", version="2.15.6-1fsx34", files=client)


def doca(version: str) -> Iterator[Package]:
    """DOCA-OFED of one version, whose kernel driver takes the place of the kernel's own when openibd starts."""
    yield Package(
        name="doca-ofed", version=f"{version}-044000", depends="mlnx-ofed-kernel-dkms, mlnx-ofed-kernel-utils"
    )
    module = {f"{SHARE}/mlx5_core": "25.10-1.7.1\n"}
    yield Package(name="mlnx-ofed-kernel-dkms", version="25.10.OFED.25.10.1.7.1.1-1", depends="dkms", files=module)
    started = "/usr/bin/python3 /usr/local/lib/standin/standin_gpu.py openibd"
    service = (
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={started}\n[Install]\nWantedBy=multi-user.target\n"
    )
    files = {"/lib/systemd/system/openibd.service": service}
    yield Package(name="mlnx-ofed-kernel-utils", version="25.10.OFED.25.10.1.7.1.1-1", files=files)


def ossfs(version: str) -> Package:
    """Alibaba Cloud's client of object storage, a package without a repository."""
    client = {"/usr/local/bin/ossfs2": program("ossfs2", "standin_disks")}
    return Package(name="ossfs2", version=version, files=client)


def archive(distribution: str) -> Iterator[Package]:
    """What of the distribution's own archive matters: it has builds of the driver, too, under other names.

    fuse3 takes the place of fuse, and libfuse2 goes by another name since the change to 64-bit time (Debian's and
    Ubuntu's package pages).
    """
    kernel = os.uname().release
    yield Package(name="dkms", version="3.0.11-1", files={"/usr/sbin/dkms": program("dkms")})
    headers = {f"/usr/src/linux-headers-{kernel}/Makefile": "\n"}
    yield Package(name=f"linux-headers-{kernel}", version="1-1", files=headers)
    extra = {f"{SHARE}/modules-extra": "ib_uverbs ib_umad\n"}
    yield Package(name=f"linux-modules-extra-{kernel}", version="1-1", files=extra)
    yield Package(name="cmake", version="3.25.1-1", files={"/usr/bin/cmake": "#!/bin/sh\n"})
    yield Package(name="g++", version="4:12.2.0-3")
    for name, tool in (("mdadm", "mdadm"), ("xfsprogs", "mkfs.xfs"), ("cryptsetup-bin", "cryptsetup")):
        yield Package(name=name, version="4.2-1", files={f"/usr/sbin/{tool}": program(tool, "standin_disks")})
    client = program("bucket", "standin_disks")
    yield Package(name="s3fs", version="1.93-1", depends="fuse", files={"/usr/sbin/mount.fuse.s3fs": client})
    yield Package(name="rclone", version="1.60.1-1", files={"/usr/bin/rclone": client})
    yield Package(name="fuse", version="2.9.9-6")
    yield Package(name="fuse3", version="3.14.0-4", conflicts="fuse", provides="fuse (= 3.14.0-4)")
    renamed = distribution in ("ubuntu2404", "debian13")
    yield Package(name="libfuse2t64" if renamed else "libfuse2", version="2.9.9-6")
    yield Package(name=f"linux-image-{NEXT_KERNEL}", version="6.99-1", files={f"/boot/vmlinuz-{NEXT_KERNEL}": ""})
    headers = {f"/usr/src/linux-headers-{NEXT_KERNEL}/Makefile": "\n"}
    yield Package(name=f"linux-headers-{NEXT_KERNEL}", version="6.99-1", files=headers)
    yield Package(name="docker.io", version="20.10.24-1", files={"/lib/systemd/system/docker.service": unit(IDLE)})
    yield Package(name="infiniband-diags", version="44.0-2")
    yield Package(name="nvidia-persistenced", version="999.1-1")
    yield Package(name="nvidia-driver-595-server-open", version="595.71.05-0ubuntu1")


def red_hat_archive() -> Iterator[Package]:
    """What stands in for RHEL's repositories, EPEL (dkms) and Docker's. Headers go by the kernel's name as a whole."""
    kernel = os.uname().release
    name, version, release = f"kernel-devel-{kernel}".rsplit("-", 2)
    headers = {f"/usr/src/linux-headers-{kernel}/Makefile": "\n"}
    yield Package(name=name, version=f"{version}-{release}", files=headers)
    yield Package(name="kernel-core", version="6.99.0-1.el9")
    yield Package(name="dkms", version="3.2.1-1.el9", files={"/usr/sbin/dkms": program("dkms")})
    yield Package(name="docker-ce", version="28.0.1-1.el9", files={"/lib/systemd/system/docker.service": unit(IDLE)})
    yield Package(name="infiniband-diags", version="51.0-1.el9")


def _driver(distribution: str, version: str) -> Iterator[Package]:
    if distribution.startswith("ubuntu"):
        full, suffix = f"{version}-1ubuntu1", f"-{version.partition('.')[0]}" if version < "590" else ""
        yield from _ubuntu(version, full, suffix)
    elif distribution == "rhel9":
        full = f"3:{version}-1.el9"
        yield from _red_hat(full)
    else:
        full = f"{version}-1"
        yield from _debian(version, full)
    service = {"/lib/systemd/system/nvidia-persistenced.service": unit(IDLE)}
    yield Package(name="nvidia-persistenced", version=full, files=service)
    started = "/usr/bin/nv-fabricmanager"
    manager = {
        f"{SHARE}/fabricmanager": f"{version}\n",
        started: program("fabricmanager"),
        "/lib/systemd/system/nvidia-fabricmanager.service": unit(started, f"{started} --check"),
    }
    yield Package(name="nvidia-fabricmanager", version=full, files=manager)
    for name in ("libnvidia-nscq", "libnvsdm", "nvidia-modprobe", "nvidia-imex"):
        yield Package(name=name, version=full)


def _ubuntu(version: str, full: str, suffix: str) -> Iterator[Package]:
    other = "" if suffix else "-580"
    for flavour in ("-open", ""):
        module = f"nvidia-dkms{suffix}{flavour}"
        yield Package(name=f"nvidia-driver{suffix}{flavour}", version=full, depends=f"{module} (>= {version})")
        rivals = {f"nvidia-dkms{end}{kind}" for end in ("", "-580") for kind in ("", "-open")} - {module}
        yield _module(module, version, full, rivals)
    common = f"libnvidia-common{suffix}"
    yield Package(name=common, version=full, conflicts=f"libnvidia-common{other}")
    tool = {"/usr/bin/nvidia-smi": program("nvidia-smi")}
    yield Package(
        name=f"libnvidia-compute{suffix}",
        version=full,
        depends=f"{common} (>= {version}), nvidia-persistenced (>= {version})",
        conflicts=f"libnvidia-compute{other}",
        files={f"{LIBRARIES}/libnvidia-ml.so.{version}": "", **({} if suffix else tool)},
        links={f"{LIBRARIES}/libnvidia-ml.so.1": f"libnvidia-ml.so.{version}"},
    )
    if suffix:
        needs = f"libnvidia-compute{suffix} (= {full})"
        yield Package(name=f"nvidia-utils{suffix}", version=full, depends=needs, files=tool, conflicts="nvidia-utils")


def _debian(version: str, full: str) -> Iterator[Package]:
    for name, flavour in (("nvidia-open", "-open"), ("cuda-drivers", "")):
        needs = f"nvidia-driver-cuda (>= {version}), nvidia-kernel{flavour}-dkms (>= {version})"
        yield Package(name=name, version=full, depends=needs)
    yield Package(
        name="nvidia-driver-cuda",
        version=full,
        depends=f"nvidia-persistenced (>= {version}), libnvidia-ml1 (>= {version})",
        files={"/usr/bin/nvidia-smi": program("nvidia-smi")},
    )
    yield Package(
        name="libnvidia-ml1",
        version=full,
        files={f"{LIBRARIES}/libnvidia-ml.so.{version}": ""},
        links={f"{LIBRARIES}/libnvidia-ml.so.1": f"libnvidia-ml.so.{version}"},
    )
    modules = {"nvidia-kernel-open-dkms", "nvidia-kernel-dkms"}
    for name in sorted(modules):
        yield _module(name, version, full, modules - {name})


def _red_hat(full: str) -> Iterator[Package]:
    """Its module and what is common to both flavours want each other in one version; the rest is content with newer."""
    version = full.partition(":")[2].partition("-")[0]
    yield Package(name="nvidia-open", version=full, depends=f"nvidia-driver-cuda (>= {full}), kmod-nvidia-open-dkms")
    yield Package(
        name="nvidia-driver-cuda",
        version=full,
        depends=f"nvidia-persistenced (>= {full}), libnvidia-ml (>= {full}), nvidia-kmod-common (= {full})",
        files={"/usr/bin/nvidia-smi": program("nvidia-smi")},
    )
    yield Package(name="nvidia-kmod-common", version=full, depends=f"nvidia-kmod (= {full})")
    library = f"/usr/lib64/libnvidia-ml.so.{version}"
    links = {"/usr/lib64/libnvidia-ml.so.1": f"libnvidia-ml.so.{version}"}
    yield Package(name="libnvidia-ml", version=full, files={library: ""}, links=links)
    modules = {"kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"}
    for name in sorted(modules):
        yield _module(name, version, full, modules - {name}, provides=f"nvidia-kmod (= {full})")


def _module(name: str, version: str, full: str, rivals: set[str], provides: str = "") -> Package:
    flavour = "open" if "-open" in name else "proprietary"
    return Package(
        name=name,
        version=full,
        depends="dkms",
        provides=provides,
        conflicts=", ".join(sorted(rivals)),
        files={f"{SHARE}/module": f"{version} {flavour}\n"},
        postinst="/usr/sbin/dkms autoinstall" if provides else '[ "$1" != configure ] || /usr/sbin/dkms autoinstall',
    )


def _dcgm(version: str) -> Iterator[Package]:
    core, plain = "datacenter-gpu-manager-4-core", version.partition(":")[2].partition("-")[0]
    yield Package(
        name=core,
        version=version,
        conflicts="datacenter-gpu-manager",
        files={
            f"{SHARE}/dcgm": f"{plain}\n",
            "/usr/bin/dcgmi": program("dcgmi"),
            "/lib/systemd/system/nvidia-dcgm.service": unit(IDLE),
        },
    )
    yield Package(name="datacenter-gpu-manager-4-proprietary", version=version, depends=f"{core} (= {version})")
    for major in ("12", "13"):
        for part in (f"cuda{major}", f"proprietary-cuda{major}"):
            name = f"datacenter-gpu-manager-4-{part}"
            yield Package(name=name, version=version, depends=f"{core} (= {version})")
