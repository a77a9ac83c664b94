"""What runs on the nodes: step loop, checkpoints, models and data. Knows torch and numpy; knows nothing of clouds."""
