"""What may put a module in eval mode before something runs, helpers and functions of other files included."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.across import OUTSIDE
from lightlint.facts.values import SAME_OBJECT

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 4
_SETS_MODE = re.compile(r"\.(?:eval\(|train\([^)\s])|\btraining\s*=")


class ModeSetting:
    """What sets the modes of modules in one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts

    def _may_be(self, node: cst.CSTNode, makers: set[cst.CSTNode], depth: int) -> bool:
        """Whether something may have set the mode before a node runs, in its function or at a call of that, up to
        where the module is made."""
        owner = self._facts.tree.owner(node)
        flow = self._facts.flow(owner)
        setting = [each for each in self._facts.tree.own(owner, cst.Call) if each is not node and self.may_set(each)]
        if any(flow.reaches(each, [node]) for each in setting):
            return True
        if not isinstance(owner, cst.FunctionDef) or makers == {owner}:
            return False
        calls = self._facts.steps.calls_of.get(owner, ())
        return not calls or depth > _DEPTH or any(self._may_be(each, makers, depth + 1) for each in calls)

    def may_set(self, call: cst.Call) -> bool:
        """Whether a call is, or leads to, anything that may put a module in eval mode."""

        def sets(each: cst.Call) -> bool:
            method = self._facts.names.method(each)
            plain = method == "train" and not each.args and isinstance(each.func, cst.Attribute)
            return (
                not plain
                and not self._facts.steps.callee(each)
                and bool(re.search(r"(?:^|_)(?:eval\w*|train|apply|modes?)$", method) or self._sets_elsewhere(each))
            )

        return self._facts.steps.leads(call, sets)

    def _sets_elsewhere(self, call: cst.Call) -> bool:
        """Whether a call is one of a function of another file that sets the mode of something."""
        name = self._facts.names.call(call) or ""
        if "." not in name or name.startswith(OUTSIDE):
            return False
        project, near = self._facts.project, self._facts.path
        path = project.find_function(name, near.parent)
        return path is not None and path != near and bool(_SETS_MODE.search(project.text(path)))

    def _named(self, made: cst.Call) -> str:
        """The name that an assignment gives to a new object, which methods such as `to` may have handed on."""
        value: cst.CSTNode = made
        above = self._facts.tree.parent(value)
        while isinstance(above, cst.Attribute) and above.attr.value in SAME_OBJECT:
            value = self._facts.tree.parent(above) or above
            above = self._facts.tree.parent(value)
        plain = isinstance(above, cst.Assign) and above.value is value and len(above.targets) == 1
        target = above.targets[0].target if plain and isinstance(above, cst.Assign) else None
        return target.value if isinstance(target, cst.Name) else ""
