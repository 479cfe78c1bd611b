"""Options of the test run, and how hypothesis draws: without a time limit, and in CI the same examples every time.

`HYPOTHESIS_PROFILE=long pytest` draws twenty times as many examples, others each time: for a nightly run.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "short",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # how fast a shared machine draws says nothing of the test
    derandomize="CI" in os.environ,
    print_blob=True,
)
settings.register_profile("long", settings.get_profile("short"), max_examples=1000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expected output of the fixtures")
