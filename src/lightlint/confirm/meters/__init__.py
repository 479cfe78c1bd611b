"""What is recorded while the program runs: one module a meter, `install(session)` switches it on."""

from __future__ import annotations

import pkgutil


def module_of(meter: str) -> str:
    """The module of a meter, by the name under which probes ask for it.

    Raises:
        ValueError: there is none of that name.
    """
    names = [each.name for each in pkgutil.walk_packages(__path__, f"{__name__}.") if not each.ispkg]
    found = next((name for name in names if name.endswith(f".{meter}")), None)
    if found is None:
        raise ValueError(f"there is no meter {meter}")
    return found
