"""What security groups let through, as a ruleset of nftables in front of a machine."""

from __future__ import annotations

from collections.abc import Sequence

TABLE = """table ip groups
delete table ip groups
table ip groups {{
  chain in {{
    type filter hook input priority 0; policy drop;
    ct state established,related accept
    iifname lo accept
    {ingress}
  }}
  chain out {{
    type filter hook output priority 0; policy drop;
    ct state established,related accept
    oifname lo accept
    {egress}
  }}
}}
"""


def written(ingress: Sequence[str], egress: Sequence[str]) -> str:
    """Groups are stateful: an answer passes. Metadata is served on the loopback, which is never filtered."""
    return TABLE.format(ingress="\n    ".join(ingress), egress="\n    ".join(egress))
