"""How many ranks the Trainers and Fabrics run that rehearsals of a file make, however they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.ranks.world import FABRIC, TRAINER, Ranks, trainer_ranks
from lightlint.values.core import Constant, Sequence, Unknown

if TYPE_CHECKING:
    from lightlint.engine.arguments import Arguments
    from lightlint.facts.file import FileFacts
    from lightlint.values.core import Value

_ORDER = ("accelerator", "strategy", "devices", "num_nodes")  # of a Fabric


def made_here(facts: FileFacts) -> list[Ranks]:
    """How many ranks each Trainer and Fabric runs that a file makes."""
    calls = (
        call for entry in facts.rehearsed.entries for name in (TRAINER, FABRIC) for call in entry.calls.get(name, ())
    )
    return [ranks_of(call.given) for call in calls]


def lightning_ranks(facts: FileFacts) -> Ranks:
    """How many ranks run Lightning code: as the project says it, and where that leaves it open, as the file's own Trainers do."""
    told = facts.world.lightning
    made = made_here(facts) if told is Ranks.MAYBE else []
    return Ranks.ONE if made and max(made) is Ranks.ONE else told


def ranks_of(given: Arguments) -> Ranks:
    """How many ranks a Trainer or Fabric runs that is made with some arguments."""
    return trainer_ranks(written(given), starred=not given.exact)


def written(given: Arguments) -> dict[str, object]:
    """The constants that a Trainer or Fabric is given, by name."""
    named = (*zip(_ORDER, given.positional, strict=False), *given.keywords.items())
    return {name: _constant(each) for name, each in named}


def _constant(value: Value) -> object:
    if isinstance(value, Sequence) and not value.more:
        return [_constant(each) for each in value.items]
    known = value.default if isinstance(value, Unknown) else value
    return known.value if isinstance(known, Constant) else UNKNOWN
