"""Property tests that depend on nothing but the property: not on the pace of a shared machine, not on earlier runs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("plan", deadline=None, database=None)
settings.load_profile("plan")
