"""Which releases of Transformers, TRL, PEFT and Accelerate a project may run with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightlint.facts.releases.compat import removal_tier
from lightlint.facts.versions.versions import Version

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts
    from lightlint.finding import Tier

_LIBRARIES = ("transformers", "trl", "peft", "accelerate")
_TORCH_OF_TODAY = "2.4"  # what Transformers 5 asks for


def tier_since(facts: FileFacts, package: str, since: str) -> Tier | None:
    """How bad what a library refuses `since` a release is; None where its version is out of sight, and others are of older days, or
    where the project has a package of that name, which Python finds first."""
    if facts.project.find_module(package, facts.path.parent) is not None:
        return None
    target = facts.target(package)
    if (target.source == "newest" or target.lower is None) and _is_of_old_days(facts):
        return None
    return removal_tier(target, Version(since))


def _is_of_old_days(facts: FileFacts) -> bool:
    """Whether a version beside it is held back, so that the newest of this one may not go with it."""
    pinned = [facts.target(each) for each in _LIBRARIES]
    old = [each for each in pinned if each.source != "newest" and each.upper is not None]
    return bool(old) or not facts.torch.may_be_at_least(_TORCH_OF_TODAY)
