"""What is known of every file that is parsed, and all other facts are worked out from: its tree, names, classes and loops."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from lightlint.facts.code.bindings import Bindings
from lightlint.facts.code.flow import Flow
from lightlint.facts.code.names import Names
from lightlint.facts.code.positions import Places, Positions
from lightlint.facts.code.reaching import Reaching
from lightlint.facts.code.tree import Tree
from lightlint.facts.data.loops import Loops
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.lightning.logs import Logs
from lightlint.facts.lightning.training import Training
from lightlint.facts.objects.classes import Classes
from lightlint.facts.objects.instances import Instances
from lightlint.facts.project.project import Project
from lightlint.facts.project.roots import exists
from lightlint.facts.ranks.guards import Guards
from lightlint.facts.steps.accumulation import Accumulation
from lightlint.facts.values.dicts import Dicts
from lightlint.facts.values.strings import Strings
from lightlint.facts.values.values import Values
from lightlint.sources.source import Source
from lightlint.values.canonical import LIBRARIES


class Basis:
    """The first facts of one source.

    Args:
        source: the text.
        module: its libcst tree, parsed from `source.text`.
        project: the project its file belongs to.
    """

    def __init__(self, source: Source, module: cst.Module, project: Project) -> None:
        self.source = source
        self.project = project
        self.path = Path(source.filename).absolute()
        self.tree = Tree(module)
        self.module_name = project.module_name(self.path)
        self.bindings = Bindings(self.tree, project.package_name(self.path), self._is_beside)
        self.names = Names(self.tree, self.bindings, self.module_name)
        self.classes = Classes(self.tree, self.names, project, self.path)
        self.hooks = Hooks(self.tree, self.names, self.classes)
        self.reaching = Reaching(self.tree, self.names, self.flow)
        self.values = Values(self.tree, self.names, self.classes, self.hooks, self.reaching)
        self.instances = Instances(self.tree, self.names, self.classes, self.hooks, self.values)
        self.dicts = Dicts(self.tree, self.names, self.classes, self.hooks)
        self.strings = Strings(self.names, self.hooks, self.values, self.dicts)
        self.logs = Logs(self.tree, self.names, self.classes, self.hooks, self.dicts)
        self.training = Training(self.tree, self.names, self.classes, self.hooks, self.values)
        self.loops = Loops(self.tree, self.names, self.hooks, self.values, self.conditions)
        self.guards = Guards(self.tree, self.names, self.hooks, self.instances, self.conditions)
        self.accumulation = Accumulation(self.tree, self.names, self.hooks, self.values, self.conditions)
        self.positions = self.places(module)
        self._flows: dict[cst.CSTNode, Flow] = {}

    def places(self, module: cst.Module) -> Places:
        """Where the nodes of its tree stand in the text."""
        return Positions(module, self.source)

    def _is_beside(self, library: str) -> bool:
        """Whether a script's own folder, which Python searches first, has a module of a library's name."""
        if library not in LIBRARIES or self.project.package_name(self.path):
            return False
        folder = self.path.parent
        return self.path.stem != library and any(
            map(exists, (folder / f"{library}.py", folder / library / "__init__.py"))
        )

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets `[start, end)` of a node in the source's text."""
        return self.positions.span(node)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node directly above, None for the module."""
        return self.tree.parent(node)

    def flow(self, owner: cst.FunctionDef | cst.Module) -> Flow:
        """The control flow of a function's or the module's own statements."""
        if owner not in self._flows:
            self._flows[owner] = Flow(owner)
        return self._flows[owner]

    def conditions(self, node: cst.CSTNode) -> list[tuple[cst.BaseExpression, bool]]:
        """The tests inside a node's function that must have come out one way whenever the node runs."""
        return list(self.flow(self.tree.owner(node)).conditions(node))

    def is_dead(self, node: cst.CSTNode) -> bool:
        """Whether a node surely never runs. Of a notebook's own statements none is dead: its cells run one by one."""
        statement, owner = self.tree.statement(node), self.tree.owner(node)
        if statement is None or statement is owner or self.tree.scope(statement) is not owner:
            return False
        if self.source.is_notebook and owner is self.tree.module:
            return False
        return self.flow(owner).point_of(statement) is None
