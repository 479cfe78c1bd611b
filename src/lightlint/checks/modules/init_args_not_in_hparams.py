from __future__ import annotations

import ast
import re
import warnings

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import MODULE

_KEPT = re.compile(
    r"save_hyperparameters|hparams|hyper_parameters|on_(?:save|load)_checkpoint|load_from_checkpoint\s*\(\s*cls"
)
_FROM_OUTSIDE = re.compile(r"(?<!self)\.save_hyperparameters|hyper_parameters")
_OWN = {"checkpoint_path", "map_location", "hparams_file", "strict", "weights_only"}


class InitArgsNotInHparams(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if (
            not isinstance(func, cst.Attribute)
            or func.attr.value != "load_from_checkpoint"
            or self.names.has_star(call)
        ):
            return
        name = self.names.of(func.value)
        given = {arg.keyword.value for arg in call.args if arg.keyword is not None}
        if not name or "hparams_file" in given or len([arg for arg in call.args if arg.keyword is None]) > 1:
            return
        definition = self._definition(name)
        if definition is None or self.facts.project.mentioning("LightningCLI"):
            return
        missing = [each for each in _required(definition) if each not in given | _OWN]
        if missing:
            shown = ", ".join(f"`{each}`" for each in missing)
            self.report(
                call, f"`{definition.name}` needs {shown}, which no checkpoint holds: it saves no hyperparameters"
            )

    def _definition(self, name: str) -> ast.ClassDef | None:
        """The class, if it derives from LightningModule itself and its file keeps no hyperparameters in any way."""
        node = self.classes.local(name)
        text = self.facts.source.text
        if node is not None:
            if self.classes.base_names(node) != (MODULE,):
                return None
        else:
            found = self.facts.project.find_class(name, self.facts.path.parent)
            if found is None or tuple(found[0].bases) != (MODULE,):
                return None
            text = self.facts.project.text_defining(name, self.facts.path.parent)
        found_class = _class(text, name.rpartition(".")[2])
        own = ast.get_source_segment(text, found_class) if found_class is not None else None
        return None if not own or _KEPT.search(own) or _FROM_OUTSIDE.search(text) else found_class


def _class(text: str, name: str) -> ast.ClassDef | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == name]
    return found[0] if len(found) == 1 and not found[0].decorator_list else None


def _required(node: ast.ClassDef) -> list[str]:
    """The parameters of `__init__` that have no default."""
    init = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if init is None:
        return []
    plain = [*init.args.posonlyargs, *init.args.args]
    needed = plain[1 : len(plain) - len(init.args.defaults)]
    named = [arg for arg, default in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True) if default is None]
    return [each.arg for each in (*needed, *named)]
