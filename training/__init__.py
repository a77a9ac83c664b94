"""What runs on the nodes: launcher, step loop, checkpoints, models and data. Uses torch and numpy; imports no cloud
code."""
