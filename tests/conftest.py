"""Options of the test run, and how hypothesis draws: without a time limit, and in CI the same examples every time."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("lightlint", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("lightlint")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expected output of the fixtures")
