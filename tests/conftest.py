"""Ctrl-C reaches what the tests start, also where a shell started the tests themselves in the background."""

import signal

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # what such a shell leaves behind, and children inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)
