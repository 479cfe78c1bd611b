"""Class hierarchies: across files, through re-exports, in the order Python looks methods up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from file_facts import class_def, facts_in, facts_of, function, spelled
from hypothesis import given
from hypothesis import strategies as st

from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.objects.classes import CALLBACK, DATA_MODULE, DATASET, MODULE, NN_MODULE, OPTIMIZER


@pytest.mark.parametrize(
    ("program", "role"),
    [
        ("import lightning as L\nclass C(L.LightningModule): ...", MODULE),
        ("import lightning as L\nclass C(L.LightningModule): ...", NN_MODULE),
        ("import pytorch_lightning as pl\nclass C(pl.callbacks.EarlyStopping): ...", CALLBACK),
        ("import lightning as L\nclass C(L.LightningDataModule): ...", DATA_MODULE),
        ("from torch.utils.data import ChainDataset\nclass C(ChainDataset): ...", DATASET),
        ("import torch\nclass C(torch.optim.AdamW): ...", OPTIMIZER),
        ("from torch.nn.parallel import DistributedDataParallel as D\nclass C(D): ...", NN_MODULE),
        ("from lightning.pytorch.demos.boring_classes import BoringModel\nclass C(BoringModel): ...", MODULE),
        ("from typing import Generic, TypeVar\nfrom torch import nn\nT = TypeVar('T')\nclass B(nn.Module, Generic[T]): ...\nclass C(B[int]): ...", NN_MODULE),
        ("from abc import ABCMeta\nfrom torch import nn\nclass C(nn.Module, metaclass=ABCMeta): ...", NN_MODULE),
        ("from torch.nn import *\nclass C(Module): ...", NN_MODULE),
    ],
)  # fmt: skip
def test_library_classes_give_roles(program: str, role: str) -> None:
    facts = facts_of(program)
    assert facts.classes.is_a(class_def(facts, "C"), role)


@pytest.mark.parametrize(
    "program",
    [
        "from elsewhere import Base\nclass C(Base): ...",
        "from torch import nn\nclass C(make(nn.Module)): ...",
        "from torch import nn\nbases = [nn.Module]\nclass C(*bases): ...",
        "class C(C): ...",
        "if x:\n    from torch.nn import Module as Base\nelse:\n    Base = object\nclass C(Base): ...",
        "from torch import nn\nif x:\n    class B(nn.Module): ...\nelse:\n    class B: ...\nclass C(B): ...",
        "from torch import nn\nclass B(nn.Module): ...\nclass B: ...\nclass C(B): ...",
        "import torch\nclass C(torch.nn.Parameter): ...",
    ],
)
def test_what_may_be_another_class_has_no_role(program: str) -> None:
    facts = facts_of(program)
    node = class_def(facts, "C")
    assert not facts.classes.is_a(node, NN_MODULE)
    assert "Parameter" in program or not facts.classes.complete(node)


@pytest.mark.parametrize("bases", ["", "(object)", "(Exception)", "(abc.ABC)", "(Generic[T])", "(enum.Enum)"])
def test_classes_of_python_itself_are_in_sight(bases: str, tmp_path: Path) -> None:
    program = f"import abc, enum\nfrom typing import Generic, TypeVar\nT = TypeVar('T')\nclass Base{bases}: ...\n"
    files = {"base.py": program, "train.py": "from base import Base\nclass C(Base): ...\n"}
    facts = facts_in(tmp_path, files, "train.py")
    assert facts.classes.complete(class_def(facts, "C"))
    alone = facts_of(program)
    assert alone.classes.complete(class_def(alone, "Base"))


BASE = "import lightning as L\nclass Base(L.LightningModule):\n    automatic_optimization = False\n    def helper(self): ...\n"
USE = "class C(Base):\n    def training_step(self, batch, batch_idx): ...\n"


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        ({"base.py": BASE, "train.py": "from base import Base\n" + USE}, "train.py"),
        ({"app/__init__.py": "", "app/base.py": BASE, "app/train.py": "from .base import Base\n" + USE}, "app/train.py"),
        ({"app/base.py": BASE, "app/train.py": "from .base import Base\n" + USE}, "app/train.py"),
        ({"app/base.py": BASE, "train.py": "from app.base import Base\n" + USE}, "train.py"),
        ({"src/app/__init__.py": "", "src/app/base.py": BASE, "tests/train.py": "from app.base import Base\n" + USE}, "tests/train.py"),
        ({"app/__init__.py": "from .base import Base", "app/base.py": BASE, "train.py": "from app import Base\n" + USE}, "train.py"),
        ({"app/__init__.py": "from .base import *", "app/base.py": BASE, "train.py": "from app import Base\n" + USE}, "train.py"),
        ({"app/__init__.py": "from .all import *", "app/all.py": "from app.base import *", "app/base.py": BASE, "train.py": "import app\nBase = app.Base\n" + USE}, "train.py"),
        ({"app/__init__.py": "", "app/base.py": BASE, "app/train.py": "from .base import *\n" + USE}, "app/train.py"),
        ({"base.py": BASE, "mid.py": "from base import *\nclass Mid(Base): ...\n", "train.py": "from mid import Mid as Base\n" + USE}, "train.py"),
        ({"base.py": BASE, "mid.py": "import base as b\nKeep = b.Base\n", "train.py": "from mid import Keep as Base\n" + USE}, "train.py"),
        ({"base.py": BASE, "mid.py": "from typing import Generic\nimport base\nclass Mid(base.Base, Generic[T]): ...\n", "train.py": "from mid import Mid as Base\n" + USE}, "train.py"),
        ({"pkg/__init__.py": "", "pkg/base.py": BASE, "pkg/sub/__init__.py": "", "pkg/sub/train.py": "from ..base import Base\n" + USE}, "pkg/sub/train.py"),
        ({"base.py": BASE + "def f():\n    class Base: ...\n    from elsewhere import Base\n", "train.py": "from base import Base\n" + USE}, "train.py"),
    ],
)  # fmt: skip
def test_a_base_is_found_in_other_files(files: Mapping[str, str], asked: str, tmp_path: Path) -> None:
    facts = facts_in(tmp_path, files, asked)
    node = class_def(facts, "C")
    assert facts.classes.is_a(node, MODULE, NN_MODULE)
    assert facts.classes.has_method(node, "helper")
    assert facts.classes.constant(node, "automatic_optimization", True) is False


@pytest.mark.parametrize(
    "base",
    [
        "try:\n    from lightning import LightningModule as Base\nexcept ImportError:\n    class Base: ...\n",
        "import lightning\nif x:\n    class Base(lightning.LightningModule): ...\nelse:\n    class Base: ...\n",
        "from lightning import LightningModule as Base\nBase = wrap(Base)\n",
        "def f():\n    from lightning import LightningModule as Base\n",
        "syntax error(\n",
    ],
)
def test_a_base_that_may_be_another_class_is_out_of_sight(base: str, tmp_path: Path) -> None:
    facts = facts_in(tmp_path, {"base.py": base, "train.py": "from base import Base\n" + USE}, "train.py")
    node = class_def(facts, "C")
    assert not facts.classes.is_a(node, MODULE) or not facts.classes.complete(node)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("", True),
        ("    automatic_optimization = False\n", False),
        ("    automatic_optimization: bool = False\n", False),
        ("    def __init__(self):\n        self.automatic_optimization = False\n", False),
        ("    def __init__(self, x):\n        self.automatic_optimization = x\n", UNKNOWN),
        ("    def __init__(self):\n        self.automatic_optimization, self.x = False, 1\n", False),
        ("    def __init__(self, x):\n        self.automatic_optimization, self.x = x\n", UNKNOWN),
        ("    automatic_optimization = False\n    def f(self):\n        self.automatic_optimization = True\n", UNKNOWN),
        ("    @property\n    def automatic_optimization(self):\n        return False\n", UNKNOWN),
    ],
)
def test_a_constant_attribute_is_what_all_code_sets(body: str, value: object, tmp_path: Path) -> None:
    program = f"import lightning as L\nclass C(L.LightningModule):\n    x = 1\n{body}"
    facts = facts_of(program)
    assert facts.classes.constant(class_def(facts, "C"), "automatic_optimization", True) == value
    far = facts_in(tmp_path, {"base.py": program, "train.py": "from base import C\nclass D(C): ...\n"}, "train.py")
    seen = far.classes.constant(class_def(far, "D"), "automatic_optimization", True)
    assert seen == value or (seen is UNKNOWN and "self.x = False, 1" in body)


def test_a_constant_is_unknown_where_a_base_is_out_of_sight() -> None:
    facts = facts_of("from elsewhere import Base\nclass C(Base): ...\n")
    assert facts.classes.constant(class_def(facts, "C"), "automatic_optimization", True) is UNKNOWN


hierarchies = st.lists(st.lists(st.integers(0, 7), max_size=3, unique=True), min_size=1, max_size=7)


@given(hierarchies, st.lists(st.integers(0, 6), max_size=4))
def test_methods_are_looked_up_as_python_does(bases: list[list[int]], defining: list[int]) -> None:
    classes: list[type] = []
    lines: list[str] = []
    for number, above in enumerate(bases):
        known = [each for each in above if each < len(classes)]
        body = {"m": None} if number in defining else {}
        try:
            classes.append(type(f"C{number}", tuple(classes[each] for each in known), body))
        except TypeError:
            known = known[:1]
            classes.append(type(f"C{number}", tuple(classes[each] for each in known), body))
        lines.append(f"class C{number}({', '.join(f'C{each}' for each in known)}):")
        lines.append("    def m(self): ..." if number in defining else "    pass")
    facts = facts_of("\n".join(lines) + "\n")
    for real in classes:
        node = class_def(facts, real.__name__)
        order = [name.rpartition(".")[2] for name in facts.classes.ancestors(node)]
        assert order == [each.__name__ for each in real.__mro__[1:-1]]
        owner = next((each.__name__ for each in real.__mro__ if "m" in vars(each)), None)
        method = facts.classes.method(node, "m")
        assert (facts.names.qualified(method) if method else None) == (f"{owner}.m" if owner else None)


@given(st.lists(st.lists(st.integers(0, 4), max_size=2), min_size=2, max_size=5), st.permutations(range(5)))
def test_classes_that_derive_from_each_other_are_the_same_whoever_is_asked_first(
    bases: list[list[int]], order: list[int]
) -> None:
    count = len(bases)
    lines = [f"class C{n}({', '.join(f'C{each % count}' for each in above)}): ..." for n, above in enumerate(bases)]
    first, second = facts_of("\n".join(lines)), facts_of("\n".join(lines))
    for number in order:
        if number < count:
            second.classes.ancestors(class_def(second, f"C{number}"))
    for number in range(count):
        name = f"C{number}"
        assert first.classes.ancestors(class_def(first, name)) == second.classes.ancestors(class_def(second, name))


def test_a_class_of_another_file_that_comes_first_hides_a_method(tmp_path: Path) -> None:
    files = {
        "base.py": "class Far:\n    def m(self): ...\n",
        "train.py": "from base import Far\nclass Near:\n    def m(self): ...\nclass C(Far, Near): ...\nclass D(Near, Far): ...\n",
    }
    facts = facts_in(tmp_path, files, "train.py")
    assert facts.classes.method(class_def(facts, "C"), "m") is None
    assert facts.classes.method(class_def(facts, "D"), "m") is function(facts, "Near.m")


@pytest.mark.parametrize(
    ("function_text", "owner"),
    [
        ("def f(self):\n        (self)", "C"),
        ("def f(this):\n        (self)", None),
        ("def f(this, self):\n        (self)", None),
        ("@staticmethod\n    def f(self):\n        (self)", None),
        ("@classmethod\n    def f(self):\n        (self)", "C"),
        ("def f(self):\n        self = x\n        (self)", None),
        ("def f(self):\n        def g():\n            (self)", "C"),
        ("def f(self):\n        def g(self):\n            (self)", None),
        ("def f(self):\n        class D:\n            def g(other):\n                (self)", "C"),
    ],
)
def test_self_is_the_first_parameter_of_a_method(function_text: str, owner: str | None) -> None:
    facts = facts_of(f"class C:\n    {function_text}\n")
    found = facts.classes.self_class(spelled(facts, "(self)"))
    assert (found.name.value if found else None) == owner
