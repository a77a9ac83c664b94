"""What the commands need of each cloud beyond the engine, one folder a cloud."""
