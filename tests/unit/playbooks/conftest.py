"""What runs on nodes is imported here as the nodes do it: each role's programs stand beside each other."""

import sys
from pathlib import Path

ROLES = Path(__file__).parents[3] / "playbooks" / "roles"
sys.path.insert(0, str(ROLES / "verify" / "files"))
