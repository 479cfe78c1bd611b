"""Which loops draw batches and which hold such loops, whoever is asked first."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest
from file_facts import FileFacts, facts_of, spelled
from hypothesis import given
from hypothesis import strategies as st

HEADER = (
    "import torch\nfrom torch.utils.data import DataLoader\nfrom tqdm import tqdm, trange\nloader = DataLoader(data)\n"
)


def kinds(program: str) -> list[str]:
    """The kinds of a program's loops in the order of the text."""
    facts = facts_of(HEADER + textwrap.dedent(program))
    return [facts.loops.kind(loop).value for loop in _loops(facts)]


def _loops(facts: FileFacts) -> list[cst.For | cst.While]:
    return facts.tree.all(cst.For, cst.While)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("for x in loader: ...", ["batch"]),
        ("for i, x in enumerate(loader): ...", ["batch"]),
        ("for i, x in enumerate(tqdm(loader)): ...", ["batch"]),
        ("for x in [1, 2]: ...", ["other"]),
        ("for x in unknown:\n    loss(x).backward()", ["batch"]),
        ("while step < 3:\n    loss().backward()\n    step += 1", ["batch"]),
        ("for epoch in range(3):\n    for x in loader: ...", ["epoch", "batch"]),
        ("for epoch in trange(3):\n    while x:\n        loss.backward()", ["epoch", "batch"]),
        ("for fold in folds:\n    for epoch in range(3):\n        for x in loader: ...", ["epoch", "epoch", "batch"]),
        ("for x in loader:\n    for opt in opts:\n        loss.backward()", ["batch", "batch"]),
        ("for x in loader:\n    for net, opt in pairs:\n        loss(net(x)).backward()\n        opt.step()", ["batch", "other"]),
        ("for x in unknown:\n    for loss in losses(x):\n        loss.backward()", ["batch", "other"]),
        ("for e in range(3):\n    for x in unknown:\n        for opt in opts:\n            loss.backward()\n            opt.step()", ["epoch", "batch", "other"]),
        ("for x in loader:\n    for p in parameters: ...", ["batch", "other"]),
        ("def train():\n    for x in loader: ...\nfor epoch in range(3):\n    train()", ["batch", "epoch"]),
        ("def step():\n    loss.backward()\nfor x in unknown:\n    step()", ["batch"]),
        ("def train():\n    for e in range(3):\n        for x in loader: ...\nfor fold in folds:\n    train()", ["epoch", "batch", "epoch"]),
        ("for x in unknown:\n    def later():\n        loss.backward()", ["other"]),
        ("def f():\n    for x in y:\n        f()", ["other"]),
        ("def f():\n    for x in y:\n        f()\n        loss.backward()", ["batch"]),
    ],
)  # fmt: skip
def test_loops_are_what_they_repeat(program: str, expected: list[str]) -> None:
    assert kinds(program) == expected


_FUNCTIONS = ("a", "b", "c", "d")


@given(
    st.lists(st.tuples(st.sampled_from(_FUNCTIONS), st.sampled_from(_FUNCTIONS)), max_size=8),
    st.sets(st.sampled_from(_FUNCTIONS)),
    st.permutations(range(4)),
)
def test_kinds_do_not_depend_on_who_is_asked_first(
    calls: list[tuple[str, str]], training: set[str], order: list[int]
) -> None:
    lines = []
    for name in _FUNCTIONS:
        lines += [f"def {name}():", "    for x in unknown:", "        pass"]
        lines += [f"        {callee}()" for caller, callee in calls if caller == name]
        lines += ["        loss.backward()"] * (name in training)
    text = "\n".join(lines) + "\n"
    one, other = facts_of(text), facts_of(text)
    for number in order:
        other.loops.kind(_loops(other)[number])
    found = [one.loops.kind(loop) for loop in _loops(one)]
    assert found == [other.loops.kind(loop) for loop in _loops(other)]
    for name, kind in zip(_FUNCTIONS, found, strict=True):
        reached = [callee for caller, callee in calls if caller == name]
        for each in reached:
            reached += [callee for caller, callee in calls if caller == each and callee not in reached]
        held = training.intersection(reached) - {name}
        assert kind.value == ("epoch" if held else "batch" if name in training else "other")


@pytest.mark.parametrize(
    ("program", "place"),
    [
        ("for x in loader:\n    (here)", "loop"),
        ("for e in range(3):\n    for x in loader: ...\n    (here)", None),
        ("def f():\n    (here)\nfor x in loader:\n    f()", "loop"),
        ("def f():\n    (here)\ndef g():\n    f()\nfor x in loader:\n    g()", "loop"),
        ("def f():\n    (here)\nf()", None),
        ("import lightning as L\nclass M(L.LightningModule):\n    def training_step(self, b, i):\n        (here)", "training_step"),
        ("import lightning as L\nclass M(L.LightningModule):\n    def validation_step(self, b, i):\n        self.f()\n    def on_after_backward(self):\n        self.f()\n    def f(self):\n        (here)", "validation_step"),
        ("import lightning as L\nclass M(L.LightningModule):\n    def on_train_epoch_end(self):\n        (here)", None),
    ],
)  # fmt: skip
def test_what_runs_once_per_batch(program: str, place: str | None) -> None:
    facts = facts_of(HEADER + program)
    found = facts.loops.per_batch(spelled(facts, "(here)"))
    assert (None if found is None else getattr(found, "name", "loop")) == place


@pytest.mark.parametrize(
    ("loop", "one_pass"),
    [
        ("for x in loader: ...", True),
        ("def f(data):\n    for x in data: ...", True),
        ("for x in loader:\n    break", False),
        ("for x in loader:\n    for y in z:\n        break", True),
        ("def f():\n    for x in loader:\n        return x", False),
        ("import itertools\nfor x in itertools.cycle(loader): ...", False),
        ("for x in [1, 2]: ...", False),
    ],
)
def test_one_pass_draws_every_batch_once(loop: str, one_pass: bool) -> None:
    facts = facts_of(HEADER + loop)
    first = facts.tree.all(cst.For)[0]
    assert facts.loops.is_one_pass(first) is one_pass
