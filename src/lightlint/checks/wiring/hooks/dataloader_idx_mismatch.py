from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import EvaluationGiven
from lightlint.explore.questions.logged import loader_count
from lightlint.facts.lightning.overrides import taken
from lightlint.facts.project.mentions import is_called_with_arguments
from lightlint.facts.versions.versions import Version
from lightlint.fixes.edits import insert_default, insert_parameter
from lightlint.values.core import Class, Function, Site

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_HOOKS = {
    "validation": ("validation_step", "on_validation_batch_start", "on_validation_batch_end"),
    "test": ("test_step", "on_test_batch_start", "on_test_batch_end"),
    "predict": ("predict_step",),
}
_ALL = {name for names in _HOOKS.values() for name in names}
_STAGES = {"fit": "validation", "validate": "validation", "test": "test", "predict": "predict"}
_INDEX = "dataloader_idx"
_HOOKS_ALONE_SINCE = (
    "2.0"  # before, hooks were given the index of one loader, too, as steps were not (wheels of 1.5 to 1.9)
)


class DataloaderIdxMismatch(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(EvaluationGiven):
            cls, stage = event.module.cls, _STAGES[event.entry]
            count = self._count(cls, stage) if isinstance(cls, Class) else None
            for name in _HOOKS[stage] if count is not None else ():
                hook = cls.find(name) if isinstance(cls, Class) else None
                if isinstance(hook, Function) and isinstance(hook.node, ast.FunctionDef):
                    yield from self._faults(hook, name, stage, count or 0)

    def wants_users(self) -> tuple[str, ...]:
        """Where a step demands the index: who fits the module may give it one loader."""
        hooks = [each for each in self.tree.all(cst.FunctionDef) if each.name.value in _ALL]
        params = [each for hook in hooks for each in (*hook.params.params, *hook.params.kwonly_params)]
        return ("Trainer",) if any(each.name.value == _INDEX and each.default is None for each in params) else ()

    def _count(self, cls: Class, stage: str) -> int | None:
        """With how many loaders every run in sight evaluates a module; None where that is not certain."""
        entries = [*self.facts.rehearsed.entries, *self.facts.rehearsed.of_users(self.wants_users())]
        given = [event for entry in entries for event in entry.of(EvaluationGiven)]
        here = [event for event in given if event.module.cls.key == cls.key and _STAGES[event.entry] == stage]
        sure = [event for event in here if not event.assumed]  # else all that is known is what its own hooks give
        runs = [event for event in sure or here if event.loaders is not None or event.entry != "fit"]
        counts = {None if event.open and not event.assumed else loader_count(event.loaders) for event in runs}
        return counts.pop() if len(counts) == 1 else None

    def _faults(self, hook: Function, name: str, stage: str, count: int) -> Iterator[Fault]:
        assert isinstance(hook.node, ast.FunctionDef)
        given = hook.node.args
        plain = [*given.posonlyargs, *given.args][1:]
        index = next((each for each in (*plain, *given.kwonlyargs) if each.arg == _INDEX), None)
        required = plain[: len(plain) - len(given.defaults)] if given.defaults else plain
        demanded = {each.arg for each in required} | {
            each.arg for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None
        }
        free = index is None and given.vararg is None and given.kwarg is None and len(required) <= 2
        if is_called_with_arguments(self.facts.project, self.facts.source, name):
            return
        alone = name.endswith("_step") or self.facts.lightning.surely_at_least(_HOOKS_ALONE_SINCE)
        if index is not None and _INDEX in demanded and count == 1 and alone:
            message = f"`{name}` requires `{_INDEX}`, but there is one {stage} loader"
            yield Fault(_place(hook, index), message)
        elif free and count > 1 and self.facts.lightning.surely_at_least(Version("2.0")):
            message = f"`{name}` has no parameter `{_INDEX}`, but there are {count} {stage} loaders"
            yield Fault(_name_place(hook), message)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        above = self.tree.parent(node)
        if isinstance(above, cst.Param):
            around = (each for each in self.tree.ancestors(above) if isinstance(each, cst.FunctionDef))
            function = next(around, None)
            takes = taken(self.facts, function) if function is not None else None
            last = takes is not None and takes.positional and takes.positional[-1] is above
            return Repair("give it the default 0", insert_default(self.code, above, "0")) if last else None
        takes = taken(self.facts, above) if isinstance(above, cst.FunctionDef) else None
        if not isinstance(above, cst.FunctionDef) or takes is None:
            return None
        fits = above.name.value.endswith("_step") and len(takes.positional) == 2 and not takes.keyword_only
        draft = insert_parameter(self.code, above, f"{_INDEX}=0") if fits else None
        return Repair(f"take `{_INDEX}=0`", draft) if draft is not None else None


def _place(hook: Function, argument: ast.arg) -> Site:
    return (
        hook.file,
        argument.lineno,
        argument.col_offset,
        argument.lineno,
        argument.col_offset + len(argument.arg.encode()),
    )


def _name_place(hook: Function) -> Site:
    row, start = hook.node.lineno, hook.node.col_offset + len("def ")
    return (hook.file, row, start, row, start + len(hook.name.encode()))
