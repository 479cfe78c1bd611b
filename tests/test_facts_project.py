"""Other files: where modules lie, what a summary says of them, and what is never read without being asked for."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from file_facts import facts_in, facts_of, real_programs

from lightlint.facts.file import FileFacts
from lightlint.facts.project.project import Project, Projects
from lightlint.facts.project.roots import root_of
from lightlint.facts.project.summary import NOTED, ModuleSummary, summarise


def project_of(folder: Path, *files: str) -> Project:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return Project(folder)


@pytest.mark.parametrize(
    ("files", "asked", "root"),
    [
        (["pyproject.toml", "app/__init__.py", "app/a.py"], "app/a.py", "."),
        (["setup.py", "src/app/a.py"], "src/app/a.py", "."),
        (["pyproject.toml", "part/setup.cfg", "part/a.py"], "part/a.py", "part"),
        (["requirements.txt", "src/app/a.py"], "src/app/a.py", "."),
        (["environment.yml", "one/requirements.txt", "one/app/a.py"], "one/app/a.py", "one"),
        (["pyproject.toml", "one/requirements.txt", "one/app/a.py"], "one/app/a.py", "."),
    ],
)
def test_a_project_starts_at_the_nearest_project_file(files: list[str], asked: str, root: str, tmp_path: Path) -> None:
    project_of(tmp_path, *files)
    assert root_of((tmp_path / asked).parent) == tmp_path / root
    projects = Projects()
    assert projects.of(tmp_path / asked) is projects.of(tmp_path / asked)


@pytest.mark.parametrize(
    ("path", "module", "package"),
    [
        ("app/train.py", "app.train", "app"),
        ("app/__init__.py", "app", "app"),
        ("app/sub/__init__.py", "app.sub", "app.sub"),
        ("app/sub/data.py", "app.sub.data", "app.sub"),
        ("scripts/run.py", "run", ""),
        ("src/lib/core.py", "lib.core", "lib"),
        ("scripts/cells.ipynb", "cells", ""),
    ],
)
def test_modules_are_named_from_where_their_packages_start(
    path: str, module: str, package: str, tmp_path: Path
) -> None:
    project = project_of(tmp_path, "app/__init__.py", "app/sub/__init__.py", "src/lib/__init__.py", path)
    assert project.module_name(tmp_path / path) == module
    assert project.package_name(tmp_path / path) == package


@pytest.mark.parametrize(
    ("module", "near", "found"),
    [
        ("app.train", "scripts", "app/train.py"),
        ("app", "scripts", "app/__init__.py"),
        ("lib.core", "scripts", "src/lib/core.py"),
        ("helper", "scripts", "scripts/helper.py"),
        ("spaced.mod", "scripts", "spaced/mod.py"),
        ("helper", "app", None),
        ("app.missing", "scripts", None),
        ("torch", "scripts", None),
        ("utils", "app/sub", "utils.py"),
        ("beside", "app/sub", "app/sub/beside.py"),
        (".beside", "app/sub", "app/sub/beside.py"),
    ],
)
def test_modules_are_found_where_python_looks(module: str, near: str, found: str | None, tmp_path: Path) -> None:
    files = ["app/__init__.py", "app/train.py", "app/sub/__init__.py", "app/sub/beside.py", "app/sub/utils.py"]
    files += ["utils.py", "src/lib/__init__.py", "src/lib/core.py", "scripts/helper.py", "spaced/mod.py"]
    project = project_of(tmp_path, *files)
    assert project.find_module(module, tmp_path / near) == (tmp_path / found if found else None)


def test_users_import_a_file_directly_or_through_a_re_export(tmp_path: Path) -> None:
    files = {
        "app/__init__.py": "from .model import Net\n",
        "app/model.py": "class Net: ...\n",
        "direct.py": "from app.model import Net\nTrainer\n",
        "through.py": "from app import Net\nTrainer\n",
        "other.py": "import torch\nTrainer\n",
        "quiet.py": "from app.model import Net\n",
    }
    facts = facts_in(tmp_path, files, "app/model.py")
    users = facts.project.users(tmp_path / "app/model.py", "Trainer", "Fabric")
    assert {path.name for path in users} == {"direct.py", "through.py"}


def test_asking_for_a_word_that_is_not_indexed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        project_of(tmp_path, "a.py").mentioning("never_indexed")


def test_the_facts_of_a_file_read_no_other_file_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = """
        import torch
        import lightning as L
        from models import Net
        def main():
            net = Net()
            for batch in torch.utils.data.DataLoader(data):
                net(batch).backward()
        """
    facts = facts_in(tmp_path, {"models.py": "class Net: ...\n", "other.py": "", "train.py": train}, "train.py")
    read: list[str] = []
    whole = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or whole(path))
    [loop] = facts.tree.all(cst.For)
    assert facts.loops.kind(loop).value == "batch"
    assert read == []
    assert not facts.values.is_module(facts.tree.all(cst.Call)[0])
    assert set(read) <= {"models.py"}


def test_a_summary_says_what_a_module_offers() -> None:
    text = """\
import torch.nn as nn
from lightning import Trainer as T
from . import layers
from .base import *
if nn:
    from .heads import Head
class Net(nn.Module):
    size = 3
    wide: bool = True
    def forward(self): ...
    if size:
        def later(self): ...
    class Inner: ...
Alias = Net
def build():
    from .late import Late
    class Hidden(Late): ...
    return T(devices=2, **{"strategy": "ddp"})
"""
    summary = summarise(text, "app.model", "app")
    assert summary.exports == {
        "nn": "torch.nn",
        "T": "lightning.Trainer",
        "layers": "app.layers",
        "Head": "app.heads.Head",
        "Net": "app.model.Net",
        "Alias": "app.model.Net",
        "build": "app.model.build",
    }
    assert summary.stars == ("app.base",)
    assert list(summary.classes) == ["Net"]
    assert summary.classes["Net"].bases == ("torch.nn.Module",)
    assert summary.classes["Net"].methods == {"forward", "later"}
    assert summary.classes["Net"].constants == {"size": 3, "wide": True}
    [call] = summary.calls
    assert (call.name, call.row, dict(call.arguments), call.starred) == (
        "lightning.Trainer", 18, {"devices": 2, "strategy": "ddp"}, False,
    )  # fmt: skip
    assert {"app.base.*", "app.late.Late", "lightning.Trainer"} <= summary.imported


@pytest.mark.parametrize("text", ["def", "x = '\0'", "(" * 3000])
def test_what_does_not_parse_has_an_empty_summary(text: str) -> None:
    assert summarise(text, "m", "") == ModuleSummary()


def compare(facts: FileFacts) -> int:
    """Compare a file's summary, made with `ast`, with the facts of its tree; how many classes and calls there were."""
    summary = summarise(facts.source.text, facts.module_name, facts.project.package_name(facts.path))
    top = {node.name.value: node for node in facts.tree.all(cst.ClassDef) if "." not in facts.names.qualified(node)}
    assert set(summary.classes) == set(top)
    compared = 0
    for name, known in summary.classes.items():
        if len([node for node in facts.tree.all(cst.ClassDef) if facts.names.qualified(node) == name]) > 1:
            continue
        bases = facts.classes.base_names(top[name])
        assert len(known.bases) == len(bases) or known.bases[len(bases) :] == ("",)  # its name is bound again
        # of a name that is assigned, or comes from elsewhere by `*`, one of the two may know less
        assert all(one == other for one, other in zip(known.bases, bases, strict=False) if one and other)
        assert known.methods == set(facts.classes.methods(top[name]))
        compared += 1
    seen = {facts.names.call(call) for call in facts.tree.all(cst.Call)} & NOTED
    assert seen <= {call.name for call in summary.calls}
    return compared + len(seen)


@pytest.mark.parametrize("path", real_programs(), ids=lambda path: path.stem)
def test_summaries_of_real_programs_agree_with_their_trees(path: Path) -> None:
    assert compare(facts_of(path.read_text(encoding="utf-8"))) >= 0


def test_a_summary_of_training_code_agrees_with_its_tree() -> None:
    facts = facts_of(
        """
        import lightning.pytorch as pl
        from torch import nn
        class Net(pl.LightningModule):
            def training_step(self, batch, batch_idx): ...
        class Deep(Net, nn.Module): ...
        if __name__ == "__main__":
            pl.Trainer(devices=2).fit(Net())
        """
    )
    assert compare(facts) == 3
