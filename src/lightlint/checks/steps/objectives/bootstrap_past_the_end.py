from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.explore.questions.bootstrap import bootstrapped, is_number
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ENDS = re.compile(r"\b(?:dones?|terminated|terminals?|terminations?)\b")
_MASKED = re.compile(r"\[\s*~?\w*(?:done|term|final|mask)\w*\s*\]\s*=|masked_fill|\bwhere\(")


class BootstrapPastTheEnd(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Targets that go on with the value of a next state that an episode may not have, in a program that knows of ends."""
        text = self.facts.source.text
        if not _ENDS.search(text) or _MASKED.search(text):
            return
        for event, factors in bootstrapped(entry):
            others = [each for each in factors if not (isinstance(each, Tensor) and each.answer)]
            target = event.target
            if all(map(is_number, others)) and isinstance(target, Tensor) and target.site is not None:
                message = "the target goes on behind the end of an episode: the value of the next state counts after the last step, too"
                yield Fault(target.site, message, None, (event.site,))
