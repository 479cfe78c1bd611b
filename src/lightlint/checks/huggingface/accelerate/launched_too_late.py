from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.facts.tensors.cuda_uses import use_before
from lightlint.facts.values.keywords import keywords
from lightlint.values.core import number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LAUNCHERS = ("accelerate.notebook_launcher", "accelerate.launchers.notebook_launcher")
_PLACE = 2  # of `num_processes`


class LaunchedTooLate(Check):
    """A visitor, too: what uses CUDA before a fork is a question about calls in the text."""

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) not in _LAUNCHERS or not self._starts_several(call) or self._is_in_colab():
            return
        use = use_before(self.facts, call)
        if use is not None:
            self.report(
                use, "CUDA is in use from here on, and the processes that `notebook_launcher` forks cannot use it"
            )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Accelerators that stand there when several processes are launched."""
        for path in entry.paths:
            launched = [each for each in path.of(Called) if each.path in _LAUNCHERS and _starts_several(each)]
            for made in path.of(Called):
                inside = any(each.time < made.time for each in launched)
                if made.path == "accelerate.Accelerator" and launched and not inside and not self._is_in_colab():
                    message = (
                        "`notebook_launcher` raises once an Accelerator stands there: only its function may make one"
                    )
                    yield Fault.at(made, message, launched[0].site)

    def _starts_several(self, launch: cst.Call) -> bool:
        given = [each.value for each in keywords(self.facts, launch) if each.name == "num_processes"]
        by_place = self.names.argument(launch, "num_processes", _PLACE)
        value = given[0] if given else by_place.value if by_place is not None else None
        number = self.names.constant(value)
        return isinstance(number, int) and number > 1

    def _is_in_colab(self) -> bool:
        """Whether it is for Colab, whose machines with one GPU run the function in the kernel itself."""
        return "google.colab" in self.facts.source.text or "colab" in str(self.facts.path)


def _starts_several(launch: Called) -> bool:
    number = number_of(launch.argument("num_processes", _PLACE))
    return number is not None and number > 1
