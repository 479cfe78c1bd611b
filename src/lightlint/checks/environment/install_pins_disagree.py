from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.releases.torch_api import torch_release
from lightlint.facts.versions.requirements import Requirement, parse_pip_command
from lightlint.facts.versions.versions import Version

_COMPANIONS = ("torchvision", "torchaudio", "torchtext")
# the first that require no one release of torch
_FREE = {"torchaudio": Version("2.11"), "torchtext": Version("0.18")}


class InstallPinsDisagree(Check):
    def visit_Module(self, _: cst.Module) -> None:
        pinned: dict[str, Version] = {}
        shown = self.facts.source.shown
        for offset, command in self.facts.source.pip_lines:
            begin = shown.rfind("\n", 0, offset) + 1
            if shown[begin : offset + 1][0].isspace():  # in a branch, which may not be taken
                continue
            new = {each.name: version for each in parse_pip_command(command) if (version := _pin(each)) is not None}
            pinned |= new
            message = next(filter(None, (_disagreement(name, pinned) for name in _COMPANIONS)), None)
            if message and not new.keys().isdisjoint({"torch", *_COMPANIONS}):
                self.report_span(offset, offset + len(shown[offset:].splitlines()[0].rstrip()), message)


def _disagreement(name: str, pinned: dict[str, Version]) -> str | None:
    """What is wrong with the versions of torch and a companion, if something is."""
    own, torch = pinned.get(name), pinned.get("torch")
    if own is None or torch is None or (name in _FREE and own >= _FREE[name]):
        return None
    needed = torch_release(name, own.numbers)
    if needed is None or needed.minor == torch.minor:
        return None
    return f"{name} {own} requires torch {needed.minor}, and {torch} is asked for"


def _pin(requirement: Requirement) -> Version | None:
    """The version that a requirement names, if it names one."""
    if not requirement.exact or not requirement.specifier:
        return None
    try:
        return Version(requirement.specifier.lstrip("=").partition("+")[0])
    except ValueError:
        return None
