from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.modules.checkpoints.checkpoint_non_tensor_payload.loaded import keys_needed, reads_items
from lightlint.checks.modules.checkpoints.checkpoint_non_tensor_payload.numpy_values import NumpyValues
from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.data.file_names import (
    is_unknown,
    may_be_one,
    name_of_key,
    name_written,
)
from lightlint.facts.project.mentions import occurs
from lightlint.facts.versions.versions import Version
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import wrap
from lightlint.values.core import Class, Library, Mapping, Sequence, Value
from lightlint.values.training import Instance, Module

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry

_SAFE = re.compile(r"\b(?:add_)?safe_globals\b")
_PARSERS = {"parse_args", "parse_known_args"}
_DEPTH = 2
_OPTIONS = "an argparse Namespace"
_PATHS = {"pathlib.Path", "pathlib.PosixPath", "collections.defaultdict"}


class CheckpointNonTensorPayload(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if (
            self.names.call(call) != "torch.save"
            or not call.args
            or not self.facts.torch.may_be_at_least(Version("2.6"))
        ):
            return
        refused = [(item, what) for item in self._items(call.args[0].value) if (what := self._refused(item))]
        if not refused:
            return
        loads = self.names.called("torch.load")
        open_loads = [each for each in loads if self.names.argument(each, "weights_only") is None]
        if (loads and not open_loads) or self._names_classes():
            return
        alone = len(refused) == 1 and not self._is_in_dict(refused[0][0])
        open_loads = [each for each in open_loads if not (alone and reads_items(self.facts, each))]
        again = any(self._may_load(load, call, noted=alone and self._is_record(refused)) for load in open_loads)
        for item, what in refused:
            self.report(
                item,
                f"`{self.code.text_of(item)}` is {what}, which `torch.load` of torch 2.6 and newer refuses",
                tier=None if again else Tier.NOTE,
                repair=self._repair(item, what),
            )

    def _names_classes(self) -> bool:
        """Whether some code of the project names classes that `torch.load` is to take: for good, or in a `with`."""
        text, project = self.facts.source.text, self.facts.project
        return bool(_SAFE.search(text)) or occurs(project, "safe_globals", _SAFE.pattern)

    def _is_in_dict(self, item: cst.BaseExpression) -> bool:
        """Whether a value is written into a dict: `{"args": args}`, `dict(args=args)`, `state["args"] = args`."""
        parent = self.tree.parent(item)
        if isinstance(parent, cst.Arg):
            return self.names.call(self.tree.parent(parent)) == "builtins.dict"
        return isinstance(parent, (cst.DictElement, cst.Assign)) or self.names.call(parent) == "builtins.dict"

    def _is_record(self, refused: list[tuple[cst.BaseExpression, str]]) -> bool:
        """Whether what a run was started with is saved alone, as people note it beside its weights."""
        return refused[0][1] == _OPTIONS

    def _may_load(self, load: cst.Call, save: cst.Call, *, noted: bool) -> bool:
        """Whether a file may be the one that is saved, by what the two are called: a note of a run is not taken for what a
        program loads under a name of which nothing is known."""
        files = self.names.argument(save, "f", 1), self.names.argument(load, "f", 0)
        names = [name_written(self.facts, each.value) for each in files if each is not None]
        if len(names) < len(files):
            return True
        if not may_be_one(*names) or (noted and is_unknown(names[1])):
            return False
        keys = self._keys(save.args[0].value) if any(map(is_unknown, names)) else None
        return keys is None or keys_needed(self.facts, load) <= keys

    def _items(self, value: cst.BaseExpression, depth: int = 0) -> list[cst.BaseExpression]:
        """What a checkpoint holds: the values of a dict, or the one thing that is saved."""
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            made = only.value if only is not None else None
            if made is not None and (isinstance(made, cst.Dict) or self.names.call(made) == "builtins.dict"):
                return [*self._items(made), *self._added(value)]
            if len(found) == 1 and found[0].kind is Kind.PARAMETER and isinstance(found[0].scope, cst.FunctionDef):
                function = found[0].scope
                calls = self.hooks.calls_of.get(function, ()) if depth < _DEPTH else ()
                given = [self.values.given(function, call, value.value) for call in calls]
                return [item for each in given if each is not None for item in self._items(each, depth + 1)]
        if isinstance(value, cst.Dict):
            return [each.value for each in value.elements if isinstance(each, cst.DictElement)]
        if isinstance(value, cst.Call) and self.names.call(value) == "builtins.dict":
            return [arg.value for arg in value.args if arg.keyword is not None]
        return [value]

    def _keys(self, saved: cst.BaseExpression) -> set[str] | None:
        """The keys of a dict that is written where it is saved; None of anything else."""
        keys = [getattr(each, "key", None) for each in saved.elements] if isinstance(saved, cst.Dict) else []
        texts = [self.names.constant(each) if each is not None else None for each in keys]
        known = {each for each in texts if isinstance(each, str)}
        return known if known and len(known) == len(texts) else None

    def _added(self, name: cst.Name) -> list[cst.BaseExpression]:
        """What `state["args"] = args` puts into a dict that is saved under its name."""
        return [
            assign.value
            for assign in self.tree.own(self.tree.owner(name), cst.Assign)
            for target in assign.targets
            if isinstance(target.target, cst.Subscript) and self.names.key(target.target.value) == name.value
        ]

    def _refused(self, value: cst.BaseExpression, depth: int = 0) -> str:
        """What a value surely is that the default of `torch.load` does not take, empty for what it may take."""
        if isinstance(value, cst.Call):
            name = self.names.call(value) or ""
            if self.names.method(value) in _PARSERS:
                return _OPTIONS
            if NumpyValues(self.facts).is_numpy(value):
                return "a numpy value"
            if name == "types.SimpleNamespace":
                return "a SimpleNamespace"
            return "a path" if name in _PATHS and "Path" in name else "a defaultdict" if name in _PATHS else ""
        if self.values.is_module(value):
            return "a whole module"
        if not isinstance(value, cst.Name) or depth > 3:
            return ""
        if NumpyValues(self.facts).is_list(value):
            return "a list of numpy values"
        kinds = [self._bound(value, each, depth) for each in self.facts.reaching.bindings(value)]
        surely = {each for each in kinds if each}
        # what a checkpoint holds on one of the ways to it is refused whatever it holds on the others
        return surely.pop() if len(surely) == 1 and None not in kinds else ""

    def _bound(self, name: cst.Name, binding: Binding, depth: int) -> str | None:
        """As `_refused`, for what one binding gives a name; None where the name is made fit to be saved, or may be."""
        if binding.kind is Kind.PARAMETER and isinstance(binding.scope, cst.FunctionDef):
            function = binding.scope
            calls = self.hooks.calls_of.get(function, ())
            given = [self.values.given(function, call, binding.name) for call in calls] or [None]
            kinds = {self._refused(each, depth + 1) if each is not None else "" for each in given}
            return kinds.pop() if len(kinds) == 1 else ""
        if binding.kind is not Kind.ASSIGN or binding.value is None:
            return None
        if binding.path:
            return self._part(binding.value, binding.path, depth)
        words = (each for each in self.tree.within(binding.value, cst.Name) if not self.names.is_word(each))
        if any(each.value == name.value for each in words):
            return None  # `best = float(best)`
        if isinstance(binding.value, cst.Call):
            return self._called(binding.value, (), depth)
        return self._refused(binding.value, depth + 1)

    def _part(self, value: cst.BaseExpression, path: tuple[int, ...], depth: int) -> str:
        """As `_refused`, for a part of what a function of this file gives."""
        return self._called(value, path, depth) if isinstance(value, cst.Call) else ""

    def _called(self, call: cst.Call, path: tuple[int, ...], depth: int) -> str:
        if self.hooks.callee(call) is None:
            return self._refused(call, depth + 1) if not path else ""
        given = self.facts.results.of(call, path)
        kinds = {self._refused(each, depth + 1) if each is not None else "" for each in given}
        return kinds.pop() if len(kinds) == 1 else ""

    def _repair(self, item: cst.BaseExpression, what: str) -> Repair | None:
        if what == _OPTIONS:
            return Repair("save it as a dict", wrap(self.code, item, "vars(", ")"), Applicability.UNSAFE)
        if what == "a path":
            return Repair("save it as a string", wrap(self.code, item, "str(", ")"), Applicability.UNSAFE)
        return None

    def wants_users(self) -> tuple[str, ...]:
        """Where a function of this file saves what it is given, and another loads it: who calls them tells what that is."""
        saves = (self.tree.function(each) for each in self.names.called("torch.save"))
        loads = [each for each in self.names.called("torch.load") if self.tree.function(each) is not None]
        given = any(each is not None and each.params.params for each in saves)
        open_loads = any(self.names.argument(each, "weights_only") is None for each in loads)
        return ("torch.optim", "optim.", "ArgumentParser") if given and open_loads else ()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Namespaces and other objects in what is saved and loaded again by the default of `torch.load`.

        What a program hands to the function that saves is named before what a function does that nobody calls.
        """
        found = [*self._faults(entry)]
        words = self.wants_users() if found and not entry.whole and entry in self.facts.rehearsed.entries else ()
        users = self.facts.rehearsed.of_users(words) if words else []
        told = {fault.site for user in users for fault in self._faults(user)}
        yield from (fault for fault in found if fault.site not in told)

    def _faults(self, entry: Entry) -> Iterator[Fault]:
        if not self.facts.torch.may_be_at_least(Version("2.6")):
            return
        loads = [event for event in entry.calls.get("torch.load", ()) if event.argument("weights_only") is None]
        saves = entry.calls.get("torch.save", ()) if loads else ()
        if saves and self._names_classes():
            return
        for save in saves:
            again = [each for each in loads if _may_be(each.argument("f", 0), save.argument("f", 1))]
            content = save.argument("obj", 0)
            if isinstance(content, Instance):
                again = [each for each in again if self._may_give(each, content)]
            for value in _held(content) if again else ():
                if what := _pickled(value):
                    message = f"this holds {what}, which `torch.load` of torch 2.6 and newer refuses"
                    yield Fault.at(save, message)

    def _may_give(self, load: Called, content: Instance) -> bool:
        """Whether a load may be one of an object that is saved alone, which has no items."""
        node, file = self.node_of(load.site), load.argument("f", 0)
        items = isinstance(node, cst.Call) and reads_items(self.facts, node)
        noted = _pickled(content) == _OPTIONS and file is not None and is_unknown(name_of_key(file.key))
        return not items and not noted


def _may_be(loaded: Value | None, saved: Value | None) -> bool:
    """Whether a file may be one that was written."""
    if loaded is None or saved is None:
        return True
    return may_be_one(name_of_key(saved.key), name_of_key(loaded.key))


def _held(content: Value | None) -> Iterator[Value]:
    """What a checkpoint holds, in its dicts and lists, too."""
    held = (
        content.items.values()
        if isinstance(content, Mapping)
        else content.items
        if isinstance(content, Sequence)
        else None
    )
    if held is not None:
        for each in held:
            yield from _held(each)
    elif content is not None:
        yield content


def _pickled(value: Value) -> str:
    """What an object surely is that the default of `torch.load` does not take, empty for what it may take."""
    if not isinstance(value, Instance) or _is_dict(value):
        return ""
    if value.kind == "namespace" and not isinstance(value.cls, Class):
        if value.key == ("arguments",) or value.name == "Namespace":
            return _OPTIONS
        return f"{'an' if value.name[:1] in 'AEIO' else 'a'} {value.name}"
    if isinstance(value, Module):
        return "a whole module" if value.initialised and not value.assumed else ""
    of_program = isinstance(value.cls, Class) and value.cls.sees_all() and value.kind in ("object", "namespace")
    if of_program and isinstance(value.cls, Class) and value.cls.find("__reduce__") is None:
        return f"an object of `{value.name}`"
    is_text = isinstance(value.cls, Library) and value.cls.path == "builtins.str"
    return "a path" if value.kind == "path" and not is_text else ""


def _is_dict(value: Instance) -> bool:
    """Whether it is only the dict in which a namespace holds its names, as `vars` gives it."""
    return isinstance(value.cls, Library) and value.cls.path == "builtins.dict"
