"""Where the rendezvous store of a fleet without a head is."""

from __future__ import annotations

from dataclasses import dataclass, field

from infra.handover import Access, Environment, Handover, Store
from ops.clouds.discovery import discovered


@dataclass(frozen=True)
class Instance:
    """A machine of the fleet."""

    id: str
    private_address: str
    state: str = "running"
    tags: dict[str, str] = field(default_factory=lambda: {"gpufleet:group": "gang"})
    hostname: str = "node"
    public_address: str = ""
    made_by: str = "fleet-1"
    attached: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gang:
    name: str = "gang"
    count: int = 2
    tags: dict[str, str] = field(default_factory=lambda: {"gpufleet:group": "gang"})


def seen(handover: Handover, *machines: Instance) -> Handover:
    keys = {machine.id: "ssh-ed25519 A" for machine in machines}
    return discovered(handover, [Gang()], machines, keys, lambda _: "").handover


def test_it_moves_with_the_first_member_that_is_there() -> None:
    handover = Handover(
        stack="x",
        cloud="aws",
        region="us-east-1",
        access=Access(user="ubuntu", key_file="/k", known_hosts_file="/h"),
        nodes=(),
        groups=(),
        storage=(),
        store=Store(host="gang", address="", port=29_400),
        environment=Environment(python="/p"),
    )

    unchanged = seen(handover, Instance("i-5", "10.0.0.5"), Instance("i-6", "10.0.0.6"))
    later = seen(unchanged, Instance("i-6", "10.0.0.6"), Instance("i-9", "10.0.0.9"))

    assert (unchanged.store.address, later.store.address) == ("10.0.0.5", "10.0.0.6")
    assert later.nodes[0].address == later.store.address
