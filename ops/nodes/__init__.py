"""SSH to nodes: sessions, host keys, the login key, and Ansible's playbooks."""
