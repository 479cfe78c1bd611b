from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.code.bindings import Kind
from lightlint.facts.releases.compat import is_versioned
from lightlint.facts.releases.hugging_face import tier_since
from lightlint.facts.versions.tables import table
from lightlint.facts.versions.version_tests import VersionTests
from lightlint.fixes.edits import replace_argument_name
from lightlint.models.names.huggingface import ARGUMENTS, TRAINER
from lightlint.models.names.kinds import kind_of

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry


_PARSES = {"parse_args_into_dataclasses", "parse_json_file", "parse_yaml_file", "parse_dict"}


class HuggingFaceRemovedArg(Check):
    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        """What is read of the arguments of a Trainer went with the argument: `training_args.overwrite_output_dir`."""
        name = attribute.attr.value
        removed = _removed("transformers", "TrainingArguments").get(name)
        above = self.tree.parent(attribute)
        if removed is None or isinstance(above, cst.AssignTarget) or not self._are_arguments(attribute.value):
            return
        tier = tier_since(self.facts, "transformers", removed["in"])
        if tier is None or self._is_set(name) or is_versioned(self.facts, attribute, raises="AttributeError"):
            return
        target = self.facts.target("transformers").version.minor
        message = f"a Trainer's arguments have no `{name}` since transformers {removed['in']} (target: {target})"
        self.report(attribute, f"{message}{_instead(name, removed)}", tier=tier)

    def _are_arguments(self, value: cst.BaseExpression) -> bool:
        """Whether a name surely holds the arguments of a Trainer as Transformers has them, made or read from a command line."""
        found = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        made = [self._made(each.value, each.path) if each.kind is Kind.ASSIGN else None for each in found]
        return bool(made) and all(name is not None and _are_of_transformers(name) for name in made)

    def _made(self, value: cst.BaseExpression | None, path: tuple[int, ...]) -> str | None:
        """The class that a call makes an object of: of a parser of several the one in its place."""
        if not isinstance(value, cst.Call) or not path:
            return self.names.call(value)
        parser = value.func.value if isinstance(value.func, cst.Attribute) else None
        origin = self.values.constructor(parser) if isinstance(parser, cst.Name) else None
        if self.names.method(value) not in _PARSES or origin is None or origin.call is None:
            return None
        given = self.names.argument(origin.call, "dataclass_types", 0)
        classes = given.value if origin.name.endswith("HfArgumentParser") and given is not None else None
        if not isinstance(classes, (cst.Tuple, cst.List)) or len(path) != 1 or path[0] >= len(classes.elements):
            return None
        return self.names.of(classes.elements[path[0]].value)

    def _is_set(self, name: str) -> bool:
        """Whether the file itself gives some object such an attribute."""
        named = (each for each in self.tree.all(cst.Attribute) if each.attr.value == name)
        return any(isinstance(self.tree.parent(each), cst.AssignTarget) for each in named)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Keywords that a Trainer, its arguments or an Accelerator no longer take."""
        for path, events in entry.calls.items():
            tables = _tables(path)
            given = [(event, name) for event in events for name in event.given.keywords] if tables else []
            faults = [fault for event, name in given for fault in self._fault(event, name, tables)]
            if faults and not (path.startswith("trl.") and self._is_patched()):
                yield from faults

    def _is_patched(self) -> bool:
        """Whether the program imports Unsloth, which hands each keyword on to where TRL takes it."""
        named = any(each.value == "unsloth" for each in self.tree.all(cst.Name))
        return named or self.facts.project.imports_through(self.facts.path, "unsloth")

    def _fault(self, event: Called, name: str, tables: tuple[tuple[str, str], ...]) -> Iterator[Fault]:
        for package, cls in tables:
            removed = _removed(package, cls).get(name)
            tier = tier_since(self.facts, package, removed["in"]) if removed is not None else None
            if removed is None or tier is None or self.is_versioned(event, "TypeError") or self._is_fitted(event, name):
                continue
            where = f"`{event.name}` has no argument `{name}` since {package} {removed['in']}"
            message = f"{where} (target: {self.facts.target(package).version.minor}){_instead(name, removed)}"
            yield Fault(event.said_at(name), message, tier, of_call=True, argument=name)
            return

    def _is_fitted(self, event: Called, name: str) -> bool:
        """Whether what was put together before the call may have been fitted to what the class takes."""
        call = self.node_of(event.site)
        if not isinstance(call, cst.Call) or any(
            arg.keyword is not None and arg.keyword.value == name for arg in call.args
        ):
            return False
        tests = VersionTests(self.facts)
        said = self.node_of(event.said_at(name))
        if said is not None and is_versioned(self.facts, said):
            return True
        handed = any(arg.star == "**" and tests.asks(arg.value) for arg in call.args)
        return handed or tests.looks_at_arguments()

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        arg = self.entry_of(node, fault.argument)
        if not isinstance(node, cst.Call) or not isinstance(arg, cst.Arg):
            return None
        for package, cls in _tables(self.names.of(node.func) or ""):
            removed = _removed(package, cls).get(fault.argument, {})
            new = removed.get("new")
            if new is not None and self.names.argument(node, new) is None:
                draft = replace_argument_name(self.code, arg, new)
                return Repair(f"rename to `{new}`", draft, writes=f"{package}>={removed['since']}")
        return None


def _are_of_transformers(name: str) -> bool:
    return name.startswith("transformers.") and kind_of(name) == ARGUMENTS


def _tables(path: str) -> tuple[tuple[str, str], ...]:
    """The packages and classes whose arguments a class takes."""
    package, _, cls = path.rpartition(".")
    kind = kind_of(path)
    if path == "accelerate.Accelerator":
        return (("accelerate", "Accelerator"),)
    if kind == ARGUMENTS:
        shared = (("transformers", "TrainingArguments"),)
        return ((package, cls), *shared) if package == "trl" else shared
    if kind == TRAINER:
        return ((package, cls),) if package == "trl" else (("transformers", "Trainer"),)
    return ()


def _removed(package: str, cls: str) -> dict[str, Any]:
    found: dict[str, Any] = table("hugging-face-api").get(package, {}).get(cls, {})
    return found


def _instead(name: str, removed: dict[str, Any]) -> str:
    if "into" in removed:
        return f": `{removed['into']}` takes it" + (f" as `{removed['as']}`" if "as" in removed else "")
    if "new" in removed:
        return f": it is called `{removed['new']}`"
    return f": {removed['note']}" if "note" in removed else ""
