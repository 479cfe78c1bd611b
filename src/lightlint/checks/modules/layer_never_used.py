from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import MODULE, NN_MODULE
from lightlint.facts.mentions import is_mentioned_elsewhere, occurs
from lightlint.finding import Tier

_LAYERS = re.compile(
    r"torch\.nn\.(?:parameter\.)?(?:modules\.\w+\.)?(?:Parameter|(?:Lazy)?(?:Linear|Conv\w+)|Bilinear|(?:(?:Sync)?Batch|Layer|Group|RMS)Norm\w*"
    r"|Embedding\w*|LSTM\w*|GRU\w*|RNN\w*|MultiheadAttention|Transformer\w*)"
)
_DROPOUT = re.compile(r"torch\.nn\.(?:modules\.dropout\.)?(?:Alpha|FeatureAlpha)?Dropout\w*")
_HOLDERS = {"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"}
_BY_NO_NAME = re.compile(r"\b(?:getattr|vars|locals|__dict__|_modules|_parameters|__getattr__|(?:named_)?children)\b")
_UNTRAINED = "its parameters get no gradient, which DDP takes for an error"
_MEANT = re.compile("dummy|fake|device|empty|placeholder|unused|anchor", re.IGNORECASE)
_DDP = {"DistributedDataParallel": r"\bDistributedDataParallel\(", "ddp": r"strategy\s*=\s*['\"]ddp['\"]"}
_BASES = {NN_MODULE, MODULE, "builtins.object", "object"}
_COMPUTING = ("forward", "training_step")


class LayerNeverUsed(Check):
    """A visitor: that nothing has a name is seen in the text, and of a library's modules no rehearsal sees all callers."""

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        methods = self.classes.methods(node)
        init = methods.get("__init__")
        if init is None or not any(name in methods for name in _COMPUTING) or not self.classes.is_a(node, NN_MODULE):
            return
        if not self._is_in_project(node) or _BY_NO_NAME.search(self.facts.source.text):
            return
        for assign in self.tree.own(init.body, cst.Assign):
            target = assign.targets[0].target
            if not isinstance(target, cst.Attribute) or self.classes.self_class(target.value) is not node:
                continue
            name, lost = target.attr.value, self._lost(assign.value)
            if lost and not _MEANT.search(name) and not self._is_used(node, name):
                tier = Tier.NOTE if lost == _UNTRAINED and not self._waits() else None
                self.report(assign, f"nothing uses `self.{name}`: {lost}", tier=tier)

    def _waits(self) -> bool:
        """Whether the project trains with DDP, which is not told to look for parameters without gradient."""
        project = self.facts.project
        wraps = any(occurs(project, name, pattern) for name, pattern in _DDP.items())
        return wraps and not occurs(project, "find_unused_parameters", r"find_unused_parameters")

    def _is_in_project(self, node: cst.ClassDef) -> bool:
        """Whether all classes above are torch's or Lightning's bases, or the project's own."""
        own = [each for each in self.classes.ancestors(node) if each not in _BASES]
        near = self.facts.path.parent
        return all(self.classes.local(each) or self.facts.project.find_class(each, near) for each in own)

    def _lost(self, value: cst.BaseExpression) -> str:
        """What a network goes without, or carries along, where a value is never used."""
        made = self.names.call(value) if isinstance(value, cst.Call) else None
        if made is None:
            return ""
        if _DROPOUT.fullmatch(made):
            return "it drops nothing"
        calls = self.tree.within(value, cst.Call) if made in _HOLDERS else [value]
        holds = any(_LAYERS.fullmatch(self.names.call(each) or "") for each in calls)
        return _UNTRAINED if holds else ""

    def _is_used(self, node: cst.ClassDef, name: str) -> bool:
        """Whether anything may read an attribute of a class's objects: by its name, or by a text that begins like it."""
        stem = re.escape(name.rstrip("0123456789_"))
        if re.search(rf"['\"{{]\w*{stem}|\b{re.escape(name)}\s*=(?!=)\s*\w", self._texts()) or any(
            self._reads(node, name)
        ):
            return True
        owner = node.name.value
        project, source = self.facts.project, self.facts.source
        if occurs(project, name, rf"(?<!self)\.{re.escape(name)}\b|['\"]{stem}", self.facts.path.absolute()):
            return True
        related = occurs(project, owner, rf"class\s+\w+\s*\([^)]*\b{owner}\b", self.facts.path.absolute())
        related |= any(each not in _BASES and not self.classes.local(each) for each in self.classes.ancestors(node))
        return related and is_mentioned_elsewhere(project, source, name)

    def _texts(self) -> str:
        """The texts of the file, one after the other."""
        return "\n".join(each.value for each in self.tree.all(cst.SimpleString)) + "\n".join(
            "'" + each.value for each in self.tree.all(cst.FormattedStringText)
        )

    def _reads(self, node: cst.ClassDef, name: str) -> Iterator[bool]:
        for each in self.tree.all(cst.Attribute):
            if each.attr.value != name:
                continue
            owner = self.classes.self_class(each.value)
            parent = self.tree.parent(each)
            if owner is node:
                yield not isinstance(parent, (cst.AssignTarget, cst.AnnAssign))
            else:
                yield owner is None or bool({*self.classes.line(owner)} & {*self.classes.line(node)})
