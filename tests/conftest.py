"""Ctrl-C reaches what the tests start, also where a shell started the tests themselves in the background; and
property tests try the same cases at every run (`pytest --hypothesis-profile default` tries new ones), and no slow
computer makes one of them fail; a test of the long campaigns counts as hung only after hours."""

import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # what such a shell leaves behind, and children inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)

DRILL_SECONDS = 4 * 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("drill"):
            item.add_marker(pytest.mark.timeout(DRILL_SECONDS))
