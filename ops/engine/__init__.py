"""The Pulumi engine as a process, and the repair of what killed ones leave."""
