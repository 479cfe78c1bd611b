"""What a run proves: probes judge recorded events, one by the name that a rule's page gives in `confirm:`.

A probe is a pure function of a claim and a run. It needs no torch, keeps no state and never guesses: what the events do
not show stays open or unobservable.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from lightlint.confirm.probes.probe import Probe


@cache
def all_probes() -> dict[str, Probe]:
    """Every probe by name.

    Raises:
        ValueError: two modules define one name.
    """
    probes: dict[str, Probe] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        found: dict[str, Probe] = getattr(importlib.import_module(module.name), "PROBES", {})
        if twice := probes.keys() & found.keys():
            raise ValueError(f"defined twice: {', '.join(sorted(twice))}")
        probes.update(found)
    return probes
