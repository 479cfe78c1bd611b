"""What a call gives."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from lightlint.values.core import Partial, Site, Value


@dataclass(slots=True)
class Arguments:
    """The arguments of a call; `star` and `double_star` are `*` and `**` arguments that cannot be looked into.

    `said`: the places of keywords that stand elsewhere than in the call, as in the dict of a `**config`. `names`: how what is
    called names what it takes, in the order in which it may be given by place, as far as that is known.
    """

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    star: Value | None = None
    double_star: Value | None = None
    assumed: bool = False  # nobody in sight calls: `*args` and `**kwargs` may hold more
    said: dict[Hashable, Site] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether all that is given is in sight."""
        return self.star is None and self.double_star is None

    def get(self, position: int, name: str) -> Value | None:
        """An argument by position or name, None where it is not given in sight."""
        if name in self.keywords:
            return self.keywords[name]
        place = self.names.index(name) if name in self.names else position
        return self.positional[place] if 0 <= place < len(self.positional) else None

    def by_name(self) -> dict[str, Value]:
        """All that is given in sight: positional ones without a known name as `#0`, `#1` and so on."""
        unnamed = (f"#{place}" for place in range(len(self.names), len(self.positional)))
        return {**dict(zip((*self.names, *unnamed), self.positional, strict=False)), **self.keywords}

    def sure(self) -> dict[str, Value]:
        """The keywords but those of a dict that code out of sight may have given other values."""
        open_dict = self.double_star is not None
        return {name: each for name, each in self.keywords.items() if not (open_dict and name in self.said)}

    def values(self) -> list[Value]:
        """All values given."""
        rest = [each for each in (self.star, self.double_star) if each is not None]
        return [*self.positional, *self.keywords.values(), *rest]

    def behind(self, count: int) -> Arguments:
        """The same without the first positional ones."""
        return self._with(self.positional[count:])

    def with_first(self, *values: Value) -> Arguments:
        """The same with values before the positional ones."""
        return self._with([*values, *self.positional])

    def _with(self, positional: list[Value]) -> Arguments:
        return Arguments(positional, dict(self.keywords), self.star, self.double_star, self.assumed, self.said)


def of_partial(function: Partial, given: Arguments) -> Arguments:
    """What a function is called with that some arguments were given before."""
    full = given.with_first(*function.args)
    full.said = {name: site for name, site in function.said.items() if name not in full.keywords} | full.said
    full.keywords = {**function.keywords, **full.keywords}
    return full
