"""Hooks and what they reach: against a breadth-first search, whoever is asked first."""

from __future__ import annotations

import libcst as cst
import pytest
from file_facts import facts_of, function, spelled
from hypothesis import given
from hypothesis import strategies as st

from lightlint.facts.lightning.hooks import Hook, Owner

_METHODS = ("training_step", "on_train_start", "a", "b", "c", "d", "e")


@given(
    st.lists(st.tuples(st.sampled_from(_METHODS), st.sampled_from(_METHODS)), max_size=12),
    st.permutations(_METHODS),
)
def test_hooks_reach_what_a_search_reaches(calls: list[tuple[str, str]], order: list[str]) -> None:
    lines = ["import lightning as L", "class Net(L.LightningModule):"]
    for name in _METHODS:
        lines.append(f"    def {name}(self):")
        lines += [f"        self.{callee}()" for caller, callee in calls if caller == name] or ["        pass"]
    facts = facts_of("\n".join(lines) + "\n")
    expected: dict[str, set[str]] = {name: set() for name in _METHODS}
    for hook in ("training_step", "on_train_start"):
        reached = [hook]
        for each in reached:
            reached += [callee for caller, callee in calls if caller == each and callee not in reached]
        for each in reached:
            expected[each].add(hook)
    for name in order:
        found = facts.hooks.reached(function(facts, f"Net.{name}"))
        assert {hook.name for hook in found} == expected[name]
        assert all(hook.owner is Owner.MODULE for hook in found)
    below = {each.name.value for each in facts.hooks.reachable(function(facts, "Net.a"))}
    reached = ["a"]
    for each in reached:
        reached += [callee for caller, callee in calls if caller == each and callee not in reached]
    assert below == set(reached)


@pytest.mark.parametrize(
    ("base", "method", "hook"),
    [
        ("L.LightningModule", "training_step", Hook(Owner.MODULE, "training_step")),
        ("L.LightningModule", "training_step_end", Hook(Owner.MODULE, "training_step_end")),
        ("L.LightningModule", "helper", None),
        ("L.LightningDataModule", "prepare_data", Hook(Owner.DATA_MODULE, "prepare_data")),
        ("L.LightningDataModule", "training_step", None),
        ("L.Callback", "on_train_batch_end", Hook(Owner.CALLBACK, "on_train_batch_end")),
        ("L.Callback", "setup", Hook(Owner.CALLBACK, "setup")),
        ("L.Callback", "training_step", None),
        ("L.Callback", "forward", None),
        ("object", "training_step", None),
    ],
)
def test_a_hook_belongs_to_the_class_the_framework_knows(base: str, method: str, hook: Hook | None) -> None:
    facts = facts_of(f"import lightning as L\nclass C({base}):\n    def {method}(self): ...\n")
    assert facts.hooks.of(function(facts, f"C.{method}")) == hook


@pytest.mark.parametrize(
    ("name", "per_batch"),
    [
        ("training_step", True),
        ("validation_step", True),
        ("training_step_end", True),
        ("on_train_batch_start", True),
        ("on_after_backward", True),
        ("optimizer_step", True),
        ("transfer_batch_to_device", True),
        ("on_train_epoch_end", False),
        ("training_epoch_end", False),
        ("setup", False),
        ("configure_optimizers", False),
    ],
)
def test_hooks_that_run_once_a_batch(name: str, per_batch: bool) -> None:
    assert Hook(Owner.MODULE, name).per_batch is per_batch


CALLS = """
    def free(): ...
    class Base:
        def step(self): ...
        @staticmethod
        def fixed(): ...
        @classmethod
        def made(cls):
            cls.made()
        def run(self):
            self.step()
            free()
            Base.fixed()
            self.missing()
            other.step()
            def nested():
                self.fixed()
    class Sub(Base):
        def step(self):
            super().step()
        def run(self):
            super().run()
    """


@pytest.mark.parametrize(
    ("call", "callee", "all_of_them"),
    [
        ("free()", "free", {"free"}),
        ("self.step()", "Base.step", {"Base.step", "Sub.step"}),
        ("super().step()", "Base.step", {"Base.step"}),
        ("super().run()", "Base.run", {"Base.run"}),
        ("Base.fixed()", "Base.fixed", {"Base.fixed"}),
        ("self.fixed()", "Base.fixed", {"Base.fixed"}),
        ("cls.made()", "Base.made", {"Base.made"}),
        ("self.missing()", None, set()),
        ("other.step()", None, set()),
    ],
)
def test_a_call_calls_what_its_receiver_has(call: str, callee: str | None, all_of_them: set[str]) -> None:
    facts = facts_of(CALLS)
    node = spelled(facts, call)
    assert isinstance(node, cst.Call)
    found = facts.hooks.callee(node)
    assert (facts.names.qualified(found) if found else None) == callee
    assert {facts.names.qualified(each) for each in facts.hooks.callees(node)} == all_of_them


@pytest.mark.parametrize(
    "program",
    [
        "def f(): ...\nf = wrap(f)\n(f)()",
        "def f(): ...\ndef g(f):\n    f()",
        "if x:\n    def f(): ...\nelse:\n    def f(): ...\nf()",
    ],
)
def test_a_name_of_several_functions_calls_none_surely(program: str) -> None:
    facts = facts_of(program)
    assert [facts.hooks.callee(call) for call in facts.tree.all(cst.Call)][-1] is None


def test_an_override_runs_where_the_base_calls_it() -> None:
    facts = facts_of(
        """
        import lightning as L
        class Base(L.LightningModule):
            def training_step(self, batch, batch_idx):
                return self.compute(batch)
            def compute(self, batch): ...
        class Sub(Base):
            def compute(self, batch):
                def inner(): ...
        """
    )
    step = Hook(Owner.MODULE, "training_step")
    assert facts.hooks.reached(function(facts, "Sub.compute")) == {step}
    assert facts.hooks.reached(function(facts, "Sub.compute.inner")) == {step}
