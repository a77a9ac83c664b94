"""Machines of systemd-nspawn behind the instances of a stand-in cloud: its `Land` says what it has of its own."""
