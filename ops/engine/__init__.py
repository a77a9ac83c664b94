"""The Pulumi engine as a process, and the repair of its state after a killed deployment."""
