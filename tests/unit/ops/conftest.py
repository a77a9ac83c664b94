"""What is rendered in these tests is rendered as the tests of the graph do it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "aws_graph"))
