"""The drills start launchers in the same way as the launcher's own tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "training"))
