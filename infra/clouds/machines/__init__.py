"""Hosts that one owns: nothing is created, so all that is declared is the handover."""
