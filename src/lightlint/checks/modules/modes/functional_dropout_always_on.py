from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called
from lightlint.explore.questions.queries import holds, in_each_mode
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument
from lightlint.values.core import Value, is_constant
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

# `alpha_dropout` and `feature_alpha_dropout` drop nothing unless they are told to
_DROPOUTS = {f"torch.nn.functional.{name}" for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")}
_DROPS_SINCE = "1.0"  # before, the functions dropped nothing unless they were told to
_MEANT = re.compile(r"(?:^|_)mc(?:$|_|[A-Z])|^MC|monte|bayes|prenet|uncertain|stochastic|always|train", re.IGNORECASE)


class FunctionalDropoutAlwaysOn(Check):
    asks_passes = True

    def stands(self) -> bool:
        return self.facts.torch.may_be_at_least(_DROPS_SINCE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Functions that drop values, without a word of the mode, while the module around them is in evaluation mode."""
        for name in _DROPOUTS & entry.calls.keys():
            for event in entry.calls[name]:
                if _drops(event):
                    message = f"`{event.name}()` without `training=` drops values in `eval()` too"
                    yield Fault.of(event, message)

    def repair(self, call: cst.CSTNode, _fault: Fault) -> Repair | None:
        functions = [each for each in self.tree.ancestors(call) if isinstance(each, cst.FunctionDef)]
        method = next((each for each in functions if self.tree.class_of(each)), None)
        if not isinstance(call, cst.Call) or self.names.call(call) not in _DROPOUTS or method is None:
            return None
        if self.classes.is_static(method) or not method.params.params:
            return None
        first = method.params.params[0].name.value
        draft = insert_argument(self.code, call, f"training={first}.training")
        return Repair(f"follow `{first}.training`", draft, Applicability.UNSAFE)


def _is_asked_for(rate: Value, call: Called) -> bool:
    """Whether a rate is what a pass is given: callers out of sight may give zero where they evaluate."""
    asked = (call.function.node.args for call in call.where.calls if call.function.name != "__init__")
    names = {each.arg for args in asked for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    return isinstance(rate, Tensor) or rate.key in {
        ("parameter", name) for name in names
    }  # a tensor stands for any argument


def _drops(call: Called) -> bool | None:
    where, rate = call.where, call.argument("p", 1)
    if where.module is None:
        return None
    if where.training:
        return False
    if call.argument("training", 2) is not None or not call.given.exact or is_constant(rate, 0, 0.0):
        return False
    names = [where.module.name, *(each.function.name for each in where.calls)]
    if any(_MEANT.search(each) for each in names) or "training" in where.module.attributes:
        return False
    own = rate is not None and any(each is rate for each in where.module.attributes.values())  # no caller gives another
    if rate is not None and not own and _is_asked_for(rate, call):
        return False
    tested = rate is not None and any(holds(e.key, rate.key) and not (e.known and own) for e in where.conditions)
    known = rate is None or rate.key is not None
    return None if tested or not known or not in_each_mode(where) else True
