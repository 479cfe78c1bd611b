from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Called
from lightlint.explore.questions.certain import anyhow
from lightlint.values.core import Sequence
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class CallbackSharedByFits(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Early stoppers that a Trainer of each turn is given, for a model of its own."""
        found: dict[Called, Fault] = {}
        for path in entry.paths:
            fits = [event for event in path.of(Called) if event.path == "fit" and _stopper(event) is not None]
            changed = {id(event.object) for event in path.of(AttributeSet)}
            for first, second in combinations(fits, 2):
                stopper, model = _stopper(second), second.argument("model", 0)
                shared = stopper is _stopper(first) and first.receiver is not second.receiver
                anew = model is not None and model is not first.argument("model", 0)
                if not shared or not anew or stopper is None or second.receiver is None or first.site != second.site:
                    continue
                asked = "load_from_checkpoint" in getattr(model, "hint", "") or second.argument("ckpt_path") is not None
                if (
                    not asked
                    and not stopper.escaped
                    and id(stopper) not in changed
                    and not any(c.known for c in second.where.conditions)
                ):
                    message = "every fit gets the same `EarlyStopping`: a later one is measured by the best score of those before"
                    site = second.receiver.site
                    found[second] = Fault(
                        site or second.site, message, also=(second.site, second.receiver.site or second.site)
                    )
        yield from (found[event] for event in anyhow(found))


def _stopper(fit: Called) -> Instance | None:
    """The early stopper of the Trainer that fits."""
    trainer = fit.receiver
    given = trainer.arguments.get("callbacks") if trainer is not None and trainer.kind == "trainer" else None
    held = given.items if isinstance(given, Sequence) else [given]
    return next((each for each in held if isinstance(each, Instance) and each.name == "EarlyStopping"), None)
