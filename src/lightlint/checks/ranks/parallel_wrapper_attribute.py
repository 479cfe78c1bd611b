from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.file import FileFacts
from lightlint.facts.processes import DATA_PARALLEL
from lightlint.facts.wrapped_uses import uses_of

_WRAPPERS = {DATA_PARALLEL: "DDP", "torch.nn.DataParallel": "DataParallel"}
_SAME_MODULE = {*_WRAPPERS, "torch.compile", "torch.nn.SyncBatchNorm.convert_sync_batchnorm"}
_DEPTH = 4


class ParallelWrapperAttribute(Check):
    def visit_Module(self, module: cst.Module) -> None:
        if "__getattr__" in self.facts.source.text:  # a wrapper that passes on what it has not
            return
        told: dict[cst.Attribute, str] = {}
        for call in self.tree.all(cst.Call):
            wrapper = _WRAPPERS.get(self.names.call(call) or "", "")
            assign = self.tree.parent(call) if wrapper else None
            if isinstance(assign, cst.Assign) and len(assign.targets) == 1 and call.args:
                uses = list(uses_of(self.facts, call, assign))
                uses = [use for use in uses if not self._is_given_to_wrapper(use.attr.value)]
                classes = self._classes(call.args[0].value) if uses else []
                for use in uses:
                    owners = [node.name.value for facts, node in classes if _has(facts, node, use.attr.value)]
                    if classes and len(owners) == len(classes):
                        told.setdefault(use, f"{wrapper} does not pass on `{use.attr.value}` of `{owners[0]}`")
        for use, said in told.items():
            self.report(use, f"`{self.code.text_of(use)}` raises AttributeError: {said}")

    def _is_given_to_wrapper(self, attribute: str) -> bool:
        """Whether the file may set an attribute on what is no `self`."""
        places = (target.target for target in self.tree.all(cst.AssignTarget))
        same = (each for each in places if isinstance(each, cst.Attribute) and each.attr.value == attribute)
        if any(self.classes.self_class(each.value) is None for each in same):
            return True
        calls = (each for each in self.tree.all(cst.Call) if self.names.call(each) == "builtins.setattr")
        return any(not each.args or self.classes.self_class(each.args[0].value) is None for each in calls)

    def _classes(self, value: cst.BaseExpression, depth: int = 0) -> list[tuple[FileFacts, cst.ClassDef]]:
        """The classes of what is wrapped; empty unless all are in sight."""
        origins = self.values.origins(value)
        plain = {each.name for each in origins if each.name not in _SAME_MODULE}
        if not plain and depth < _DEPTH:
            inner = [each.call.args[0].value for each in origins if each.call is not None and each.call.args]
            found = [self._classes(each, depth + 1) for each in inner]
            return [each for one in found for each in one] if all(found) else []
        classes = [self.facts.of_class(each) for each in sorted(plain)]
        return [each for each in classes if each is not None] if None not in classes else []


def _has(facts: FileFacts, node: cst.ClassDef, attribute: str) -> bool:
    """Whether objects of a class surely have an attribute by what it and those above it in its file say."""
    classes = facts.classes
    return classes.has_method(node, attribute) or any(
        classes.attribute_sources(each, attribute) for each in classes.line(node)
    )
