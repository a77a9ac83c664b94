"""The drills start launchers, and the engine on stand-ins of clouds, in the same way as those parts' own tests."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "unit" / "training"), str(TESTS / "engine")]
