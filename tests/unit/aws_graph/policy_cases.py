"""What the policy must refuse, each with the rule that is to say so, and what it must accept."""

from __future__ import annotations

import policy_access_cases
import policy_data_cases
import policy_kubernetes_cases
import policy_network_cases
import policy_nodes_cases
import policy_powers_cases
import policy_trust_cases
from policy_samples import Insecure, Secure

KINDS = {
    "network": policy_network_cases,
    "nodes": policy_nodes_cases,
    "access": policy_access_cases,
    "trust": policy_trust_cases,
    "powers": policy_powers_cases,
    "data": policy_data_cases,
    "kubernetes": policy_kubernetes_cases,
}
INSECURE: Insecure = {f"{kind}: {name}": case for kind, each in KINDS.items() for name, case in each.INSECURE.items()}
SECURE: Secure = {f"{kind}: {name}": case for kind, each in KINDS.items() for name, case in each.SECURE.items()}
