from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called
from lightlint.explore.questions.queries import holds, in_each_mode
from lightlint.facts.values.keywords import keywords
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace
from lightlint.values.core import Constant, number_of

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_RATE = re.compile(
    r"""\bdropout_p(?:["']\s*:|\s*=(?!=))\s*(?!0(?:\.0*)?\s*[,)}\n])(?![^,\n]*\sif\s+self\.training\s+else\s+0(?:\.0*)?\s*[,)}\n])"""
)  # a rate that may be another than none in evaluation mode
_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"


class SdpaDropoutInEval(Check):
    def wants_passes(self) -> bool:
        return _RATE.search(self.facts.source.text) is not None

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Attention that drops values while its module is in evaluation mode."""
        for event in entry.calls.get(_ATTENTION, ()):
            if _drops(event):
                yield Fault.at(event, "this dropout is applied in `eval()` too")

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call) or not self._self_is_visible(node):
            return None
        hidden = (each for each in keywords(self.facts, node) if each.name == "dropout_p")
        given = self.names.argument(node, "dropout_p", 4) or next(hidden, None)
        if given is None:
            return None
        text = f"{self.code.text_of(given.value)} if self.training else 0.0"
        return Repair("drop in training only", replace(self.code, given.value, text), Applicability.UNSAFE)

    def _self_is_visible(self, call: cst.Call) -> bool:
        method = self.tree.function(call)
        return method is not None and bool(method.params.params) and method.params.params[0].name.value == "self"


def _drops(call: Called) -> bool | None:
    rate = call.argument("dropout_p", 4)
    if rate is None or call.where.module is None:
        return None
    if call.where.training:
        return False
    if isinstance(rate, Constant):
        return number_of(rate) != 0
    tested = any(holds(each.key, rate.key) for each in call.where.conditions)
    if tested:
        return False
    return None if rate.key is None or not in_each_mode(call.where) else True
