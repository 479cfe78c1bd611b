"""What is known of training steps: who steps what, what clears gradients, and which item of a display is meant."""

from __future__ import annotations

import textwrap
from pathlib import Path

import libcst as cst
import pytest

from lightlint.facts.file import FileFacts
from lightlint.facts.project.project import Projects
from lightlint.sources.source import Source

HEADER = "import copy\nimport lightning as L\nimport torch\nfrom torch import nn, optim\n"


class Verbatim:
    def render(self, source: Source) -> bytes:
        return source.text.encode()


def facts_of(program: str, folder: Path) -> FileFacts:
    text = HEADER + textwrap.dedent(program)
    source = Source(str(folder / "program.py"), text, Verbatim())
    return FileFacts(source, cst.parse_module(text), Projects().of(folder / "program.py"))


def spelled(facts: FileFacts, text: str, kind: type[cst.CSTNode] = cst.Call) -> cst.CSTNode:
    """The one node of a type with this text."""
    start_end = [(node, facts.span(node)) for node in facts.tree.all(kind)]
    [found] = [node for node, (start, end) in start_end if facts.source.text[start:end] == text]
    return found


def made_by(facts: FileFacts, text: str) -> list[str]:
    call = spelled(facts, text)
    assert isinstance(call, cst.Call)
    assert isinstance(call.func, cst.Attribute)
    return sorted(origin.name.rpartition(".")[2] for origin in facts.values.origins(call.func.value))


@pytest.mark.parametrize(
    ("step", "names"),
    [
        ("pair[0].step()", ["SGD"]),
        ("pair[-1].step()", ["Adam"]),
        ("pair[number].step()", ["Adam", "SGD"]),
        ("table['a'].step()", ["SGD"]),
        ("table[name].step()", ["Adam", "SGD"]),
        ("table['c'].step()", []),
        ("pair[7].step()", []),
    ],
)
def test_an_item_of_a_display_is_found_by_its_key(step: str, names: list[str], tmp_path: Path) -> None:
    facts = facts_of(
        f"""
        def run(net, number, name):
            pair = [optim.SGD(net.parameters()), optim.Adam(net.parameters())]
            table = {{"a": pair[0], "b": optim.Adam(net.parameters())}}
            {step}
        """,
        tmp_path,
    )
    assert made_by(facts, step) == names


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        ("first", ["SGD"]),
        ("[first]", ["SGD"]),
        ("[first], [optim.lr_scheduler.StepLR(first, 1)]", ["SGD"]),
        ('{"optimizer": first}', ["Optimizer"]),
        ("make(self)", ["Optimizer"]),
    ],
)
def test_optimizers_are_those_that_configure_optimizers_returns(
    returned: str, names: list[str], tmp_path: Path
) -> None:
    facts = facts_of(
        f"""
        class Net(L.LightningModule):
            def training_step(self, batch, index):
                optimizer = self.optimizers()
                optimizer.step()

            def configure_optimizers(self):
                first = optim.SGD(self.parameters())
                return {returned}
        """,
        tmp_path,
    )
    assert made_by(facts, "optimizer.step()") == names


def test_unpacked_optimizers_keep_their_order(tmp_path: Path) -> None:
    facts = facts_of(
        """
        class Net(L.LightningModule):
            def training_step(self, batch, index):
                one, two = self.optimizers()
                one.step()
                two.step()

            def configure_optimizers(self):
                return optim.SGD(self.a.parameters()), optim.Adam(self.b.parameters())
        """,
        tmp_path,
    )
    assert (made_by(facts, "one.step()"), made_by(facts, "two.step()")) == (["SGD"], ["Adam"])


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("for x in data:\n    net(x).backward()\n    one.step()", 1),
        ("for x in data:\n    net(x).backward()\n    one.step()\n    break", 0),
        ("for x in data:\n    net(x).backward()\none.step()", 0),
        ("for e in data:\n    for x in e:\n        net(x).backward()\n    one.step()", 1),
        ("for x in data:\n    train(net, x)\n    one.step()", 1),
        ("for x in data:\n    one.step()", 0),
    ],
)
def test_the_loop_that_repeats_backward_and_step(body: str, count: int, tmp_path: Path) -> None:
    lines = textwrap.indent(body, "    ")
    facts = facts_of(
        f"def train(net, x):\n    net(x).backward()\n\ndef run(net, data):\n    one = optim.SGD(net.parameters())\n{lines}\n",
        tmp_path,
    )
    assert len(list(facts.steps.repeated(spelled(facts, "one.step()"), facts.loops.is_backward))) == count


def test_methods_are_known_through_the_constructor_of_their_object(tmp_path: Path) -> None:
    facts = facts_of(
        """
        class Agent:
            def update(self):
                pass

        def run(other):
            agent = Agent()
            agent.update()
            other.update()
        """,
        tmp_path,
    )
    known, unknown = spelled(facts, "agent.update()"), spelled(facts, "other.update()")
    assert isinstance(known, cst.Call)
    assert isinstance(unknown, cst.Call)
    method = facts.steps.callee(known)
    assert method is not None
    assert method.name.value == "update"
    assert facts.steps.callee(unknown) is None


@pytest.mark.parametrize(
    ("handler", "rescues"),
    [
        ("except RuntimeError:\n    return None", 1),
        ("except RuntimeError:\n    return", 1),
        ("except (KeyError, Exception):\n    pass", 1),
        ("except BaseException:\n    loss = None", 1),
        ("except:\n    return torch.zeros(()).to(x.device)", 1),
        ("except RuntimeError:\n    raise", 0),
        ("except RuntimeError as e:\n    if 'memory' in str(e):\n        return None\n    raise", 1),
        ("except RuntimeError as e:\n    raise ValueError('no') from e", 0),
        ("except KeyError:\n    return None", 0),
        ("except RuntimeError:\n    return self.head(x[:1])", 0),
        ("except RuntimeError:\n    return self.other(x)", 0),
        ("except RuntimeError:\n    sys.exit(3)", 0),
        ("except RuntimeError:\n    loss = sum(p.sum() for p in self.parameters()) * 0", 0),
        ("except RuntimeError:\n    torch.distributed.all_reduce(self.failed)\n    return None", 0),
    ],
)
def test_handlers_that_let_a_step_go_on(handler: str, rescues: int, tmp_path: Path) -> None:
    lines = textwrap.indent(handler, " " * 8)
    facts = facts_of(
        f"import sys\n\nclass Net(L.LightningModule):\n    def __init__(self):\n        self.head = nn.Linear(2, 2)\n\n"
        f"    def training_step(self, x, index):\n        loss = None\n        try:\n            loss = self.head(x)\n"
        f"{lines}\n        return loss\n",
        tmp_path,
    )
    assert len(facts.rescues.all) == rescues


@pytest.mark.parametrize(
    ("program", "off"),
    [
        ("def run():\n    mark()", False),
        ("def run():\n    with torch.no_grad():\n        mark()", True),
        ("def run():\n    with torch.inference_mode():\n        mark()", True),
        ("@torch.no_grad()\ndef run():\n    mark()", True),
        ("@torch.no_grad\ndef run():\n    mark()", True),
        ("def run():\n    mark()\n\ndef outer():\n    with torch.no_grad():\n        run()", True),
        ("def run():\n    mark()\n\ndef outer():\n    run()", False),
        ("torch.set_grad_enabled(False)\n\ndef run():\n    mark()", True),
        ("class Net(L.LightningModule):\n    def validation_step(self, b, i):\n        mark()", True),
        ("class Net(L.LightningModule):\n    def training_step(self, b, i):\n        mark()", False),
        ("class Net(L.LightningModule):\n    def on_test_batch_end(self, *a):\n        mark()", True),
    ],
)
def test_where_autograd_may_be_off(program: str, off: bool, tmp_path: Path) -> None:
    facts = facts_of(program, tmp_path)
    assert facts.gradients.may_be_off(spelled(facts, "mark()")) is off


@pytest.mark.parametrize(
    ("kept", "graphs"),
    [
        ("loss", ["loss"]),
        ("loss * 4 + 1", ["loss"]),
        ("loss.mean().cpu()", ["loss"]),
        ("(1, loss)", ["loss"]),
        ("first", ["first"]),
        ("size", []),
        ("loss.item()", []),
        ("loss.detach()", []),
        ("float(loss)", []),
        ("loss.data", []),
        ("other", []),
        ("net(x)", ["net(x)"]),
        ("net(x).argmax(1)", []),
        ("relu(x)", []),
        ("relu(net(x))", ["relu(net(x))"]),
        ("unknown(x)", []),
    ],
)
def test_what_carries_a_graph(kept: str, graphs: list[str], tmp_path: Path) -> None:
    facts = facts_of(
        f"""
        def run(data, other, unknown):
            net, relu = nn.Linear(2, 2), nn.ReLU()
            for x in data:
                size = len(x)
                first = unknown(x)
                loss = first + other * size
                loss.backward()
                mark({kept})
        """,
        tmp_path,
    )
    [mark] = [call for call in facts.tree.all(cst.Call) if facts.names.method(call) == "mark"]
    found = facts.gradients.graphs(mark.args[0].value)
    spans = [facts.span(graph.node) for graph in found]
    assert [facts.source.text[start:end] for start, end in spans] == graphs


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("total += x", ["total"]),
        ("total = 0.9 * total + x", ["total"]),
        ("total = x", []),
        ("kept.append(x)", ["kept"]),
        ("kept.append(x)\n    kept = kept[-5:]", []),
        ("kept.append(x)\n    kept.clear()", []),
        ("total = 0\n    total += x", []),
        ("total += x\n    total = total.detach()", []),
        ("unknown.append(x)", []),
        ("table['a'] += x", ["table['a']"]),
        ("table[x] += x", ["table"]),
    ],
)
def test_what_gathers_over_iterations(body: str, keys: list[str], tmp_path: Path) -> None:
    facts = facts_of(
        "def run(data, unknown):\n  total = 0\n  kept = []\n  table = {'a': 0}\n"
        f"  for x in data:\n    x.backward()\n    {body}\n",
        tmp_path,
    )
    found = [facts.keepers.of(node) for node in facts.tree.nodes]
    assert [keeper.key for keeper in found if keeper is not None] == keys
