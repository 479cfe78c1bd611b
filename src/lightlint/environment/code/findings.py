"""What the rules find of code when it runs with an environment's torch and Lightning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lightlint.config.settings import Settings, Target
from lightlint.environment.code.usage import Usage
from lightlint.environment.describing.side import Side
from lightlint.finding import Finding
from lightlint.pipeline import run


def lightning_of(usage: Usage, side: Side) -> tuple[str, str | None]:
    """The Lightning distribution that the code imports, and its version there."""
    order = (
        ("pytorch-lightning", "lightning")
        if "pytorch_lightning" in usage.imports
        else ("lightning", "pytorch-lightning")
    )
    name = next((name for name in order if name in side.packages), order[0])
    return name, side.version(*order)


def findings(
    paths: Sequence[str], usage: Usage, side: Side, settings: Settings, *, lightning_as_in: Side | None = None
) -> tuple[Finding, ...]:
    """The findings with the versions of `side`; those of rules that ask for no version are the same for all sides."""
    _, lightning = lightning_of(usage, lightning_as_in or side)
    target = Target(torch=_plain(side.version("torch")), lightning=_plain(lightning))
    return run.check(paths, replace(settings, target=target, nested=False)).findings


def _plain(version: str | None) -> str | None:
    """A version without its build, as settings take it: `2.11.0+cu130` is 2.11.0."""
    return version.partition("+")[0] if version else None


def only_in(findings_here: Sequence[Finding], findings_there: Sequence[Finding]) -> list[Finding]:
    """The findings that the other environment does not have."""
    there = {(each.code, each.filename, each.start) for each in findings_there}
    return [each for each in findings_here if (each.code, each.filename, each.start) not in there and each.counts]
