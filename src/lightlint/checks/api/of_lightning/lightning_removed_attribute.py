from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LightningAsked
from lightlint.facts.objects.classes import CALLBACK, DATA_MODULE, MODULE
from lightlint.facts.project.mentions import is_field, is_set
from lightlint.facts.ranks.world import TRAINER
from lightlint.facts.releases.api import RemovedName, lightning_api
from lightlint.facts.releases.compat import is_versioned, removal_tier
from lightlint.finding import Tier
from lightlint.values.core import Class
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_OF_CLASSES = {"from_argparse_args", "add_argparse_args", "parse_argparser", "get_init_arguments_and_types"}


class LightningRemovedAttribute(Check):
    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        name = attribute.attr.value
        found = self._removed(attribute, name)
        if found is None or self._is_written(attribute):
            return
        kind, removed = found
        tier = removal_tier(self.facts.lightning, removed.removed)
        if tier is None or is_versioned(self.facts, attribute) or self._is_set(name):
            return
        self.report(
            attribute, self._message(kind, removed), tier=Tier.NOTE if self._is_switched_off(attribute) else tier
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Names that are asked of objects that surely are Lightning's, however these got there."""
        for event in entry.of(LightningAsked):
            for kind, removed in _gone(event):
                tier = removal_tier(self.facts.lightning, removed.removed)
                if tier is not None and not self._is_set(event.name) and not self.is_versioned(event):
                    yield Fault.of(event, self._message(kind, removed), tier=tier)

    def _is_switched_off(self, node: cst.CSTNode) -> bool:
        """Whether a flag that a function sets itself keeps it from some code: somebody has to write it anew first."""
        tests = [(test, outcome) for test, outcome in self.facts.conditions(node) if isinstance(test, cst.Name)]
        return any(self.names.constant(test) is (not outcome) for test, outcome in tests)

    def _is_set(self, name: str) -> bool:
        """Whether the program gives something of this name to what has none."""
        project, source = self.facts.project, self.facts.source
        return name not in _OF_CLASSES and (is_set(project, source, name) or is_field(project, source, name))

    def _message(self, kind: str, removed: RemovedName) -> str:
        target = self.facts.lightning.version.minor
        return f"a {kind} has no `{removed.name}` since Lightning {removed.removed.minor} (target: {target})"

    def _removed(self, attribute: cst.Attribute, name: str) -> tuple[str, RemovedName] | None:
        api = lightning_api()
        receiver = attribute.value
        if name in api.trainer_methods_removed and self._is_trainer(receiver):
            return "Trainer", api.trainer_methods_removed[name]
        for kind, base, removed in (
            ("LightningModule", MODULE, api.lightning_module.removed),
            ("LightningDataModule", DATA_MODULE, api.datamodule.removed),
        ):
            if name in removed and removed[name].effect == "AttributeError" and self._is_bare(receiver, base, name):
                return kind, removed[name]
        return None

    def _is_trainer(self, receiver: cst.BaseExpression) -> bool:
        """Whether an expression surely is Lightning's Trainer: made here, a module's own, or what a callback is given."""
        if self.names.of(receiver) == TRAINER:
            return True
        if isinstance(receiver, cst.Attribute) and receiver.attr.value == "trainer":
            node = self.tree.enclosing_class(receiver)
            own = self.classes.is_self(receiver.value) and self.classes.is_a(node, MODULE, DATA_MODULE)
            return own and node is not None and not self.classes.attribute_values(node, "trainer")
        if isinstance(receiver, cst.Name) and receiver.value == "trainer":
            function = self.tree.function(receiver)
            hook = self.hooks.of(function) if function else None
            if hook and self.classes.is_a(self.tree.class_of(function) if function else None, CALLBACK):
                return len(self.names.bindings.lookup(receiver)) == 1
        origin = self.values.constructor(receiver)
        return origin is not None and origin.name in {TRAINER, f"{TRAINER}.from_argparse_args"}

    def _is_bare(self, receiver: cst.BaseExpression, base: str, name: str) -> bool:
        """Whether a receiver is of a class that derives from a base and has no attribute of the name itself."""
        if isinstance(receiver, cst.Name) and self.classes.is_self(receiver):
            node = self.tree.enclosing_class(receiver)
        else:
            node = self.classes.local(self.names.of(receiver) if name in _OF_CLASSES else None)
        if node is None or not self.classes.is_a(node, base) or not self.classes.complete(node):
            return False
        absent = object()
        return not self.classes.has_method(node, name) and self.classes.constant(node, name, absent) is absent

    def _is_written(self, attribute: cst.Attribute) -> bool:
        return isinstance(self.tree.parent(attribute), (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Del))


def _gone(event: LightningAsked) -> Iterator[tuple[str, RemovedName]]:
    """The kind of object that has lost what it is asked for."""
    asked, api = event.object, lightning_api()
    if isinstance(asked, Instance) and asked.kind == "trainer" and "#by name" not in asked.attributes:
        found = api.trainer_methods_removed.get(event.name)
        if found is not None and asked.libraries() == [TRAINER]:
            yield "Trainer", found
    cls = asked.cls if isinstance(asked, Instance) else asked
    if not isinstance(cls, Class) or not cls.sees_all() or (isinstance(asked, Class) and event.name not in _OF_CLASSES):
        return
    bases = {path.rpartition(".")[2] for path in cls.libraries()}
    for kind, removed in (
        ("LightningModule", api.lightning_module.removed),
        ("LightningDataModule", api.datamodule.removed),
    ):
        gone = removed.get(event.name)
        if kind in bases and gone is not None and gone.effect == "AttributeError":
            yield kind, gone
