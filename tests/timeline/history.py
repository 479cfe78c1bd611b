"""From what some releases have to the release in which something came, went or changed.

Any choice of releases will do: a name that 1.5.0 lacks and 1.9.5 has came in one of the releases after 1.5.0 and up to
1.9.5. A date that is known already and lies there is kept; else the first release that was read decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lightlint.facts.releases.api import FIRST
from lightlint.facts.versions.versions import Version

Parameters = tuple[str, ...]
History = list[tuple[Version, Parameters]]
"""Signatures, each with the release since which it holds."""


class ContradictionError(ValueError):
    """The data says what a wheel refutes, and only a person can say what should become of the entry."""


@dataclass(frozen=True)
class Lifetime:
    """The release that added a name, if that is known, and the one that removed it, if one has."""

    added: Version | None = FIRST
    removed: Version | None = None


def lifetime(seen: Sequence[tuple[Version, bool]], known: Lifetime) -> Lifetime:
    """When a name came and went.

    Args:
        seen: the releases that were read, in order, and whether each has the name.
        known: what the data says so far.

    Raises:
        ContradictionError: no release has the name where the data says that it is there, or the other way around.
    """
    there = [place for place, (_, present) in enumerate(seen) if present]
    if not there:
        held = [
            version for version, _ in seen if known.added and known.added <= version and not _is_gone(known, version)
        ]
        if held:
            raise ContradictionError(f"the data has it in {held[0]}, the wheel has not")
        return known
    first, last = there[0], there[-1]
    added = _date(known.added, seen[first - 1][0] if first else None, seen[first][0], otherwise=FIRST)
    if last + 1 < len(seen):
        return Lifetime(added, _date(known.removed, seen[last][0], seen[last + 1][0], otherwise=FIRST))
    if known.removed and known.removed <= seen[last][0]:
        raise ContradictionError(f"the data says removed in {known.removed}, the wheel of {seen[last][0]} has it")
    return Lifetime(added, known.removed)


def _is_gone(known: Lifetime, version: Version) -> bool:
    return known.removed is not None and known.removed <= version


def _date(known: Version | None, before: Version | None, until: Version, *, otherwise: Version) -> Version:
    """The known date if it lies after `before` and not after `until`, else `until`."""
    if known and known <= until and (before is None or known > before):
        return known
    return until if before else otherwise


def signatures(seen: Sequence[tuple[Version, Parameters]], known: History, since: Version) -> History:
    """The history of a method's signature.

    Args:
        seen: the releases that were read and have the method, in order.
        known: what the data says so far.
        since: the release that added the method.
    """
    if not seen:
        return known
    start, wanted = seen[0]
    made = [entry for entry in known if entry[0] <= start]
    if not made or made[-1][1] != wanted:
        made = [(since, wanted)]
    for (before, _), (version, wanted) in pairwise(seen):
        between = [entry for entry in known if before < entry[0] <= version]
        if between and between[-1][1] == wanted:
            made += between
        elif made[-1][1] != wanted:
            made.append((version, wanted))
    return made + [entry for entry in known if entry[0] > seen[-1][0]]
