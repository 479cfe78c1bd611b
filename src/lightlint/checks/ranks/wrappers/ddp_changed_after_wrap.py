from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Backward, Event, Forward, GradientsSwitched, Halved
from lightlint.explore.questions.groups import with_groups
from lightlint.explore.questions.queries import holds
from lightlint.values.core import Class, is_constant
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_NEW = "this is new to a model that DDP has wrapped: its gradients are not exchanged"
_CAST = "this replaces parameters that DDP has wrapped: gradients are not exchanged any more"
_THAWED = "this was frozen when DDP wrapped it: its gradients are not exchanged"
_FROZEN = "this is frozen after DDP has wrapped it, which waits for its gradients and raises"


class DdpChangedAfterWrap(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What is done to a model that DDP has wrapped, which is trained by that wrapper then."""
        for path in with_groups(entry):
            yield from _changes(path)


@dataclass
class _Changed:
    """What was changed behind a wrapping, until a backward pass comes."""

    thawed: dict[Tensor, GradientsSwitched] = field(default_factory=dict)
    frozen: dict[Tensor, GradientsSwitched] = field(default_factory=dict)
    stilled: dict[Tensor, GradientsSwitched] = field(default_factory=dict)  # by which each was frozen last
    cast: dict[Module, Halved] = field(default_factory=dict)
    added: list[AttributeSet] = field(default_factory=list)
    used: dict[Module, None] = field(default_factory=dict)  # the wrappers that ran forward

    def add(self, event: Event) -> None:
        """Take an event in."""
        if isinstance(event, GradientsSwitched):
            for each in event.parameters:
                self.frozen.pop(each, None)
                if event.on:
                    self.thawed[each] = event
                else:
                    self.frozen[each] = self.stilled[each] = event
        elif isinstance(event, Halved):
            self.cast[event.module] = event
        elif isinstance(event, AttributeSet) and isinstance(event.value, (Module, Tensor)):
            self.added.append(event)
        elif isinstance(event, Forward) and event.module.wrapper == "ddp":
            self.used[event.module] = None


def _changes(path: Path) -> Iterator[Fault]:
    changed = _Changed()
    for event in path.events:
        if isinstance(event, Backward):
            yield from _shown_by(event, changed, path)
        else:
            changed.add(event)


def _shown_by(event: Backward, changed: _Changed, path: Path) -> Iterator[Fault]:
    """The changes that tell in a backward pass."""
    reached = set(event.parameters)
    for wrapper in changed.used:
        inner = wrapper.wraps
        if not isinstance(inner, Module) or inner.within_ddp is not wrapper or wrapper.escaped:
            continue
        for each in inner.parameters():
            if each in reached and each not in wrapper.reduced:
                switched = changed.thawed.get(each)
                if switched is not None and _was_frozen(each, wrapper, switched, changed.stilled.get(each), path):
                    yield _told(switched, inner, _THAWED)
                yield from (_told(a, inner, _NEW) for a in changed.added if a.time > wrapper.made and _holds(a, each))
        if reached.isdisjoint(inner.parameters()):
            continue
        for module, cast in changed.cast.items():
            if cast.time > wrapper.made and (module is wrapper or module in inner.modules()):
                yield _told(cast, inner, _CAST)
        off = [changed.frozen[each] for each in wrapper.reduced if each in changed.frozen]
        off = [each for each in off if each.time > wrapper.made]
        finds_unused = is_constant(wrapper.arguments.get("find_unused_parameters"), True)
        if off and not finds_unused and not wrapper.open_arguments:
            yield _told(off[0], inner, _FROZEN)


def _was_frozen(
    parameter: Tensor, wrapper: Module, thawed: GradientsSwitched, stilled: GradientsSwitched | None, path: Path
) -> bool:
    """Whether a parameter surely was frozen when it was wrapped, and is thawed behind that.

    One that a module out of sight showed later may have been thawed before. So may one that is told by its name, and by
    other words there than those by which it is frozen and thawed.
    """
    if thawed.time < wrapper.made or parameter.made > wrapper.made:
        return False
    name = ("parameter name", parameter.made)
    switches = [thawed, stilled] if stilled is not None else [thawed]
    behind = [each.key for switch in switches for each in switch.where.conditions]
    asked = [key for key in path.machine.answers if holds(key, name)]
    return all(any(holds(each, key) for each in behind) for key in asked)


def _holds(event: AttributeSet, parameter: Tensor) -> bool:
    value = event.value
    return value is parameter or (isinstance(value, Module) and any(each is parameter for each in value.parameters()))


def _told(event: Event, inner: Module, message: str) -> Fault:
    """A fault where a method of the wrapped module is called that makes the change, or where it is made."""
    line = inner.cls.lineage() if isinstance(inner.cls, Class) else []
    place: Site = next((each.site for each in event.where.calls if each.function.owner in line), event.site)
    return Fault(place, message, None, (event.site,))
