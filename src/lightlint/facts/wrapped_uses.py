"""What is asked of a module that DDP or DataParallel wraps, under the name that the wrapped one was given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

# what the wrappers have of their own beside what every module has
_OWN = {
    "add_module", "apply", "bfloat16", "broadcast_buffers", "bucket_bytes_cap", "buffers", "call_super_init",
    "children", "compile", "cpu", "cuda", "device", "device_ids", "device_type", "dim", "double", "dump_patches",
    "eval", "extra_repr", "find_unused_parameters", "float", "forward", "gather", "get_buffer", "get_extra_state",
    "get_parameter", "get_submodule", "half", "ipu", "join", "join_hook", "load_state_dict", "logger",
    "mixed_precision", "module", "modules", "mtia", "no_sync", "output_device", "parallel_apply", "parameters",
    "process_group", "reducer", "register_comm_hook", "replicate", "requires_grad_", "scatter", "set_extra_state",
    "set_submodule", "share_memory", "src_device_obj", "state_dict", "static_graph", "T_destination", "to",
    "to_empty", "train", "training", "type", "will_sync_module_buffers", "xpu", "zero_grad",
}  # fmt: skip
_OF_MODULES = re.compile(r"_|(?:named|register)_")
# tests that may tell a wrapped module from a plain one
_TELLS = re.compile(r"isinstance|hasattr|getattr|distributed|ddp|dp$|world|parallel|multi|gpu|is_init|wrap|type", re.I)


def uses_of(facts: FileFacts, wrap: cst.Call, assign: cst.Assign) -> Iterator[cst.Attribute]:
    """The attributes that are read of what surely is the wrapper, and that no wrapper has."""
    return _Uses(facts).uses(wrap, facts.names.key(assign.targets[0].target))


class _Uses:
    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def uses(self, wrap: cst.Call, key: str) -> Iterator[cst.Attribute]:
        """What is asked of a wrapped module by the name it is given, or by that of a helper's parameter."""
        owner = self._tree.owner(wrap)
        if not key or key.count(".") > key.startswith("self."):
            return
        flow, stores = self._facts.flow(owner), self._stores(owner, key, wrap)
        for name in self._tree.own(owner, cst.Name, cst.Attribute):
            if self._names.key(name) != key or not flow.reaches(wrap, [name]):
                continue
            changed = any(flow.reaches(wrap, [each]) and flow.reaches(each, [name]) for each in stores)
            if not changed and not self._is_told(name, wrap, key):
                yield from self._asked(name)
                yield from self._in_helper(name)
        if isinstance(owner, cst.FunctionDef) and owner.name.value == "__init__" and key.startswith("self."):
            yield from self._in_methods(owner, wrap, key)

    def _asked(self, name: cst.BaseExpression) -> Iterator[cst.Attribute]:
        above = self._tree.parent(name)
        if not isinstance(above, cst.Attribute) or above.value is not name or not self._is_read(above):
            return
        if above.attr.value not in _OWN and not _OF_MODULES.match(above.attr.value):
            yield above

    def _is_read(self, use: cst.Attribute) -> bool:
        return not isinstance(self._tree.parent(use), (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Del))

    def _in_helper(self, name: cst.BaseExpression) -> Iterator[cst.Attribute]:
        """What a function of this file asks of the wrapped module that it is given, whatever else it is given."""
        arg = self._tree.parent(name)
        call = self._tree.parent(arg) if isinstance(arg, cst.Arg) else None
        callee = self._facts.hooks.callee(call) if isinstance(call, cst.Call) else None
        if callee is None or not isinstance(call, cst.Call) or self._facts.hooks.of(callee):
            return
        params = {each.name.value for each in self._tree.within(callee.params, cst.Param)}
        given = [each for each in params if self._facts.values.given(callee, call, each) is name]
        if len(given) != 1 or len(self._names.bindings.lookup_in(given[0], callee)) != 1:
            return
        for inside in self._tree.own(callee.body, cst.Name):
            tests = self._facts.conditions(inside) if inside.value == given[0] else None
            words = {word for test, _ in tests or () for word in self._words(test)}
            roots = {each.value for test, _ in tests or () for each in self._tree.within(test, cst.Name)}
            free = not any(map(_TELLS.search, words)) and not (roots - {"rank"}) & {*params, "self"}
            if tests is not None and free and not self._is_rescued(inside):
                yield from self._asked(inside)

    def _in_methods(self, init: cst.FunctionDef, wrap: cst.Call, key: str) -> Iterator[cst.Attribute]:
        """What the other methods of a class ask, where nothing but `__init__` sets the attribute."""
        node = self._tree.class_of(init)
        if node is None:
            return
        made = self._facts.hooks.reachable(init)
        methods = [each for each in self._facts.classes.methods(node).values() if each not in made]
        if any(
            self._stores(each, key, wrap) for each in self._facts.classes.methods(node).values() if each is not init
        ):
            return
        flow = self._facts.flow(init)
        if any(flow.reaches(wrap, [each]) for each in self._stores(init, key, wrap)):
            return
        for name in (each for method in methods for each in self._tree.own(method.body, cst.Attribute)):
            mine = self._names.key(name) == key and self._facts.classes.self_class(name.value) is node
            if mine and not self._is_told(name, wrap, key):
                yield from self._asked(name)

    def _stores(self, owner: cst.FunctionDef | cst.Module, key: str, wrap: cst.Call) -> list[cst.CSTNode]:
        """The places beside the wrapping that give the name something else."""
        found: list[cst.CSTNode] = [
            target.target
            for target in self._tree.own(owner, cst.AssignTarget)
            if self._names.key(target.target) == key and not self._tree.contains(self._statement(target), wrap)
        ]
        found += [each for each in self._tree.own(owner, cst.Name) if self._is_bound(each, key)]
        return found

    def _statement(self, target: cst.CSTNode) -> cst.CSTNode:
        return self._tree.parent(target) or target

    def _is_bound(self, name: cst.Name, key: str) -> bool:
        """Whether a name is set by something else than an assignment to it alone."""
        if name.value != key:
            return False
        above = self._tree.parent(name)
        return isinstance(
            above, (cst.For, cst.Element, cst.AsName, cst.NamedExpr, cst.AugAssign, cst.AnnAssign)
        ) and any(bound.site is name for bound in self._names.bindings.lookup(name))

    def _is_told(self, use: cst.CSTNode, wrap: cst.Call, key: str) -> bool:
        """Whether a test before a use may have to do with whether the module is wrapped."""
        ours = self._facts.conditions(wrap)
        tests = [each for each in self._facts.conditions(use) if each not in ours]
        words = {word for test, _ in tests for word in self._words(test)}
        known = {word for test, _ in ours for word in self._words(test)}
        mine = key.rpartition(".")[2]
        return bool(words & {*known, mine}) or any(map(_TELLS.search, words)) or self._is_rescued(use)

    def _words(self, test: cst.BaseExpression) -> set[str]:
        """The last words of the names in a test: `distributed` of `args.distributed`."""
        names = self._tree.within(test, cst.Name)
        return {each.value for each in names if not self._is_root(each)}

    def _is_root(self, name: cst.Name) -> bool:
        above = self._tree.parent(name)
        return isinstance(above, cst.Attribute) and above.value is name

    def _is_rescued(self, use: cst.CSTNode) -> bool:
        return any(isinstance(above, cst.Try) for above in self._tree.ancestors(use))
