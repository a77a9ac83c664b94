"""The launcher: runs the ranks of a node, restarts them after a crash, takes in nodes that join."""
