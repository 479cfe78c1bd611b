"""The machine against CPython: what it holds for constant, for reached and for one object is so when programs run."""

from __future__ import annotations

import random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rehearsing import entries_of, main_of, names_of, rehearsals_of

from lightlint.engine.events import Backward, Collective, Event, Forward, Stepped, Where
from lightlint.engine.machine import Machine, Test
from lightlint.explore.questions.queries import sure
from lightlint.explore.rehearsals import Entry, Path
from lightlint.values.core import Constant, Mapping, Sequence, Unknown, Value
from lightlint.values.training import Instance, Optimizer


class Program:
    """A small random program of plain Python whose statements all run in a known order."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.names = ["a", "b", "c"]
        self.lines = [
            "a, b, c = 3, 4, 'text'",
            "log = []",
            "def keep(x, *rest, y=2, **more): return (x, len(rest), y, sorted(more))",
        ]
        for _ in range(12):
            self.statement(0)

    def name(self) -> str:
        return self.draw.choice(self.names)

    def number(self) -> str:
        return self.draw.choice(["1", "2", "0", "7", "a", "b", "len(log)"])

    def expression(self) -> str:
        draw = self.draw
        one, two = self.number(), self.number()
        return draw.choice(
            [
                f"{one} + {two}",
                f"{one} * {two}",
                f"({one} if {two} > 2 else {two})",
                f"({one} and {two})",
                f"({one} or {two})",
                f"not {one}",
                f"{one} < {two} < 9",
                f"[{one}, {two}][{draw.choice(['0', '-1'])}]",
                f"{{'k': {one}, **{{'m': {two}}}}}['m']",
                f"(lambda x: x + 1)({one})",
                f"sum(x for x in [{one}, {two}])",
                f"[x * 2 for x in ({one}, {two}) if x]",
                f"max({one}, {two})",
                f"keep({one}, {two}, y={one})",
                f"keep(*[{one}, {two}], **{{'z': {two}}})",
                f"dict(zip('pq', [{one}, {two}]))",
                f"str({one}) + 'x'",
                f"isinstance({one}, int)",
                f"(held := {one}) + held",
            ]
        )

    def statement(self, depth: int) -> None:
        pad, draw = "    " * depth, self.draw
        kind = draw.randrange(12 if depth < 2 else 5)
        if kind < 3:
            name = draw.choice(["a", "b", "d", "e"])
            if kind == 0 and name in self.names and name in "ab":
                self.lines.append(f"{pad}{name} += {self.number()}" if name in self.names else f"{pad}{name} = 1")
            elif name in "ab":
                self.lines.append(f"{pad}{name} = {self.number()} + {self.number()}")
            else:
                self.lines.append(f"{pad}{name} = {self.expression()}")
        elif kind == 3:
            self.lines.append(f"{pad}log.append({self.expression()})")
        elif kind == 4:
            self.lines.append(
                f"{pad}x, *y = {self.number()}, {self.number()}, {self.number()}; log.append((x, len(y)))"
            )
        elif kind in (5, 6):
            self.lines.append(f"{pad}if {self.expression()}:")
            self.statement(depth + 1)
            self.lines.append(f"{pad}else:")
            self.statement(depth + 1)
        elif kind == 7:
            self.lines.append(f"{pad}for i in range({draw.choice('012')}):")
            self.statement(depth + 1)
        elif kind == 8:
            self.lines.append(f"{pad}for i, item in enumerate([{self.number()}, {self.number()}]):")
            self.lines.append(f"{pad}    log.append((i, item))")
            self.lines.append(f"{pad}    if item > 3: {draw.choice(['break', 'continue'])}")
            self.lines.append(f"{pad}else: log.append('whole')")
        elif kind == 9:
            self.lines += [
                f"{pad}try:",
                f"{pad}    if {self.number()}: raise ValueError('x')",
                f"{pad}    log.append(1)",
            ]
            self.lines += [
                f"{pad}except {draw.choice(['ValueError', 'Exception', '(KeyError, ValueError)'])}:",
                f"{pad}    log.append(2)",
            ]
            self.lines += [f"{pad}finally:", f"{pad}    log.append(3)"]
        elif kind == 10:
            self.lines += [
                f"{pad}class Box:",
                f"{pad}    kept = {self.number()}",
                f"{pad}    def __init__(self, x): self.x = x",
                f"{pad}    @property",
                f"{pad}    def twice(self): return [self.x, self.x]",
                f"{pad}class Sub(Box):",
                f"{pad}    def __init__(self, x): super().__init__(x); self.y = Box.kept",
                f"{pad}box = Sub({self.number()}); log.append((box.twice, box.y, box.kept))",
            ]
        else:
            self.lines += [
                f"{pad}def count(n):",
                f"{pad}    for each in range(2):",
                f"{pad}        log.append(('in', each)); yield each + n",
                f"{pad}for each in count({self.number()}): log.append(('out', each))",
            ]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def agrees(value: Value, real: object) -> bool:
    """Whether what the machine holds may be what Python has: an unknown may be anything."""
    if isinstance(value, Constant):
        return type(value.value) is type(real) and value.value == real
    if isinstance(value, Sequence) and isinstance(real, (list, tuple)):
        if value.more:
            return True
        return len(value.items) == len(real) and all(map(agrees, value.items, real))
    if isinstance(value, Mapping) and isinstance(real, dict) and not value.more:
        return value.items.keys() == real.keys() and all(agrees(value.items[key], real[key]) for key in real)
    return not isinstance(value, (Sequence, Mapping)) or value.more


@given(st.integers(0, 10**9))
def test_what_is_held_for_constant_is_so(seed: int) -> None:
    text = Program(seed).text
    real: dict[str, object] = {}
    exec(compile(text, "program", "exec"), real)
    held = names_of(main_of(text))
    for name in ("a", "b", "d", "e", "log", "x", "y"):
        if name in real:
            assert name in held, f"{name} is missing after\n{text}"
            assert agrees(held[name], real[name]), f"{name}: {held[name]} is not {real[name]!r} after\n{text}"


def test_plain_programs_are_worked_out_to_the_end() -> None:
    """Unknown everywhere would agree with anything: most of what plain programs hold is known."""
    known = total = 0
    for seed in range(60):
        held = names_of(main_of(Program(seed).text))
        for name in ("a", "b", "log"):
            total += 1
            known += isinstance(held[name], Constant) or (isinstance(held[name], Sequence) and not held[name].more)
    assert known >= total * 0.9


TRAINING = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def train(loader):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
"""


def test_a_step_is_two_turns_of_the_same_parameters() -> None:
    (entry,) = [each for each in entries_of(TRAINING) if each.name == "train"]
    path = entry.paths[0]
    first, second = path.of(Backward)
    assert len(first.parameters) == 3
    assert first.parameters == second.parameters == path.of(Stepped)[0].parameters
    assert [event.where.turns[-1].number for event in path.of(Forward)] == [1, 2]


def test_the_same_test_comes_out_alike_and_is_tried_the_other_way() -> None:
    entries = entries_of("import sys\nflag = sys.argv\nif flag:\n    a = 1\nelse:\n    a = 2\nb = 1 if flag else 2\n")
    ends = [(names_of(path.machine)["a"].key, names_of(path.machine)["b"].key) for path in entries[0].paths]
    assert ends == [(Constant(1).key, Constant(1).key), (Constant(2).key, Constant(2).key)]


@pytest.mark.parametrize(
    "body",
    [
        "    if mode == 'a': return 1\n    elif mode == 'b': return 2",
        "    if mode == 'a': return 1\n    if mode == 'b': return 2",
        "    with open(mode):\n        if mode == 'b':\n            return 2\n    raise ValueError(mode)",
    ],
)
def test_a_function_whose_tests_are_all_open_gives_a_value(body: str) -> None:
    names = names_of(main_of(f"import sys\ndef pick(mode):\n{body}\nx = pick(sys.argv[1])"))
    assert isinstance(names["x"], Constant)
    assert names["x"].value in (1, 2)


def test_an_open_test_ahead_of_the_work_is_passed_by() -> None:
    names = names_of(
        main_of("import sys\ndef run(a):\n    if a: return 1\n    made.append(2)\nmade = []\nrun(sys.argv[1])")
    )
    made = names["made"]
    assert isinstance(made, Sequence)
    assert len(made.items) == 1


def test_ranks_differ_where_the_rank_is_asked() -> None:
    text = "import torch.distributed as dist\ndist.init_process_group('gloo')\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    first, second = next(entries_of(text)[0].pairs())
    assert [event.name for event in first.of(Collective)] == ["dist.barrier"]
    assert second.of(Collective) == []


def test_other_modules_are_run_when_imported() -> None:
    machine = main_of(
        "from tools import double\nfrom tools import *\nx = double(BASE)\n",
        tools="BASE = 3\ndef double(x): return x * 2\n",
    )
    assert names_of(machine)["x"].key == Constant(6).key


@pytest.mark.parametrize(
    "end", ["while True:\n    pass\n", "def f(x): return f(x)\nf(1)\n", "x = [0]\nfor each in x:\n    x.append(each)\n"]
)
def test_programs_without_end_end(end: str) -> None:
    assert entries_of(end)[0].paths


def test_two_rehearsals_are_alike() -> None:
    def told() -> list[str]:
        return [
            f"{type(event).__name__} {event.site} {event.time}"
            for entry in entries_of(TRAINING)
            for path in entry.paths
            for event in path.events
        ]

    assert told() == told()


def test_assertion_holds_behind_it() -> None:
    program = """
def step(model, loss, fused):
    assert not fused
    if fused:
        loss.sum().backward()
    else:
        loss.mean().backward()
"""
    paths = [path for entry in entries_of(program) for path in entry.paths if path.of(Backward)]
    assert paths
    assert {event.site[1] for path in paths for event in path.of(Backward)} == {7}


def test_functions_that_do_not_train_are_rehearsed_for_words_in_them() -> None:
    rehearsals = rehearsals_of("""
import torch

def scale(x):
    return torch.exp(x)

def scores(x):
    return scale(x)

def size(x):
    return torch.sqrt(x)
""")
    assert {name for each in rehearsals.entries for name in each.calls} == set()
    found = rehearsals.rest(frozenset({"exp"}))
    assert [each.name for each in found] == ["scores"]  # which calls the other
    assert {name for each in found for name in each.calls} == {"torch.exp"}
    assert rehearsals.rest(frozenset({"cos"})) == []


@pytest.mark.parametrize(
    "test",
    [
        "if isinstance(other, nn.Module):",
        "if len(other) and isinstance(other, nn.Module):",
        "if not isinstance(other, nn.Module):\n        return\n    if True:",
    ],
)
def test_isinstance_tells_what_something_is(test: str) -> None:
    text = f"import torch\nfrom torch import nn\n\ndef train(other, loader):\n    {test}\n        other(torch.ones(2)).sum().backward()\n"
    forwards = [event for entry in entries_of(text) for path in entry.paths for event in path.of(Forward)]
    assert forwards
    assert all(event.module.assumed for event in forwards)


@pytest.mark.parametrize(
    "collect",
    [
        "memory.append(step)\n    many = len(memory) > 64",
        "count = min(count + 1, 1000)\n    many = count > 500",
        "count += 1\n    many = count > 500",
    ],
)
def test_what_comes_once_enough_was_collected_is_rehearsed(collect: str) -> None:
    program = f"""
import sys
import torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(net.parameters())
memory, count = [], 0
for step in range(len(sys.argv) * 1000):
    {collect}
    if many:
        net(torch.rand(1, 3)).sum().backward()
        optimizer.step()
"""
    assert any(path.of(Stepped) for entry in entries_of(program) for path in entry.paths)


def test_a_known_list_has_a_known_length() -> None:
    machine = main_of("rows = []\nfor each in (1, 2, 3):\n    rows.append(each)\ncount = len(rows)")
    count = names_of(machine)["count"]
    assert isinstance(count, Constant)
    assert count.value == 3


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("torch.utils.data.DataLoader([1], 4, True)", {"batch_size": 4, "shuffle": True}),
        ("torch.utils.data.RandomSampler([1], True, 7)", {"replacement": True, "num_samples": 7}),
        ("torch.utils.data.DistributedSampler([1], 2, 0, False)", {"num_replicas": 2, "shuffle": False}),
        ("torch.optim.SGD([w], 0.1, 0.9)", {"lr": 0.1, "momentum": 0.9}),
        ("torch.optim.lr_scheduler.StepLR(torch.optim.SGD([w], 0.1), 30, 0.5)", {"step_size": 30, "gamma": 0.5}),
        ("torch.nn.parallel.DistributedDataParallel(net, [0], 0, 0, False)", {"broadcast_buffers": False}),
        ("torch.nn.LSTM(4, 8, 2, True, True)", {"num_layers": 2, "batch_first": True}),
        ("torch.cuda.amp.GradScaler(2.0, 2.0, 0.5, 100, False)", {"enabled": False}),
        ("transformers.TrainingArguments('out', num_train_epochs=2)", {"output_dir": "out", "num_train_epochs": 2}),
        ("transformers.Trainer(net, 1, 2, 3)", {"args": 1, "data_collator": 2, "train_dataset": 3}),
        ("lightning.pytorch.callbacks.EarlyStopping('loss', 0.1, 5)", {"monitor": "loss", "patience": 5}),
        ("Own([1], 4, True)", {"batch_size": 4, "shuffle": True}),
    ],
)
def test_what_a_library_is_given_by_place_is_known_by_name(given: str, found: dict[str, object]) -> None:
    made = names_of(
        main_of(
            "import lightning, torch, transformers\n"
            "class Own(torch.utils.data.DataLoader):\n"
            "    def __init__(self, *args):\n        super().__init__(*args)\n"
            "net = torch.nn.Linear(4, 4)\nw = torch.nn.Parameter(torch.ones(1))\n"
            f"made = {given}\n"
        )
    )["made"]
    assert isinstance(made, Instance)
    values = {name: made.arguments.get(name) for name in found}
    assert {name: each.value for name, each in values.items() if isinstance(each, Constant)} == found


def told(*, flipped: bool = False, finished: bool = True) -> Path:
    """A path on which something happens at one place."""
    where = Where(("main.py", 3, 0, 3, 9), 1, (), (), (), "", grad=True, inside_ddp=False)
    flips = {cast(Test, "test"): flipped} if flipped else {}
    return Path([Event(where)], flips, 0, cast(Machine, None), finished)


@pytest.mark.parametrize(
    ("wrong", "right", "turned", "found"),
    [
        (told(), told(flipped=True), True, False),
        (told(), told(flipped=True, finished=False), True, False),
        (told(flipped=True), None, True, True),
        (told(flipped=True), None, False, False),
        (told(), None, False, True),
    ],
)
def test_a_fault_is_sure_where_no_path_shows_it_right(
    wrong: Path, right: Path | None, turned: bool, found: bool
) -> None:
    entry = Entry("main", [wrong, *([right] if right else [])], turned)
    assert bool([*sure(entry, Event, lambda event: event in wrong.events)]) is found


def test_a_layer_may_be_of_the_class_that_it_was_converted_to() -> None:
    names = names_of(
        main_of(
            "from torch import nn\nmade = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3))\n"
            "found = isinstance(made, nn.SyncBatchNorm)\nother = isinstance(made, nn.Conv2d)\n"
        )
    )
    assert isinstance(names["found"], Unknown)
    assert isinstance(names["other"], Constant)
    assert names["other"].value is False


@pytest.mark.parametrize(
    "end", ["sys.exit()", "exit(1)", "quit()", "os._exit(0)", "assert False, 'no'", "raise SystemExit"]
)
def test_a_side_that_ends_the_program_is_not_the_likely_one(end: str) -> None:
    machine = main_of(f"""
import os, sys
if len(sys.argv) < 3:
    print("usage")
    {end}
after = 1
""")
    assert "after" in names_of(machine)


def test_all_parameters_of_a_large_module_are_in_a_list_of_them() -> None:
    machine = main_of("""
import torch
from torch import nn
net = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(15)])
optimizer = torch.optim.SGD(list(net.parameters()), lr=0.1)
""")
    optimizer = names_of(machine)["optimizer"]
    assert isinstance(optimizer, Optimizer)
    assert (len(optimizer.parameters), optimizer.more) == (30, False)
