"""Ctrl-C reaches what the tests start, also where a shell started the tests themselves in the background; and
property tests try the same cases at every run (`pytest --hypothesis-profile default` tries new ones)."""

import signal

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # what such a shell leaves behind, and children inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)
