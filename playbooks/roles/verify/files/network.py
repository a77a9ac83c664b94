"""Checks of the network between nodes: its cards, and the bytes that an all-reduce sent over them.

Counters: Linux, Documentation/ABI/stable/sysfs-class-infiniband (port_xmit_data counts four bytes) and
sysfs-class-net-statistics; EFA's hw_counters, drivers/infiniband/hw/efa/efa_verbs.c.
"""

from node import CheckError

CARDS = "/sys/class/infiniband"
DRIVERS = {"efa": "efa", "erdma": "erdma", "infiniband": "mlx5_core", "roce": "mlx5_core"}


def rdma(node, expected):
    """Every card of the fabric is there, with its driver and a link. Beside named ones others may be down."""
    name, named = expected["fabric"]["name"], expected["fabric"]["hcas"]
    if name not in DRIVERS:
        return "none asked"
    count = len(named) or expected["fabric"]["devices"]
    there = [card for card in node.names(CARDS) if card in named or not named]
    cards = [card for card in there if of_fabric(node, card, DRIVERS[name])]
    if len(cards) < (count or 1):
        raise CheckError(
            f"{len(cards)} of {count or 'at least 1'} {name} cards are there: look at `dmesg`, reboot the node"
        )
    for card in cards:
        state = node.read(f"{CARDS}/{card}/ports/1/state").strip()
        if not state.endswith("ACTIVE"):
            raise CheckError(f"{card} is {state.rpartition(' ')[2]}: check its cable and its driver")
    return f"{len(cards)} {name}"


def of_fabric(node, card, driver):
    """A card that manages NVSwitches joins no nodes."""
    try:
        if not node.resolved(f"{CARDS}/{card}/device/driver").endswith(f"/{driver}"):
            return False
    except FileNotFoundError:
        return False
    return "vpd" not in node.names(f"{CARDS}/{card}/device") or "SW_MNG" not in node.read(f"{CARDS}/{card}/device/vpd")


def all_reduce(node, expected):
    """What `all_reduce` measured before: the nodes' sum was right, fast enough, and went over the fabric."""
    result = expected["all_reduce"]
    if not result:
        return "not measured"
    if "fault" in result:
        raise CheckError(result["fault"])
    if result["moved_mb"] < result["must_move_mb"]:
        raise CheckError(
            f"{result['moved_mb']:.0f} of at least {result['must_move_mb']:.0f} MB went over {result['over']}: "
            f"it took another network, look at NCCL_DEBUG=INFO"
        )
    if result["gb_per_s"] < expected["all_reduce_gb_per_s"]:
        raise CheckError(f"{result['gb_per_s']:.2f} GB/s, at least {expected['all_reduce_gb_per_s']} are asked")
    return f"{result['ranks']} ranks, {result['gb_per_s']:.2f} GB/s, {result['moved_mb']:.0f} MB over {result['over']}"
