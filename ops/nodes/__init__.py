"""SSH to nodes: sessions, host keys, the login key."""
