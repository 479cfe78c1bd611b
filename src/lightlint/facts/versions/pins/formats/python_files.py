"""What setup.py and noxfile.py install: literals, constants put together, and requirements files that they read."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lightlint.facts.versions.pins.formats.requirement_files import included
from lightlint.facts.versions.pins.pin import Kind, Pin, pip_pins
from lightlint.facts.versions.requirements import parse_requirement

_CLOUD = re.compile(r"^\s*(?:import|from) +(?:sagemaker|azureml|azure\.ai|modal)\b", re.MULTILINE)
_ESTIMATOR = re.compile(r"\b(framework|pytorch|transformers)_version\s*=\s*[\"'](\d\.\d+(?:\.\d+)?)[\"']")
_READ = (".txt", ".in", ".pip")
_EXTRAS = {"extras_require", "extras", "tests_require", "setup_requires"}


def setup_pins(file: Path, text: str) -> Iterator[Pin]:
    """Every text in a file that is a requirement, and the requirements files it names.

    What stands in `extras_require` holds in some environments only.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
    constants = _constants(tree)
    extras = _extras(tree)
    files: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "python_requires":
            version = _text(node.value, constants)
            yield from [Pin("python", version, file, node.value.lineno)] if version else []
        if not isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp, ast.Call)):
            continue
        value = _text(node, constants)
        if value is None:
            continue
        if value.endswith(_READ) and "\n" not in value:
            files.add(value)
        else:
            for row, line in enumerate(value.split("\n")):
                requirement = parse_requirement(line)
                yield from pip_pins(file, node.lineno + row, requirement, conditional=id(node) in extras)
    for name in sorted(files):
        for folder in ("", "requirements"):
            yield from included(file.parent / folder / name, file)


def cloud_pins(file: Path, text: str) -> Iterator[Pin]:
    """What a script that sends training elsewhere asks for there: `PyTorch(framework_version="1.4.0")`, lists of packages."""
    if not _CLOUD.search(text):
        return
    for found in _ESTIMATOR.finditer(text):
        row = text.count("\n", 0, found.start()) + 1
        yield Pin(
            "transformers" if found[1] == "transformers" else "torch", f"=={found[2]}", file, row, kind=Kind.SCRIPT
        )
    for pin in setup_pins(file, text):
        yield replace(pin, kind=Kind.SCRIPT)


def noted_pins(file: Path, text: str) -> Iterator[Pin]:
    """What a file without code tells: the output of `conda list` in quotes, or in comments."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return
    if all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body):
        from lightlint.facts.versions.pins.formats.prose import page_pins

        yield from page_pins(file, re.sub(r"^#+ ?", "", text, flags=re.MULTILINE))


def _constants(tree: ast.Module) -> dict[str, str]:
    """The names that a module sets to texts."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value = _text(node.value, found)
            found.update((each.id, value) for each in node.targets if isinstance(each, ast.Name) and value is not None)
    return found


def _extras(tree: ast.Module) -> set[int]:
    """The nodes of what is installed on demand only."""
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    parts: list[ast.expr] = [value for name, value in values.items() if name.lower() in _EXTRAS]
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _EXTRAS:
            value = values.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
            parts += [value] if value is not None else []
    return {id(inner) for part in parts for inner in ast.walk(part)}


def _text(node: ast.expr, constants: dict[str, str]) -> str | None:
    """The text that an expression surely is: literals, names of constants, f-strings, `%`, `+` and `format`."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return constants.get(name)
        case ast.JoinedStr(values=values):
            parts = [_text(each.value if isinstance(each, ast.FormattedValue) else each, constants) for each in values]
            return "".join(map(str, parts)) if None not in parts else None
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _text(left, constants), _text(right, constants)
            return first + second if first is not None and second is not None else None
        case ast.BinOp(left=ast.Constant(value=str(form)), op=ast.Mod(), right=right):
            value = _text(right, constants)
            return form.replace("%s", value) if value is not None and form.count("%") == 1 else None
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(form)), attr="format"), args=[one], keywords=[]):
            value = _text(one, constants)
            return form.replace("{}", value) if value is not None and form.count("{") == 1 else None
    return None
