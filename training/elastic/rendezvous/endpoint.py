"""Where the nodes of a job meet, and how many there are, as the command line has it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Endpoint:
    """Where the rendezvous store listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """`HOST:PORT`; raises argparse's error otherwise."""
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Nodes:
    """How many nodes a job may have: it starts with `least` and takes up to `most`."""

    least: int
    most: int

    @classmethod
    def parse(cls, text: str) -> Nodes:
        """`2` or `1:4`; raises argparse's error otherwise."""
        least, _, most = text.partition(":")
        most = most or least
        if not (least.isdecimal() and most.isdecimal() and 1 <= int(least) <= int(most)):
            raise argparse.ArgumentTypeError(f"{text!r} is not MIN or MIN:MAX with 1 ≤ MIN ≤ MAX")
        return cls(int(least), int(most))
