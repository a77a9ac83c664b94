"""Run on every node at once: sums numbers over all nodes, and counts the bytes that this node's network moved for it.

Argument: {"node","nodes","gpus","mb","store","port","address","fabric"}. Prints {"ranks","gb_per_s","moved_mb",
"must_move_mb","over"}. One process a GPU, with NCCL; without GPUs one process, with gloo. gb_per_s is the bus bandwidth
of NVIDIA's nccl-tests (doc/PERFORMANCE.md): 2 (n - 1) / n of the bytes over the time. However nodes are arranged, each
sends its part and receives the sum: both together are at least the size.
Counters: Linux, Documentation/ABI/stable/sysfs-class-infiniband (port_xmit_data counts four bytes) and
sysfs-class-net-statistics; drivers/infiniband/hw: efa_verbs.c, erdma_verbs.c (whose names began with `hw_` at first).
"""

import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

SECONDS = 60
TIMES = 10
CARDS, WIRES = Path("/sys/class/infiniband"), Path("/sys/class/net")
MELLANOX = ("ports/1/counters", ("port_xmit_data", "port_rcv_data"), 4)
COUNTERS = {
    "efa": ("ports/1/hw_counters", ("tx_bytes", "rx_bytes"), 1),
    "erdma": ("ports/1/hw_counters", ("hw_tx_bytes_cnt", "hw_rx_bytes_cnt", "tx_bytes_cnt", "rx_bytes_cnt"), 1),
    "infiniband": MELLANOX,
    "roce": MELLANOX,
}


def interface(address):
    """The interface that has the node's address, if any: behind a translated address none has it."""
    listing = subprocess.run(["ip", "-json", "address"], capture_output=True, text=True, check=True).stdout
    for link in json.loads(listing):
        if any(is_of(entry, address) for entry in link["addr_info"]):
            return link["ifname"]
    return None


def is_of(entry, address):
    return entry["local"] == address or (address.startswith("127.") and entry["local"].startswith("127."))


def moved_bytes(config, wire):
    """All bytes that this node has sent and received over its fabric, or over its ordinary network without one."""
    if config["fabric"] in COUNTERS:
        folder, names, unit = COUNTERS[config["fabric"]]
        files = [file for card in CARDS.iterdir() for name in names if (file := card / folder / name).exists()]
    else:
        links = [wire] if wire else [link.name for link in WIRES.iterdir() if link.name != "lo"]
        files, unit = [WIRES / link / "statistics" / name for link in links for name in ("tx_bytes", "rx_bytes")], 1
    return unit * sum(int(file.read_text()) for file in files)


def measured(config, local, wire):
    """One rank's part; the node's first one returns what was seen."""
    device = torch.device("cuda", local) if config["gpus"] else torch.device("cpu")
    if config["gpus"]:
        torch.cuda.set_device(device)
    here = max(config["gpus"], 1)
    ranks, rank = config["nodes"] * here, config["node"] * here + local
    dist.init_process_group(
        "nccl" if config["gpus"] else "gloo",
        init_method=f"tcp://{config['store']}:{config['port']}",
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=SECONDS),
    )
    numbers = torch.full((config["mb"] * 250_000,), rank + 1.0, device=device)
    dist.all_reduce(numbers)
    if not bool((numbers == ranks * (ranks + 1) / 2).all()):
        sys.exit("the sum over all nodes is wrong: replace the network card, or the GPU, of one of them")
    numbers.zero_()
    dist.barrier()
    before, began = moved_bytes(config, wire), time.monotonic()
    for _ in range(TIMES):
        dist.all_reduce(numbers)
    if config["gpus"]:
        torch.cuda.synchronize()
    seconds = time.monotonic() - began
    dist.barrier()
    moved = moved_bytes(config, wire) - before
    dist.destroy_process_group()
    size = TIMES * numbers.numel() * numbers.element_size()
    return {
        "ranks": ranks,
        "gb_per_s": round(2 * (ranks - 1) / ranks * size / seconds / 1e9, 3),
        "moved_mb": round(moved / 1e6, 1),
        "must_move_mb": size / 1e6 if config["nodes"] > 1 else 0,
        "over": config["fabric"] if config["fabric"] in COUNTERS else wire or "the network",
    }


def main(config):
    wire = interface(config["address"])
    if wire:
        os.environ["GLOO_SOCKET_IFNAME"] = wire
    others = []
    for local in range(1, config["gpus"]):  # before the first of them has touched its GPU
        if not (child := os.fork()):
            measured(config, local, wire)
            os._exit(0)
        others.append(child)
    result = measured(config, 0, wire)
    if any(os.waitpid(child, 0)[1] for child in others):
        sys.exit("a rank of this node failed: run it with NCCL_DEBUG=INFO")
    print(json.dumps(result))


main(json.loads(sys.argv[1]))
