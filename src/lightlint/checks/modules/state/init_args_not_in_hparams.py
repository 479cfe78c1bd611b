from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import MadeFromCheckpoint
from lightlint.facts.objects.classes import MODULE
from lightlint.facts.project.mentions import occurs
from lightlint.values.core import Class, Library

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_KEPT = re.compile(
    r"save_hyperparameters|hparams|hyper_parameters|on_(?:save|load)_checkpoint|load_from_checkpoint\s*\(\s*cls"
)
_FROM_OUTSIDE = re.compile(r"(?<!self)\.save_hyperparameters|hyper_parameters")
_OWN = {"checkpoint_path", "map_location", "hparams_file", "strict", "weights_only"}


class InitArgsNotInHparams(Check):
    asks_rest = frozenset(["load_from_checkpoint"])

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Checkpoints from which a module is made that wants more than they hold."""
        for event in entry.of(MadeFromCheckpoint):
            given = event.given.keywords.keys()
            known = event.given.exact and "hparams_file" not in given and len(event.given.positional) < 2
            if not known or not self._keeps_none(event.cls) or self.facts.project.mentioning("LightningCLI"):
                continue
            missing = [each for each in _required(event.cls.node) if each not in given | _OWN]
            if missing:
                shown = ", ".join(f"`{each}`" for each in missing)
                message = f"`{event.cls.name}` needs {shown}, which no checkpoint holds: it saves no hyperparameters"
                yield Fault.of(event, message)

    def _keeps_none(self, cls: Class) -> bool:
        """Whether a class derives from LightningModule itself, and its file keeps no hyperparameters in any way."""
        direct = [each.path for each in cls.bases if isinstance(each, Library)] == [MODULE] and len(cls.bases) == 1
        if not direct or cls.node.decorator_list or self._is_a_twin(cls):
            return False
        here = cls.file == str(self.facts.path)
        text = self.facts.source.text if here else self.facts.project.text(Path(cls.file))
        own = ast.get_source_segment(text, cls.node)
        return own is not None and not _KEPT.search(own) and not _FROM_OUTSIDE.search(text)

    def _is_a_twin(self, cls: Class) -> bool:
        """Whether a class cannot be trained, and another of its name can, whose checkpoints it loads."""
        named = rf"class\s+{re.escape(cls.name)}\b"
        return cls.find("training_step") is None and occurs(self.facts.project, cls.name, named, Path(cls.file))


def _required(node: ast.ClassDef) -> list[str]:
    """The parameters of `__init__` that have no default."""
    init = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if init is None:
        return []
    plain = [*init.args.posonlyargs, *init.args.args]
    needed = plain[1 : len(plain) - len(init.args.defaults)]
    named = [arg for arg, default in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True) if default is None]
    return [each.arg for each in (*needed, *named)]
