from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.explore.questions.bootstrap import bootstrapped, is_answer, is_number
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ENDS = re.compile(r"dones?\b|done_|terminat|terminals?\b|\bis_(?:end|last|final)|\bover\b|finish")
"""Names of ends behind which nothing comes: one that was cut short (`truncated`) goes on."""
_LONGEST = 20  # of a name or a key; a longer text is no key


class BootstrapPastTheEnd(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Targets that go on with the value of a next state that an episode may not have, in a program that knows of ends."""
        words = (each.value for each in self.tree.all(cst.Name, cst.SimpleString))
        if not any(len(each) < _LONGEST and _ENDS.search(each) for each in words):
            return
        for event, factors in bootstrapped(entry):
            answers = [each for each in factors if is_answer(each)]
            others = [each for each in factors if each not in answers]
            target, masked = (
                event.target,
                any(each.filled for each in (event.target, *answers) if isinstance(each, Tensor)),
            )
            if all(map(is_number, others)) and isinstance(target, Tensor) and target.site is not None and not masked:
                message = "the target goes on behind the end of an episode: the value of the next state counts after the last step, too"
                yield Fault(target.site, message, None, (event.site,))
