from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, LoaderWorked
from lightlint.facts.code.bindings import Kind
from lightlint.facts.data.workers import LOADER
from lightlint.facts.objects.kept import sides
from lightlint.facts.project.mentions import draws_nothing, is_changed_elsewhere, reseeds_each_epoch
from lightlint.facts.ranks.seeds import Seeds
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import remove_argument
from lightlint.models.data.workers import WORKER_NUMBER
from lightlint.values.core import Bound, Class, Constant, Function, Partial, Unknown, Value, number_of
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SEEDS = {
    "numpy.random.seed": "numpy", "random.seed": "random", "torch.manual_seed": "torch", "torch.random.manual_seed": "torch",
    "lightning.seed_everything": "all generators", "lightning.fabric.seed_everything": "all generators",
}  # fmt: skip
_PLAIN = {"builtins.int", "builtins.abs", "builtins.min", "builtins.max"}
_EVALUATION = re.compile(
    r"(?i)(?<![a-z])(?:test|val|valid|validation|dev|eval|evaluation)(?![a-z])|(?<=[a-z])(?:Test|Val|Eval)"
)
_DEPTH = 4


class WorkerInitConstantSeed(Check):
    def visit_Call(self, call: cst.Call) -> None:
        found = self.facts.workers.given(call, "worker_init_fn", 10).values if self.names.call(call) == LOADER else ()
        if len(found) != 1 or self._needs_none(call):
            return
        (given,) = found
        function, bound = self._function(given)
        if function is None:
            return
        seeds = list(self._seeds(function))
        worker = self._worker(function, bound)
        kinds = {name: self._depends(value, worker, function, 0) for name, value in seeds}
        same = [name for name, kind in kinds.items() if kind == "nothing"]
        repeated = [name for name, kind in kinds.items() if kind == "worker"]
        if same:
            self.report(
                given,
                f"every worker seeds {_list(same)} with the same number: all draw the same",
                repair=self._repair(call, function, len(seeds)),
            )
        elif repeated and not (self._is_persistent(call) or self._starts_elsewhere(call, function)):
            self.report(
                given,
                f"a worker seeds {_list(repeated)} with the same number in each epoch: every epoch draws the same",
                tier=None if any(Seeds(self.facts).first_words(function.body)) else Tier.NOTE,
            )

    def _needs_none(self, call: cst.Call) -> bool:
        """Whether it is all one how workers are seeded: one at most, data that nothing is drawn for, or an evaluation."""
        counts = self.facts.workers.given(call, "num_workers", 5)
        few = self.facts.datasets.workers(call) in {0, 1} or (
            bool(counts.values)
            and all(self.names.constant(side) in (0, 1) for each in counts.values for side in sides(each))
        )
        drawn = {name.rpartition(".")[2] for name in self.facts.datasets.names_of(call)}
        plain = bool(drawn) and all(draws_nothing(self.facts.project, self.facts.source, name) for name in drawn)
        return few or plain or self._evaluates(call)

    def _starts_elsewhere(self, call: cst.Call, function: cst.CSTNode) -> bool:
        """Whether there is one epoch only, or the state that a worker reads is another in each: the program seeds by the epoch."""
        reads_state = any(Seeds(self.facts).first_words(function))
        reseeds = reads_state and reseeds_each_epoch(self.facts.project, self.facts.source)
        return reseeds or self.facts.datasets.never_ends(call)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Functions of loaders that seed a generator with one number in every worker."""
        for path in entry.paths:
            made = {event.site: event for event in path.of(Called) if event.name == "DataLoader"}
            for worked in path.of(LoaderWorked):
                call, count = made.get(worked.site), number_of(worked.loader.arguments.get("num_workers"))
                if call is None or count == 1 or worked.loader.open_arguments or not (seeds := _seeds_of(worked)):
                    continue
                node = self.node_of(call.site)
                if isinstance(node, cst.Call) and self._needs_none(node):
                    continue
                same = [name for name, seed in seeds.items() if _is_same(seed)]
                if same:
                    message = f"every worker seeds {_list(same)} with the same number: all draw the same"
                    yield Fault.of(call, message, argument="worker_init_fn")
                elif isinstance(node, cst.Call):
                    yield from self._of_worker(seeds, call, node)

    def _of_worker(self, seeds: dict[str, Value | None], call: Called, node: cst.Call) -> Iterator[Fault]:
        """A function out of another file, which visits do not see, that seeds by the number of the worker alone."""
        given = self.names.argument(node, "worker_init_fn", 10)
        seen = given is None or self._function(given.value)[0] is not None
        names = [name for name, seed in seeds.items() if seed is not None and _hangs_on_worker(seed.key)]
        if names and not (seen or self._is_persistent(node) or self.facts.datasets.never_ends(node)):
            message = f"a worker seeds {_list(names)} with the same number in each epoch: every epoch draws the same"
            yield Fault.of(call, message, tier=Tier.NOTE, argument="worker_init_fn")

    def _function(self, value: cst.BaseExpression) -> tuple[cst.FunctionDef | cst.Lambda | None, set[str]]:
        """The function that a worker runs first, and the parameters that `partial` gives it."""
        if isinstance(value, cst.Lambda):
            return value, set()
        if isinstance(value, cst.Call) and self.names.call(value) == "functools.partial" and value.args:
            keywords = {arg.keyword.value for arg in value.args if arg.keyword is not None}
            plain = all(arg.keyword is not None for arg in value.args[1:])
            return (self._function(value.args[0].value)[0], keywords) if plain else (None, set())
        if isinstance(value, (cst.Name, cst.Attribute)):
            found = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
            if len(found) == 1 and isinstance(found[0].site, cst.FunctionDef):
                return found[0].site, set()
            if len(found) == 1 and found[0].kind is Kind.ASSIGN and found[0].value is not None and not found[0].path:
                return self._function(found[0].value)
            node = self._class(value.value) if isinstance(value, cst.Attribute) else None
            if node is not None and isinstance(value, cst.Attribute):
                return self.classes.method(node, value.attr.value), set()
        return None, set()

    def _class(self, holder: cst.BaseExpression) -> cst.ClassDef | None:
        """The class of this file that an object surely is of."""
        origin = self.values.constructor(holder)
        return self.classes.self_class(holder) or (self.classes.local(origin.name) if origin is not None else None)

    def _worker(self, function: cst.FunctionDef | cst.Lambda, bound: set[str]) -> str:
        """The parameter that is the worker's number."""
        names = [each.name.value for each in function.params.params if each.name.value not in bound]
        is_method = isinstance(function, cst.FunctionDef) and self.classes.class_of(function) is not None
        if is_method and isinstance(function, cst.FunctionDef) and not self.classes.is_static(function):
            names = names[1:]
        return names[0] if names else ""

    def _seeds(self, function: cst.FunctionDef | cst.Lambda) -> Iterator[tuple[str, cst.BaseExpression]]:
        for call in self.tree.within(function.body, cst.Call):
            name, helper = _SEEDS.get(self.names.call(call) or ""), self.hooks.callee(call)
            if name and call.args:
                yield name, call.args[0].value
            for inner in self.tree.within(helper.body, cst.Call) if helper is not None else []:
                name = _SEEDS.get(self.names.call(inner) or "")
                seed = inner.args[0].value if name and inner.args else None
                given = self.values.given(helper, call, seed.value) if helper and isinstance(seed, cst.Name) else None
                if name and given is not None:
                    yield name, given

    def _depends(self, value: cst.BaseExpression, worker: str, function: cst.CSTNode, depth: int) -> str:
        """What a seed differs by: "nothing", the "worker" alone, or "more" than is in sight."""
        words = Seeds(self.facts).first_words(value)
        parts = [
            each
            for each in self.tree.within(value, cst.Call, cst.Subscript)
            if not any(self.tree.contains(word, each) for word in words)
        ]
        if depth > _DEPTH or any(
            isinstance(each, cst.Subscript) or self.names.call(each) not in _PLAIN for each in parts
        ):
            return "more"
        found = {"more"} if any(map(self._is_set_later, self.tree.within(value, cst.Attribute))) else {"nothing"}
        for name in self.tree.within(value, cst.Name):
            bindings = self.names.bindings.lookup(name)
            own = [each for each in bindings if each.scope is function]
            if name.value == worker and own:
                found.add("worker")
            elif own and any(each.kind is not Kind.PARAMETER for each in own):
                inner = [each.value for each in own]
                found |= {self._depends(each, worker, function, depth + 1) if each else "more" for each in inner}
            elif any(each.kind in {Kind.AUGMENT, Kind.LOOP, Kind.WITH} for each in bindings):
                found.add("more")
            elif any(each.kind is Kind.ASSIGN and isinstance(each.value, cst.Call) for each in bindings):
                found |= {"more" for each in bindings if self._is_drawn(each.value)}
        return next(kind for kind in ("more", "worker", "nothing") if kind in found)

    def _is_set_later(self, attribute: cst.Attribute) -> bool:
        """Whether an object gets another value for an attribute once it is made, as the number of its epoch."""
        targets = [each.target for each in self.tree.all(cst.AssignTarget)]
        targets += [each.target for each in self.tree.all(cst.AugAssign)]
        functions = [
            self.tree.function(each)
            for each in targets
            if isinstance(each, cst.Attribute) and each.attr.value == attribute.attr.value
        ]
        later = any(each is not None and each.name.value != "__init__" for each in functions)
        return later or is_changed_elsewhere(self.facts.project, self.facts.source, attribute.attr.value)

    def _is_drawn(self, value: cst.CSTNode | None) -> bool:
        """Whether a number was asked of something other than the command line: a clock, a generator, another process."""
        return isinstance(value, cst.Call) and self.names.method(value) not in {"parse_args", "int", "add_argument"}

    def _evaluates(self, call: cst.Call, depth: int = 0) -> bool:
        """Whether names say that a loader is for evaluation, where the same draws in each epoch are welcome; of a call of what
        makes one likewise."""
        above = self.tree.parent(call)
        while isinstance(above, cst.IfExp):
            above = self.tree.parent(above)
        bound = above.targets[0].target if isinstance(above, cst.Assign) else None
        data = self.names.argument(call, "dataset", 0)
        given = data.value if data is not None else None
        spelled = [self.code.text_of(each) for each in (bound, given) if each is not None]
        function = self.tree.function(call)
        spelled += [function.name.value] if isinstance(function, cst.FunctionDef) else []
        ran = self.tree.own(function, cst.Call) if function is not None else ()
        tests = any(self.names.method(each) == "eval" and not each.args for each in ran)
        trains = any(self.names.method(each) in ("backward", "step", "train", "fit") for each in ran)
        if (tests and not trains) or self._is_behind_test(call):
            return True
        if any(map(_EVALUATION.search, spelled)) and not any("train" in each.lower() for each in spelled[:1]):
            return True
        calls = self.hooks.calls_of.get(function, ()) if isinstance(function, cst.FunctionDef) else ()
        return bool(calls) and depth < _DEPTH and all(self._evaluates(each, depth + 1) for each in calls)

    def _is_behind_test(self, call: cst.Call) -> bool:
        """Whether a test around a loader says that it is not for training."""
        for test, outcome in self.facts.conditions(call):
            text = self.code.text_of(test)
            says = outcome is not ("!=" in text or text.startswith("not "))
            if ("train" in text.lower() and not says) or (_EVALUATION.search(text) and says):
                return True
        return False

    def _is_persistent(self, call: cst.Call) -> bool:
        given = self.facts.workers.given(call, "persistent_workers")
        return not given.whole or any(self.names.constant(each) is not False for each in given.values)

    def _repair(self, call: cst.Call, function: cst.FunctionDef | cst.Lambda, seeds: int) -> Repair | None:
        """Drop the function where it does nothing else: torch seeds every worker's generators."""
        if isinstance(function, cst.FunctionDef):
            body = function.body.body
            lines = [small for line in body if isinstance(line, cst.SimpleStatementLine) for small in line.body]
            calls = [line.value for line in lines if isinstance(line, cst.Expr) and isinstance(line.value, cst.Call)]
            only = len(calls) == len(body) <= seeds
        else:
            only = self.names.call(function.body) in _SEEDS
        given = self.names.argument(call, "worker_init_fn", 10)
        draft = remove_argument(self.code, call, given) if only and given is not None else None
        return Repair("let torch seed the workers", draft, Applicability.UNSAFE) if draft is not None else None


def _is_same(seed: Value | None) -> bool:
    """Whether a seed is one number in all workers: written down, or of the program's options."""
    if isinstance(seed, Unknown):
        drawn = isinstance(seed.key, tuple) and "called" in seed.key[:1]
        return seed.key is not None and not drawn and not seed.traits
    return isinstance(seed, Constant) and not seed.traits and seed.value is not None


def _hangs_on_worker(key: Hashable) -> bool:
    """Whether a seed is the number of the worker, with numbers that are the same in each epoch."""
    parts = key[1:] if isinstance(key, tuple) and key[:1] in (("+",), ("*",), ("-",)) else (key,)
    others = [each for each in parts if each != WORKER_NUMBER]
    return len(others) < len(parts) and all(isinstance(each, tuple) and each[:1] == ("constant",) for each in others)


def _seeds_of(worked: LoaderWorked) -> dict[str, Value | None]:
    """With what `worker_init_fn` seeds which generators."""
    begin = worked.loader.arguments.get("worker_init_fn")
    while isinstance(begin, (Partial, Bound)):
        begin = begin.function
    if isinstance(begin, Instance) and isinstance(begin.cls, Class):
        begin = begin.cls.find("__call__")
    node = begin.node if isinstance(begin, Function) else None
    depth = len(worked.where.calls)
    calls = [event for event in worked.events if isinstance(event, Called) and event.path in _SEEDS]
    own = [event for event in calls if [call.function.node for call in event.where.calls[depth : depth + 1]] == [node]]
    return {_SEEDS[event.path]: event.argument("seed", 0) for event in own}  # what seeds a generator again, counts


def _list(names: list[str]) -> str:
    spelled = [name if name == "all generators" else f"`{name}`" for name in names]
    return " and ".join(filter(None, [", ".join(spelled[:-1]), spelled[-1]]))
