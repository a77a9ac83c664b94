"""What the commands need of each cloud beyond the Pulumi engine, one folder a cloud."""
