"""Where the lab's machines are."""

from __future__ import annotations

import socket

from gpu_machines import NETWORK, own_network


def test_runs_at_once_boot_their_machines_in_networks_of_their_own() -> None:
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        assert len({NETWORK, own_network(one), own_network(other)}) == 3
