"""What Lightning does."""

from __future__ import annotations

from dataclasses import dataclass, field

from lightlint.engine.arguments import Arguments
from lightlint.engine.events.base import Event
from lightlint.values.core import Class, Mapping, Sequence, Site, Value, is_constant
from lightlint.values.training import Instance, Module, Optimizer, Schedule


@dataclass(eq=False)
class Logged(Event):
    """One value that `self.log` or `self.log_dict` is given; the name is None where it is out of sight."""

    module: Module
    name: Value | None
    value: Value | None
    keywords: dict[str, Value] = field(default_factory=dict)
    method: str = "log"
    open_keywords: bool = False  # and perhaps other keywords


@dataclass(eq=False)
class LightningAsked(Event):
    """Something was asked of a Trainer, LightningModule or data module, or of a class of these, that the program does not
    define there."""

    object: Value
    name: str


@dataclass(eq=False)
class HyperparametersSaved(Event):
    """`save_hyperparameters` was called: the `arguments` of `__init__` then, of which annotations have `promised` some, what
    it was `given`, and the `hparams` it made."""

    module: Module
    arguments: dict[str, Value]
    promised: frozenset[str]
    given: Arguments
    saved: Instance


@dataclass(eq=False)
class FitStarted(Event):
    """`Trainer.fit`; `in_eval`: the modules of the one that are in eval mode then; `callbacks`: all that the Trainer has, None
    where some may be out of sight."""

    module: Module
    trainer: Instance
    training: bool
    by_mode: bool
    in_eval: list[Module]
    callbacks: list[Instance] | None = None


@dataclass(eq=False)
class EvaluationGiven(Event):
    """What `fit`, `validate`, `test` or `predict` (its `entry`) evaluates a module on; `open`: or on something out of sight;
    `assumed`: nobody in sight calls it."""

    module: Module
    entry: str
    loaders: Value | None
    open: bool
    assumed: bool = False


@dataclass(eq=False)
class Unattached(Event):
    """`__init__` of a Lightning class asked for what only a Trainer brings, where nothing catches what that raises."""

    holder: Instance
    name: str


@dataclass(eq=False)
class Scheduled:
    """A schedule as `configure_optimizers` gives it.

    `interval` is None where it is out of sight; `config` is the dict around the schedule, `beside` the one with its optimizer.
    """

    schedule: Schedule
    interval: str | None
    config: Mapping | None
    beside: Mapping | None

    @property
    def holder(self) -> Mapping | None:
        """The dict that says how it is stepped."""
        return self.config if self.config is not None else self.beside

    @property
    def follows_nothing(self) -> bool:
        """Whether it waits for a metric to get no better, and none is named: Lightning 0.10 and later raises."""
        holder = self.holder
        lacks = holder is None or not (holder.more or "monitor" in holder.items or "reduce_on_plateau" in holder.items)
        lacks |= holder is not None and is_constant(holder.items.get("monitor"), None)
        return self.schedule.name == "ReduceLROnPlateau" and lacks


@dataclass(eq=False)
class Configured(Event):
    """What `configure_optimizers` returned, and what Lightning trains the module with for it.

    `whole`: all that it returned is in sight. `guesses`, `assumptions`: how many tests on the way hung on something unknown,
    and on an option that nobody in sight gives.
    """

    module: Module
    trainer: Instance
    returned: Value
    returned_at: Site | None
    optimizers: list[Optimizer]
    schedules: list[Scheduled]
    automatic: bool | None  # None where the program does not say
    whole: bool = False
    guesses: int = 0
    assumptions: int = 0

    def mappings(self) -> list[Mapping]:
        """The dicts that are meant to hold an optimizer."""
        held = self.returned.items if isinstance(self.returned, Sequence) else [self.returned]
        return [each for each in held if isinstance(each, Mapping)] if self._schedules() is None else []

    def configs(self) -> list[Mapping]:
        """The dicts that are meant to hold a schedule."""
        found = [each.items.get("lr_scheduler") for each in self.mappings()]
        beside = self._schedules()
        found += beside.items if isinstance(beside, Sequence) else [beside]
        return [each for each in found if isinstance(each, Mapping)]

    def _schedules(self) -> Value | None:
        """What stands behind a list of optimizers: a list of schedules or one of them."""
        held = self.returned.items if isinstance(self.returned, Sequence) else []
        return held[1] if len(held) == 2 and isinstance(held[0], Sequence) else None


@dataclass(eq=False)
class StepReturned(Event):
    """`training_step` gave something back, at its `return` where one is `written`."""

    module: Module
    result: Value
    automatic: bool
    written: bool


@dataclass(eq=False)
class MadeFromCheckpoint(Event):
    """`load_from_checkpoint` of a class of the program."""

    cls: Class
    given: Arguments
