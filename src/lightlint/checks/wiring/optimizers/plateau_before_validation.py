from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, Logged, Scheduled
from lightlint.values.core import is_constant, number_of, text_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_VALIDATION = ("validation_", "on_validation_")
_PERIOD = "check_val_every_n_epoch"


class PlateauBeforeValidation(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Plateau schedules that are stepped in epochs without a validation, which alone logs what they ask for."""
        for path in entry.paths:
            for event in path.of(Configured) if path.finished else ():
                period = number_of(event.trainer.arguments.get(_PERIOD))
                site = event.trainer.site
                if not event.automatic or site is None or not isinstance(period, int) or period < 2:
                    continue
                for each in event.schedules:
                    key = _asked(each, period)
                    if key and _is_validations(path, event, key):
                        asks = f"the `ReduceLROnPlateau` of `{event.module.name}` asks for `{key}`"
                        message = f"{asks} before the first validation, in epoch {period}"
                        yield Fault(site, message, of_call=True, argument=_PERIOD)


def _asked(scheduled: Scheduled, period: int) -> str:
    """The key a plateau schedule is stepped with in epochs without a validation; empty if it never is."""
    holder = scheduled.config or scheduled.beside
    if scheduled.schedule.name != "ReduceLROnPlateau" or scheduled.interval != "epoch" or holder is None or holder.more:
        return ""
    settings = scheduled.config.items if scheduled.config is not None else {}
    given = settings.get("frequency")
    frequency = 1 if given is None else number_of(given)
    strict = "strict" not in settings or is_constant(settings["strict"], True)
    if not strict or not isinstance(frequency, int) or frequency % period == 0:
        return ""
    return text_of(holder.items.get("monitor")) or ""


def _is_validations(path: Path, configured: Configured, key: str) -> bool:
    """Whether the validation logs a key, and surely nothing else does."""
    logged = [event for event in path.of(Logged) if event.module is configured.module]
    names = [text_of(event.name) for event in logged]
    hooks = [event.where.hook for event, name in zip(logged, names, strict=True) if name == key]
    return None not in names and bool(hooks) and all(hook.startswith(_VALIDATION) for hook in hooks)
