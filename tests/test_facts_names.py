"""What names mean: scopes as Python's own `symtable` sees them, imports, canonical names and constants."""

from __future__ import annotations

import symtable
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest
from file_facts import facts_in, facts_of, parses_here, real_programs, spelled
from hypothesis import assume, given
from libcst.metadata import MetadataWrapper, PositionProvider
from programs import programs

from lightlint.facts.code.bindings import Bindings
from lightlint.facts.code.tree import Scope, Tree
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.values.canonical import absolute, canonical

_KINDS = {
    cst.FunctionDef: lambda node: node.name.value,
    cst.ClassDef: lambda node: node.name.value,
    cst.Lambda: lambda _: "lambda",
    cst.ListComp: lambda _: "listcomp",
    cst.SetComp: lambda _: "setcomp",
    cst.DictComp: lambda _: "dictcomp",
    cst.GeneratorExp: lambda _: "genexpr",
}


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _is_reference(tree: Tree, name: cst.Name) -> bool:
    parent = tree.parent(name)
    parts = ("attr", "keyword", "key") if isinstance(parent, (cst.Attribute, cst.Arg, cst.MatchKeywordElement)) else ()
    if isinstance(parent, (cst.FunctionDef, cst.ClassDef, cst.NameItem, cst.Param)):
        parts = ("name",)
    if any(getattr(parent, part, None) is name for part in parts):
        return False
    if any(isinstance(above, (cst.Import, cst.ImportFrom)) for above in tree.ancestors(name)):
        return False
    mangled = name.value.startswith("__") and not name.value.endswith("__")
    return not mangled and name.value not in {"True", "False", "None", "__class__"}


def compare_scopes(text: str) -> int:
    """Compare where each name of a text is bound with what `symtable` says; how many were compared."""
    module = cst.parse_module(text)
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    places = wrapper.resolve(PositionProvider)
    tree = Tree(module)
    bindings = Bindings(tree)
    table_of: dict[Scope, symtable.SymbolTable] = {}
    by_place: dict[tuple[str, int], list[symtable.SymbolTable]] = defaultdict(list)
    top = symtable.symtable(text, "<program>", "exec")
    for table in _tables(top):
        by_place[table.get_name(), table.get_lineno()].append(table)
    scopes: dict[tuple[str, int], list[Scope]] = defaultdict(list)
    for node in tree.nodes:
        if type(node) in _KINDS:
            line = places[node.name if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else node].start.line
            scopes[_KINDS[type(node)](node), line].append(node)
    for place, found in scopes.items():
        if len(found) == 1 == len(by_place[place]):
            table_of[found[0]] = by_place[place][0]
    table_of[module] = top

    def expected(name: str, scope: Scope) -> Scope | None:
        symbol = table_of[scope].lookup(name)
        if symbol.is_global() or scope is module:
            known = name in top.get_identifiers() and top.lookup(name).is_local()
            return module if known or _set_from_inside(top, name) else None
        if symbol.is_local():
            return scope
        above = tree.scope(scope)
        while isinstance(above, cst.ClassDef) or not _owns(table_of[above], name):
            above = tree.scope(above)
        return above

    compared = 0
    for name in tree.all(cst.Name):
        scope = tree.scope(name)
        around = [scope]
        while not isinstance(around[-1], cst.Module):
            around.append(tree.scope(around[-1]))
        if not all(each in table_of for each in around) or not _is_reference(tree, name):
            continue
        written_out = any(isinstance(above, cst.Annotation) for above in tree.ancestors(name))
        if written_out and name.value not in table_of[scope].get_identifiers():
            continue  # `from __future__ import annotations` leaves no symbol
        home = bindings.home(name.value, scope)
        assert home is expected(name.value, scope), (name.value, places[name].start, home)
        compared += 1
    return compared


def _owns(table: symtable.SymbolTable, name: str) -> bool:
    return name in table.get_identifiers() and table.lookup(name).is_local()


def _set_from_inside(top: symtable.SymbolTable, name: str) -> bool:
    """Whether a function or class declares a name global and binds it."""
    tables = [table for table in _tables(top) if name in table.get_identifiers()]
    symbols = [table.lookup(name) for table in tables]
    return any(symbol.is_declared_global() and (symbol.is_assigned() or symbol.is_imported()) for symbol in symbols)


@given(programs())
def test_names_belong_to_the_scopes_that_python_gives_them(text: str) -> None:
    assume(parses_here(text))
    assert compare_scopes(text) >= 0


@pytest.mark.parametrize("path", real_programs(), ids=lambda path: path.stem)
def test_names_of_real_programs_belong_to_the_scopes_that_python_gives_them(path: Path) -> None:
    assert compare_scopes(path.read_text(encoding="utf-8")) > 0


@pytest.mark.parametrize(
    ("program", "expression", "meaning"),
    [
        ("import torch", "torch.nn.Linear", "torch.nn.Linear"),
        ("import torch.nn.functional", "torch.nn.Linear", "torch.nn.Linear"),
        ("import torch.nn as nn", "nn.modules.linear.Linear", "torch.nn.Linear"),
        ("from torch import nn as layers", "layers.Linear", "torch.nn.Linear"),
        ("from torch.utils.data import DataLoader\nDL = DataLoader\nAgain = DL", "Again", "torch.utils.data.DataLoader"),
        ("try:\n    import lightning as L\nexcept ImportError:\n    import pytorch_lightning as L", "L.Trainer", "lightning.Trainer"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch.save", "torch.save"),
        ("if x:\n    from torch.optim import Adam as Best\nelse:\n    from torch.optim import SGD as Best", "Best", None),
        ("from torch.optim import Adam\nAdam = wrap(Adam)", "Adam", None),
        ("import torch\ndel torch", "torch.save", "torch.save"),
        ("", "open", "builtins.open"),
        ("from elsewhere import open", "open", "elsewhere.open"),
        ("def open(): ...", "open", "program.open"),
        ("from torch.nn import *", "Linear", "torch.nn.Linear"),
        ("from torch.nn import *\nfrom elsewhere import *", "Linear", None),
        ("from .torch import save", "save", ".torch.save"),
        ("from . import torch", "torch.save", ".torch.save"),
        ("class torch: ...", "torch.save", "program.torch.save"),
        ("x = y\ny = x", "x", None),
        ("match z:\n    case {'k': 1, **torch}: ...", "torch.save", None),
        ("import torch\ntry: ...\nexcept* OSError as torch: ...", "torch.save", None),
    ],
)  # fmt: skip
def test_a_name_means_what_it_was_bound_to(program: str, expression: str, meaning: str | None) -> None:
    facts = facts_of(f"{program}\nprint(({expression}))\n")
    assert facts.names.of(spelled(facts, f"({expression})")) == meaning


@pytest.mark.parametrize(
    ("function", "meaning"),
    [
        ("def f():\n    return (torch.save)", "torch.save"),
        ("def f(torch):\n    return (torch.save)", None),
        ("def f(x=(torch.save), torch=1): ...", "torch.save"),
        ("def f():\n    [torch for torch in y]\n    return (torch.save)", "torch.save"),
        ("def f():\n    return [(torch.save) for torch in y]", None),
        ("def f():\n    return [torch for torch in (torch.save)]", "torch.save"),
        ("def f():\n    return lambda torch: (torch.save)", None),
        ("def f():\n    [0 for x in y if (torch := x)]\n    return (torch.save)", None),
        ("class C:\n    torch = 1\n    def f(self):\n        return (torch.save)", "torch.save"),
        ("class C:\n    torch = 1\n    x = (torch.save)", None),
        ("def f():\n    torch = 1\n    def g():\n        global torch\n        return (torch.save)", "torch.save"),
        ("def f():\n    global torch\n    torch = 1\ny = (torch.save)", None),
        ("def f():\n    torch = 1\n    def g():\n        def h():\n            nonlocal torch\n            torch = 2\n        return (torch.save)", None),
    ],
)  # fmt: skip
def test_a_name_means_what_its_scope_says(function: str, meaning: str | None) -> None:
    facts = facts_of(f"import torch\n{function}\n")
    assert facts.names.of(spelled(facts, "(torch.save)")) == meaning


@pytest.mark.parametrize(
    ("level", "module", "package", "name"),
    [
        (1, "models", "app.train", "app.train.models"),
        (1, "", "app.train", "app.train"),
        (2, "data", "app.train", "app.data"),
        (2, "", "app", ""),
        (3, "data", "app.train", ".data"),
        (5, "data", "a.b.c", ".data"),
        (1, "torch", "", ".torch"),
    ],
)
def test_relative_imports_start_from_the_package(level: int, module: str, package: str, name: str) -> None:
    assert absolute(module, level, package) == name


def _paths(public: str, *others: str) -> list[tuple[str, str]]:
    return [(path, public) for path in (public, *others)]


@pytest.mark.parametrize(
    ("path", "public"),
    [
        *_paths("lightning.Trainer", "pytorch_lightning.Trainer", "lightning.pytorch.Trainer", "lightning.pytorch.trainer.trainer.Trainer", "pytorch_lightning.trainer.Trainer"),
        *_paths("lightning.LightningModule", "pytorch_lightning.core.lightning.LightningModule", "lightning.pytorch.core.module.LightningModule", "lightning.pytorch.core.LightningModule"),
        *_paths("lightning.LightningDataModule", "pytorch_lightning.core.datamodule.LightningDataModule"),
        *_paths("lightning.Callback", "lightning.pytorch.callbacks.Callback", "pytorch_lightning.callbacks.base.Callback", "lightning.pytorch.callbacks.callback.Callback"),
        *_paths("lightning.callbacks.ModelCheckpoint", "pytorch_lightning.callbacks.model_checkpoint.ModelCheckpoint"),
        *_paths("lightning.loggers.TensorBoardLogger", "lightning.pytorch.loggers.tensorboard.TensorBoardLogger"),
        *_paths("lightning.strategies.DDPStrategy", "pytorch_lightning.strategies.ddp.DDPStrategy"),
        *_paths("lightning.fabric.Fabric", "lightning.Fabric", "lightning_fabric.Fabric", "lightning.fabric.fabric.Fabric"),
        *_paths("lightning.seed_everything", "pytorch_lightning.seed_everything", "pytorch_lightning.utilities.seed.seed_everything", "lightning.fabric.seed_everything", "lightning_fabric.utilities.seed.seed_everything"),
        *_paths("lightning.utilities.rank_zero_only", "pytorch_lightning.utilities.rank_zero_only", "pytorch_lightning.utilities.distributed.rank_zero_only", "lightning.fabric.utilities.rank_zero.rank_zero_only", "lightning.pytorch.utilities.rank_zero.rank_zero_only"),
        *_paths("lightning.cli.LightningCLI", "pytorch_lightning.utilities.cli.LightningCLI", "lightning.pytorch.cli.LightningCLI"),
        *_paths("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"),
        *_paths("torch.nn.Parameter", "torch.nn.parameter.Parameter"),
        *_paths("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel"),
        *_paths("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"),
        *_paths("torch.distributed.fsdp.FullyShardedDataParallel", "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel"),
        *_paths("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_"),
        *_paths("torch.optim.Adam", "torch.optim.adam.Adam"),
        *_paths("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"),
        *_paths("torch.optim.lr_scheduler.StepLR"),
        *_paths("torch.optim.swa_utils.AveragedModel"),
        *_paths("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"),
        *_paths("torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler"),
        *_paths("torch.utils.data.random_split", "torch.utils.data.dataset.random_split"),
        *_paths("torch.utils.data.default_collate", "torch.utils.data._utils.collate.default_collate"),
        *_paths("torch.distributed.get_rank", "torch.distributed.distributed_c10d.get_rank"),
        *_paths("torch.multiprocessing.spawn", "torch.multiprocessing.spawn.spawn"),
        *_paths("torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"),
        *_paths("torch.amp.autocast", "torch.autocast", "torch.amp.autocast_mode.autocast"),
        *_paths("torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"),
        *_paths("torch.autograd.Variable", "torch.autograd.variable.Variable"),
        *_paths("torch.cuda.empty_cache", "torch.cuda.memory.empty_cache"),
        *_paths("torch.manual_seed", "torch.random.manual_seed"),
        *_paths("torch.save", "torch.serialization.save"),
        *_paths("torchvision.models.resnet18"),
        *_paths("lightning_bolts.Trainer"),
    ],
)  # fmt: skip
def test_every_path_to_an_object_is_one_name(path: str, public: str) -> None:
    assert canonical(path) == public
    parts = path.split(".")
    facts = facts_of(f"import {parts[0]}\nimport {'.'.join(parts[:-1])} as room\nprint({path}, room.{parts[-1]})\n")
    assert facts.names.of(spelled(facts, path)) == public
    assert facts.names.of(spelled(facts, f"room.{parts[-1]}")) == public


@pytest.mark.parametrize(
    ("program", "expression", "value"),
    [
        ("", "-3", -3),
        ("", "'a' 'b'", "ab"),
        ("", "f'{x}'", UNKNOWN),
        ("", "[1, (2, 'x')]", [1, [2, "x"]]),
        ("", "[*x]", UNKNOWN),
        ("WORKERS = 4\nx = WORKERS", "x", 4),
        ("x = 4\nx = 5", "x", UNKNOWN),
        ("x = 4\nx += 1", "x", UNKNOWN),
        ("for x in [1]: ...", "x", UNKNOWN),
        ("x, y = 1, 2", "y", 2),
        ("x, *y = 1, 2", "y", UNKNOWN),
        ("x = 4\ndef f():\n    global x\n    x = 5", "x", UNKNOWN),
        ("x = x", "x", UNKNOWN),
    ],
)
def test_constants_are_what_a_name_surely_holds(program: str, expression: str, value: object) -> None:
    facts = facts_of(f"{program}\nprint(({expression}))\n")
    assert facts.names.constant(spelled(facts, f"({expression})")) == value


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("f(1, 2)", "2"),
        ("f(1, y=3)", "3"),
        ("f(y=3)", "3"),
        ("f(1)", None),
        ("f(*x, 2)", None),
        ("f(1, *x)", None),
        ("f(1, **x)", None),
        ("f(*x, y=3)", "3"),
    ],
)
def test_arguments_are_found_by_keyword_or_position(call: str, given: str | None) -> None:
    facts = facts_of(call)
    node = spelled(facts, call)
    assert isinstance(node, cst.Call)
    arg = facts.names.argument(node, "y", 1)
    assert (None if arg is None else facts.source.text[slice(*facts.span(arg.value))]) == given


@pytest.mark.parametrize(
    ("beside", "name"),
    [
        ("other.py", "lightning.LightningModule"),
        ("lightning.py", ".lightning.LightningModule"),
        ("lightning/__init__.py", ".lightning.LightningModule"),
        ("lightning/model.py", "lightning.LightningModule"),  # a folder without `__init__.py` comes last
    ],
)
def test_a_module_beside_a_script_hides_the_library(beside: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "scripts" / beside).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "scripts" / beside).touch()
    facts = facts_in(
        tmp_path, {"scripts/train.py": "from lightning import LightningModule\nLightningModule\n"}, "scripts/train.py"
    )
    [use] = [each.value for each in facts.tree.all(cst.Expr)]
    assert facts.names.of(use) == name
