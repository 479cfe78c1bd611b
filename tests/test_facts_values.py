"""Where values come from: through names, branches, containers, attributes, parameters and annotations."""

from __future__ import annotations

import textwrap
from pathlib import Path

import libcst as cst
import pytest
from file_facts import class_def, facts_in, facts_of, function, spelled

HEADER = "import torch\nimport lightning as L\nfrom torch import nn\nfrom torch.optim import SGD, Adam, Optimizer\n"


def origins(program: str, asked: str = "(asked)") -> list[str]:
    """The last parts of the names of the origins of the first expression with the text `(asked)`."""
    facts = facts_of(HEADER + "from typing import Optional\nimport typing\n" + textwrap.dedent(program))
    return sorted({origin.name.rpartition(".")[2] for origin in facts.values.origins(spelled(facts, asked))})


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("asked = Adam(p)", ["Adam"]),
        ("asked = unknown", []),
        ("if x:\n    asked = Adam(p)\nelse:\n    asked = SGD(p)", ["Adam", "SGD"]),
        ("if x:\n    asked = Adam(p)\nelse:\n    asked = unknown(p)", []),
        ("asked = None\nasked = Adam(p)", ["Adam"]),
        ("asked = Adam(p) if x else SGD(p)", ["Adam", "SGD"]),
        ("first = Adam(p)\nasked = first", ["Adam"]),
        ("asked = Adam(p)\nasked = asked.to(x)", ["Adam"]),
        ("asked = Adam(p)\nasked = wrap(asked)", []),
        ("asked, other = Adam(p), SGD(p)", ["Adam"]),
        ("other, asked = Adam(p), SGD(p)", ["SGD"]),
        ("other, *asked = Adam(p), SGD(p)", []),
        ("*other, asked = Adam(p), SGD(p), SGD(p)", ["SGD"]),
        ("with Adam(p) as asked: ...", []),
        ("if (asked := Adam(p)): ...", ["Adam"]),
        ("asked = Adam(p)\ndel asked", ["Adam"]),
        ("asked = Adam(p)\nasked += 1", []),
        ("for asked in [Adam(p), SGD(p)]: ...", ["Adam", "SGD"]),
        ("for asked in (Adam(p), *others): ...", []),
        ("for i, asked in enumerate([Adam(p), SGD(p)]): ...", ["Adam", "SGD"]),
        ("for other, asked in zip([Adam(p)], [SGD(p)]): ...", ["SGD"]),
        ("for name, asked in {'a': Adam(p)}.items(): ...", ["Adam"]),
        ("for asked in {'a': Adam(p), **more}.values(): ...", []),
        ("for asked in {'a': Adam(p), 'b': SGD(p)}.values(): ...", ["Adam", "SGD"]),
        ("several = [Adam(q) for q in p]\nfor asked in several: ...", ["Adam"]),
        ("several = [Adam(p)]\nseveral.append(SGD(p))\nfor asked in several: ...", ["Adam", "SGD"]),
        ("several = []\nseveral.append(SGD(p))\nfor asked in several: ...", ["SGD"]),
        ("several = [Adam(p)]\nseveral.extend(more)\nfor asked in several: ...", []),
        ("several = {}\nseveral['a'] = Adam(p)\nasked = several['a']", ["Adam"]),
        ("several = []\nfor asked in several: ...", []),
        ("asked = [Adam(p), SGD(p)][0]", ["Adam"]),
        ("asked = [Adam(p), SGD(p)][-1]", ["SGD"]),
        ("asked = [Adam(p), SGD(p)][:1]", []),
        ("asked = {'a': Adam(p), 'b': SGD(p)}['b']", ["SGD"]),
        ("asked = {'a': Adam(p), **more}['a']", []),
        ("def make():\n    return Adam(p)\nasked = make()", ["Adam"]),
        ("def make():\n    return Adam(p), SGD(p)\nother, asked = make()", ["SGD"]),
        ("def make():\n    yield Adam(p)\n    return SGD(p)\nasked = make()", []),
        ("async def make():\n    return SGD(p)\nasked = make()", []),
        ("def make():\n    if x:\n        return\n    return SGD(p)\nasked = make()", []),
        ("def make():\n    return make()\nasked = make()", []),
        ("asked: Optimizer = unknown()", ["Optimizer"]),
        ("asked: Optimizer = Adam(p)", ["Adam"]),
        ("asked: 'torch.optim.Optimizer'", ["Optimizer"]),
        ("class Net(L.LightningModule): ...\nasked = Net.load_from_checkpoint(p)", ["Net"]),
        ("class Agent:\n    def train(self):\n        return 1\nasked = Agent().train()", ["train"]),
    ],
)  # fmt: skip
def test_a_value_comes_from_every_branch_or_from_nowhere_known(program: str, names: list[str]) -> None:
    found = origins(f"{program}\nprint((asked))\n")
    assert found == names or (names == ["train"] and "Agent" not in found)


@pytest.mark.parametrize(
    ("parameter", "names"),
    [
        ("asked: Optimizer", ["Optimizer"]),
        ("asked: 'Optimizer'", ["Optimizer"]),
        ("asked: Optional[Optimizer] = None", ["Optimizer"]),
        ("asked: Optional['torch.optim.Optimizer'] = None", ["Optimizer"]),
        ("asked: typing.Union[None, Optimizer] = None", ["Optimizer"]),
        ("asked: 'Optimizer | None' = None", ["Optimizer"]),
        ("asked: Optimizer | None = None", ["Optimizer"]),
        ("asked: Optimizer | nn.Module", []),
        ("asked: list[Optimizer]", []),
        ("asked: typing.Any", []),
        ("asked: object", []),
        ("*asked: Optimizer", []),
        ("**asked: Optimizer", []),
        ("asked: 'not python'", []),
    ],
)
def test_an_annotation_promises_a_class(parameter: str, names: list[str]) -> None:
    assert origins(f"def f({parameter}):\n    print((asked))\n") == names


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("def f(asked):\n    (asked)\nf(Adam(p))", ["Adam"]),
        ("def f(asked):\n    (asked)\nf(Adam(p))\nf(asked=SGD(p))", ["Adam", "SGD"]),
        ("def f(asked):\n    (asked)\nf(*x)", []),
        ("def f(asked):\n    (asked)", []),
        ("def f(asked=Adam(p)):\n    (asked)\nf()", ["Adam"]),
        ("def f(asked=Adam(p)):\n    (asked)\nf(**x)", []),
        ("def f(asked=None):\n    if asked is None:\n        asked = Adam(p)\n    (asked)", []),
        ("def f(asked=None):\n    if asked is None:\n        asked = Adam(p)\n    (asked)\nf(SGD(p))\nf()", ["Adam", "SGD"]),
        ("def f(x, *, asked):\n    (asked)\nf(1, asked=Adam(p))", ["Adam"]),
        ("class C:\n    def f(self, asked):\n        (asked)\n    def g(self):\n        self.f(Adam(p))", ["Adam"]),
        ("class C:\n    def f(self, asked):\n        (asked)\nC.f(C(), Adam(p))", ["Adam"]),
        ("class C:\n    @staticmethod\n    def f(x, asked):\n        (asked)\n    def g(self):\n        self.f(SGD(p), Adam(p))", ["Adam"]),
        ("class C:\n    @classmethod\n    def f(cls, asked):\n        (asked)\nC.f(Adam(p))", ["Adam"]),
        ("class C:\n    def __init__(self, asked):\n        (asked)\nC(Adam(p))", ["Adam"]),
        ("class C:\n    def __init__(self, asked):\n        (asked)\nclass D(C):\n    def __init__(self):\n        super().__init__(Adam(p))", ["Adam"]),
        ("class C:\n    def __init__(self, asked):\n        (asked)\nclass D(C):\n    def __init__(self):\n        C.__init__(self, Adam(p))", ["Adam"]),
        ("class C:\n    def run(self):\n        self.f(Adam(p))\n    def f(self, x): ...\nclass D(C):\n    def f(self, asked):\n        (asked)", ["Adam"]),
    ],
)  # fmt: skip
def test_a_parameter_is_what_every_call_gives(program: str, names: list[str]) -> None:
    assert origins(program) == names


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("def make(self):\n    self.opt = Adam(p)", ["Adam"]),
        ("def make(self):\n    self.opt = None\ndef again(self):\n    self.opt = SGD(p)", ["SGD"]),
        ("def make(self):\n    self.opt = Adam(p)\ndef again(self, x):\n    self.opt = x", []),
        ("def make(self):\n    self.opt, self.other = Adam(p), SGD(p)", ["Adam"]),
        ("def make(self):\n    self.opt = Adam(p)\ndef again(self):\n    self.opt, self.other = unknown()", []),
        ("def make(self):\n    self.opt = Adam(p)\n    self.opt += 1", []),
        ("def make(self):\n    with x as self.opt: ...\n    self.opt = Adam(p)", []),
        ("def make(self):\n    for self.opt in x: ...\n    self.opt = Adam(p)", []),
        ("opt = Adam(p)", ["Adam"]),
        ("def make(this):\n    this.opt = Adam(p)", ["Adam"]),
        ("def make(self, other):\n    other.opt = Adam(p)", []),
        ("@staticmethod\ndef make(self):\n    self.opt = Adam(p)", []),
        ("def make(self):\n    class Inner:\n        def make(self):\n            self.opt = Adam(p)", []),
        ("def make(self):\n    def later():\n        self.opt = Adam(p)", ["Adam"]),
    ],
)  # fmt: skip
def test_an_attribute_is_what_the_class_sets(body: str, names: list[str]) -> None:
    program = f"class C:\n{textwrap.indent(body, '    ')}\n    def use(self):\n        (self.opt)\n"
    assert origins(program, "(self.opt)") == names


def test_an_attribute_may_be_set_by_a_base() -> None:
    program = """
        class Base:
            def __init__(self):
                self.opt = Adam(p)
        class Sub(Base):
            def use(self):
                (self.opt)
        """
    assert origins(program, "(self.opt)") == ["Adam"]


@pytest.mark.parametrize(
    ("returned", "asked", "names"),
    [
        ("Adam(p)", "opt = self.optimizers()", ["Adam"]),
        ("[Adam(p)]", "opt = self.optimizers()", ["Adam"]),
        ("[Adam(p)], [unknown]", "opt = self.optimizers()", ["Adam"]),
        ("{'optimizer': Adam(p)}", "opt = self.optimizers()", ["Optimizer"]),
        ("[Adam(p), SGD(p)]", "other, opt = self.optimizers()", ["SGD"]),
        ("[Adam(p), SGD(p)]", "opt = self.optimizers()", []),
        ("[Adam(p), SGD(p)]", "for opt in self.optimizers(): ...", ["Optimizer"]),
    ],
)
def test_optimizers_of_a_module_are_what_it_configures(returned: str, asked: str, names: list[str]) -> None:
    program = f"""
        class Net(L.LightningModule):
            def configure_optimizers(self):
                return {returned}
            def training_step(self, batch, batch_idx):
                {asked}
                (opt)
        """
    assert origins(program, "(opt)") == names


def test_roles_follow_classes_through_other_files(tmp_path: Path) -> None:
    files = {
        "models.py": "from torch import nn\nclass Base(nn.Module): ...\n",
        "train.py": "from models import Base\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
        "class Net(Base): ...\nnet = Net()\nfar = Base()\nwrapped = DDP(net)\nprint((net), (far), (wrapped))\n",
    }
    facts = facts_in(tmp_path, files, "train.py")
    assert [facts.values.is_module(spelled(facts, text)) for text in ("(net)", "(far)", "(wrapped)")] == [True] * 3


def test_what_a_call_gives_is_never_a_starred_argument() -> None:
    facts = facts_of("def f(a, b): ...\nf(*x)\nf(1, *x)\n")
    call = spelled(facts, "f(1, *x)")
    assert isinstance(call, cst.Call)
    given = [facts.values.given(function(facts, "f"), call, name) for name in ("a", "b")]
    assert isinstance(given[0], cst.Integer)
    assert given[1] is None


def test_self_is_an_instance_of_its_class() -> None:
    facts = facts_of("from torch import nn\nclass Net(nn.Module):\n    def f(self):\n        (self)\n")
    assert facts.values.is_module(spelled(facts, "(self)"))
    assert facts.classes.self_class(spelled(facts, "(self)")) is class_def(facts, "Net")
