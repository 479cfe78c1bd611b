from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.versions.requirements import Requirement, parse_pip_command, requirement_files
from lightlint.finding import Tier

# What decides whether training code runs at all; the page says why these.
_DECISIVE = {"torch", "torchvision", "torchaudio", "lightning", "pytorch-lightning", "lightning-fabric", "torchmetrics"}
_ONE_RELEASE = {"torch", "torchvision", "torchaudio"}  # each release of one requires one exact release of torch


class UnpinnedInstall(Check):
    def visit_Module(self, _: cst.Module) -> None:
        for offset, command in self.facts.source.pip_lines:
            found = self._open(parse_pip_command(command))
            if not found or requirement_files(command):  # the versions may stand in such a file
                continue
            start, end = self._row(offset)
            sure = [each for each in found if not each.specifier or each.redirected or each.upgrade]
            self.report_span(start, end, _message(sure or found), tier=self._tier(sure, offset))

    def _tier(self, sure: list[Requirement], offset: int) -> Tier:
        """An upgrade, or a version that the shell takes away, harms today; a missing version some day, or never."""
        upgrades = any(each.upgrade for each in sure) and not self._is_too_old(offset)
        return Tier.WARNING if upgrades or any(each.redirected for each in sure) else Tier.NOTE

    def _is_too_old(self, offset: int) -> bool:
        """Whether a line runs only where an assertion on a version has failed: what is there does not do."""
        for each in self.tree.all(cst.Try):
            asserts = self.tree.within(each.body, cst.Assert)
            asked = any(name.value == "__version__" for one in asserts for name in self.tree.within(one.test, cst.Name))
            spans = [self.facts.positions.span(handler) for handler in each.handlers]
            if asked and any(start <= offset < end for start, end in spans):
                return True
        return False

    def _open(self, requirements: tuple[Requirement, ...]) -> list[Requirement]:
        """The packages of which the newest version there is gets installed, or the one that is there already stays."""
        fixed = {each.name for each in requirements if _is_pinned(each)}
        return [
            each
            for each in requirements
            if each.name in _DECISIVE - fixed
            and not (each.name in _ONE_RELEASE and fixed & _ONE_RELEASE)
            and not self._is_own(each.name)
        ]

    def _is_own(self, name: str) -> bool:
        """Whether a package is the notebook's own project."""
        root, package = self.facts.project.root, name.replace("-", "_")
        return any((top / package).is_dir() for top in (root, root / "src"))

    def _row(self, offset: int) -> tuple[int, int]:
        row = self.facts.source.shown[offset:].splitlines()[0]
        return offset, offset + len(row.rstrip())


def _is_pinned(requirement: Requirement) -> bool:
    """Whether a requirement says which version it means: one, a series of them, a file or a repository."""
    clauses = requirement.specifier.split(",")
    bounded = any(clause.startswith(("==", "~=", "<")) for clause in clauses)
    return bool(requirement.url) or (bounded and not requirement.redirected)


def _message(found: list[Requirement]) -> str:
    names = ", ".join(f"`{each.name}`" for each in found)
    redirected = next((each for each in found if each.redirected), None)
    if redirected is not None:
        version = redirected.specifier
        return f"the shell takes the unquoted `{version}` for a redirection: `{redirected.name}` gets no version"
    if any(each.upgrade for each in found):
        return f"replaces {names} by the newest version, whatever the rest of the environment was made for"
    if all(each.specifier for each in found):
        return f"{names} with a lower bound only: which version is installed depends on the day"
    return f"{names} without a version: which one is installed depends on the day"
