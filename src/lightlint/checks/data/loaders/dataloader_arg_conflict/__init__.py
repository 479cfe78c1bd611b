from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.data.loaders.dataloader_arg_conflict.without_workers import WithoutWorkers, is_tested
from lightlint.engine.events import LoaderMade
from lightlint.explore.questions.defaults import of_default_run
from lightlint.explore.questions.queries import by_choice, sure
from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.data.workers import LOADER
from lightlint.facts.objects.classes import ITERABLE_DATASET
from lightlint.facts.project.options import option_default
from lightlint.facts.values.keywords import keywords
from lightlint.finding import Tier
from lightlint.fixes.edits import join, remove_argument, replace
from lightlint.values.core import ASSUMED, Constant, Value, is_constant, number_of, traits_of, written
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_POSITIONS = {"batch_size": 1, "shuffle": 2, "sampler": 3, "batch_sampler": 4, "num_workers": 5, "drop_last": 8}
_DEPTH = 4
_OF_WORKERS = ("persistent_workers", "prefetch_factor")


class DataloaderArgConflict(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != LOADER or any(arg.star == "*" for arg in call.args):
            return
        self._judge_order(call)
        self._judge_workers(call)

    def _judge_order(self, call: cst.Call) -> None:
        shuffle = self._given(call, "shuffle")
        shuffles = shuffle is not None and self.names.constant(shuffle.value) is True
        if self._is_made(self._given(call, "batch_sampler")):
            rivals = [name for name in ("batch_size", "shuffle", "sampler", "drop_last") if self._says(call, name)]
            if rivals:
                self.report(call.func, f"`batch_sampler` excludes `{rivals[0]}`: the constructor raises ValueError")
            return
        if shuffle is None and self._is_made(self._given(call, "sampler")):
            travelling = [each for each in keywords(self.facts, call) if each.name == "shuffle"]
            if travelling and self.names.constant(travelling[0].value) is True:
                self.report(
                    call, "`sampler` excludes `shuffle=True`, which comes in a dict: the constructor raises ValueError"
                )
        if not shuffles or shuffle is None:
            return
        if self._is_made(self._given(call, "sampler")):
            repair = Repair("drop `shuffle`", remove_argument(self.code, call, shuffle))
            self.report(shuffle, "`sampler` excludes `shuffle=True`: the constructor raises ValueError", repair=repair)
            return
        sampler = self._given(call, "sampler")
        made = sampler is not None and self._may_be_made(call, sampler.value)
        if sampler is not None and made and not self.runs_right(call, LoaderMade, _conflicts):
            key = self.names.key(sampler.value)
            draft = replace(self.code, shuffle.value, f"{key} is None")
            self.report(
                shuffle,
                "`sampler` excludes `shuffle=True`: where one is made, the constructor raises ValueError",
                repair=Repair("shuffle where there is no sampler", draft) if key else None,
            )
        elif self._is_iterable(call):
            self.report(shuffle, "an IterableDataset excludes `shuffle=True`: the constructor raises ValueError")

    def _judge_workers(self, call: cst.Call) -> None:
        given = self.facts.dicts.argument(call, "num_workers", _POSITIONS["num_workers"])
        count = self.names.constant(given.value) if given.value is not None else (0 if given.sure else UNKNOWN)
        by_default = count is UNKNOWN and given.value is not None and self._default(given.value) == 0
        options = {name: self.facts.dicts.argument(call, name).value for name in _OF_WORKERS}
        if count != 0 and not by_default:
            if count is UNKNOWN and given.value is not None and not is_tested(self.facts, call, given.value):
                self._judge_choices(call, given.value, options)
            return
        wrong = [name for name, value in options.items() if value is not None and self._asks_for_workers(name, value)]
        if not wrong or is_tested(self.facts, call, given.value):
            return
        names = " and ".join(f"`{name}`" for name in wrong)
        when = "with `num_workers` at its default 0" if by_default else "with no workers"
        written = [arg for name in wrong if (arg := self.names.argument(call, name)) is not None]
        workers = self._given(call, "num_workers")
        near = len(written) == len(wrong) and (workers is not None or given.value is None)
        self.report(
            written[0] if written else call,
            f"{names} {when}{'' if written else ', in a dict'}: the constructor raises ValueError",
            repair=self._repair(call, written, workers) if near else None,
        )

    def _judge_choices(
        self, call: cst.Call, workers: cst.BaseExpression, options: dict[str, cst.BaseExpression | None]
    ) -> None:
        """An option that a test on the number of workers gives a value, also where there are none."""
        without = WithoutWorkers(self.facts, workers)
        for name, given in options.items():
            values = without.values(given) if given is not None else []
            if values and all(self._asks_for_workers(name, each) for each in values):
                drafts = [replace(self.code, each, "None") for each in values if isinstance(each, cst.Integer)]
                whole = len(drafts) == len(values)
                self.report(
                    self.names.argument(call, name) or call,
                    f"`{name}` has a value where `num_workers` is 0, too: the constructor raises ValueError then",
                    repair=Repair("give it none there", join(*drafts), writes="torch>=2.0") if whole else None,
                )

    def _default(self, value: cst.BaseExpression) -> object:
        return option_default(self.tree, self.names, value)

    def _asks_for_workers(self, name: str, given: cst.BaseExpression) -> bool:
        value = self.names.constant(given)
        if name == "persistent_workers":
            return value is True
        is_old = value == 2 and not self.facts.torch.may_be_at_least("2.0")  # the default of then
        return isinstance(value, int) and not isinstance(value, bool) and not is_old

    def _repair(self, call: cst.Call, wrong: list[cst.Arg], workers: cst.Arg | None) -> Repair | None:
        if workers is None or self.names.constant(workers.value) is not UNKNOWN:
            if len(wrong) > 1:
                return None
            return Repair(
                f"drop `{wrong[0].keyword.value}`" if wrong[0].keyword else "",
                remove_argument(self.code, call, wrong[0]),
            )
        key = self.code.text_of(workers.value)
        drafts = []
        for arg in wrong:
            text = self.code.text_of(arg.value)
            drafts.append(
                replace(self.code, arg.value, f"{key} > 0" if text == "True" else f"{text} if {key} > 0 else None")
            )
        takes_none = any(arg.keyword and arg.keyword.value == "prefetch_factor" for arg in wrong)
        writes = "torch>=2.0" if takes_none else ""
        return Repair("ask for it only where there are workers", join(*drafts), writes=writes)

    def _given(self, call: cst.Call, name: str) -> cst.Arg | None:
        return self.names.argument(call, name, _POSITIONS[name])

    def _says(self, call: cst.Call, name: str) -> bool:
        """Whether an argument surely has another value than its default."""
        arg = self._given(call, name)
        if arg is None:
            return False
        value = self.names.constant(arg.value)
        if name == "batch_size":
            return isinstance(value, int) and value != 1
        return self._is_made(arg) if name == "sampler" else value is True

    def _is_made(self, arg: cst.Arg | None) -> bool:
        """Whether an argument surely is an object, not None: made here by a class."""
        if arg is None:
            return False
        value = arg.value
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            values = [each.value for each in found if each.kind is Kind.ASSIGN and not each.path]
            return bool(values) and len(values) == len(found) and all(self._is_instance(each) for each in values)
        return self._is_instance(value)

    def _may_be_made(self, call: cst.Call, given: cst.BaseExpression | None, depth: int = 0) -> bool:
        """Whether what a call is given surely is an object on one way to it, where no test keeps that way from it."""
        if given is None or depth > _DEPTH:
            return False
        tests = {(self.code.text_of(test), outcome) for test, outcome in self.facts.conditions(call)}
        bound = self.names.bindings.lookup(given) if isinstance(given, cst.Name) else []
        function = bound[0].scope if len(bound) == 1 and bound[0].kind is Kind.PARAMETER else None
        if isinstance(function, cst.FunctionDef) and not tests:
            calls = self.hooks.calls_of.get(function, ())
            name = bound[0].name
            return any(self._may_be_made(e, self.values.given(function, e, name), depth + 1) for e in calls)
        for source in self._sources(given):
            if self._is_instance(source):
                held = {(self.code.text_of(test), outcome) for test, outcome in self.facts.conditions(source)}
                same = self.tree.owner(source) is self.tree.owner(call)
                if not tests or (same and tests <= held):
                    return True
        return False

    def _sources(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What an argument can be: what its name is bound to, what a helper gives, what an object keeps."""
        found: list[cst.BaseExpression] = []
        for source in self.facts.reaching.sources(value):
            node = self.classes.self_class(source.value) if isinstance(source, cst.Attribute) else None
            if node is not None and isinstance(source, cst.Attribute):
                found += self.classes.attribute_values(node, source.attr.value)
            elif isinstance(source, cst.Call) and (helper := self.hooks.callee(source)) is not None:
                given = self.values.returns(helper)
                found += [one for each in given if each is not None for one in self.facts.reaching.sources(each)]
            else:
                found.append(source)
        return found

    def _is_instance(self, value: cst.CSTNode | None) -> bool:
        name = self.names.call(value) or ""
        return name.rpartition(".")[2][:1].isupper() and (
            name.startswith("torch.") or self.classes.local(name) is not None
        )

    def _is_iterable(self, call: cst.Call) -> bool:
        dataset = self.names.argument(call, "dataset", 0)
        origins = self.values.origins(dataset.value) if dataset is not None else ()
        return bool(origins) and all(self.classes.name_is_a(each.name, ITERABLE_DATASET) for each in origins)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loaders whose constructor raises for two arguments that exclude each other."""
        told = by_choice(entry, LoaderMade, _conflicts)
        for event in dict.fromkeys((*sure(entry, LoaderMade, _conflicts, turned=1), *told)):
            yield Fault.at(event, f"`{_excluded(event)}` excludes `shuffle=True`: the constructor raises ValueError")
        options = [e.loader.arguments.get(name) for e in entry.of(LoaderMade) for name in ("num_workers", *_OF_WORKERS)]
        for event in sure(of_default_run(entry, options), LoaderMade, lambda each: bool(self._idle(each))):
            names = " and ".join(f"`{each}`" for each in self._idle(event))
            workers = event.loader.arguments.get("num_workers", Constant(0))
            assumed = traits_of(workers) >= ASSUMED  # whoever makes the object, out of sight, may ask for some
            sure_count = number_of(workers) is not None and not assumed
            when = "with no workers" if sure_count else "with `num_workers` at its default 0"
            tier = Tier.NOTE if assumed else None
            yield Fault.at(event, f"{names} {when}: the constructor raises ValueError", tier=tier)

    def _idle(self, event: LoaderMade) -> list[str]:
        """The arguments that ask for workers, of a loader that surely has none."""
        given = event.loader.arguments
        count = number_of(written(given.get("num_workers", Constant(0))))
        if event.loader.name != "DataLoader" or event.loader.open_arguments or count != 0:
            return []
        ahead = number_of(written(given.get("prefetch_factor")))
        asks = ahead is not None and (ahead != 2 or self.facts.torch.surely_at_least("2.0"))  # the default of before
        found = ["persistent_workers"] if is_constant(written(given.get("persistent_workers")), True) else []
        return [*found, "prefetch_factor"] if asks else found


def _conflicts(event: LoaderMade) -> bool:
    return bool(_excluded(event))


def _excluded(event: LoaderMade) -> str:
    """The argument that `shuffle=True` does not go with, "" for none."""
    given = event.loader.arguments
    shuffle = given.get("shuffle")
    if event.loader.name != "DataLoader" or not is_constant(shuffle, True) or traits_of(shuffle) >= ASSUMED:
        return ""
    return next((name for name in ("sampler", "batch_sampler") if _is_there(given.get(name))), "")


def _is_there(value: Value | None) -> bool:
    return isinstance(value, Instance)
