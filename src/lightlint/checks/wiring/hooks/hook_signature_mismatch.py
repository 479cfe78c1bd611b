from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.lightning.hook_calls import Passed, passed, passed_since
from lightlint.facts.lightning.hooks import STEPS, Owner
from lightlint.facts.lightning.overrides import Taken, owner_of, taken
from lightlint.facts.project.mentions import is_called, is_called_with_arguments
from lightlint.facts.releases.compat import is_versioned
from lightlint.facts.versions.versions import Version, releases
from lightlint.finding import Tier
from lightlint.fixes.edits import insert_parameter
from lightlint.fixes.repairs.hook_parameters import without_missing

_ELSEWHERE = {"optimizer_idx", "dataloader_iter"}  # of steps: a rule of its own, a way of its own to get batches


class HookSignatureMismatch(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        hook = function.name.value
        owner = owner_of(self.facts, function)
        takes = taken(self.facts, function) if owner else None
        call = passed(owner, hook, self.facts.lightning.version) if owner and takes else None
        if owner is None or takes is None or call is None:
            return
        if hook in STEPS and any(map(takes.named, _ELSEWHERE)):
            return
        missing, refused = call.missing(takes), call.refused(takes)
        shifted = None if missing or refused else call.shifted(takes)
        if (
            not (missing or refused or shifted)
            or is_versioned(self.facts, function)
            or self._suits_newest(owner, hook, takes)
        ):
            return
        if not refused and is_called_with_arguments(self.facts.project, self.facts.source, hook):
            return  # the project's own loop calls it, as with Fabric
        lower = self.facts.lightning.lower
        old = passed(owner, hook, lower) if lower else None
        if shifted is not None:
            self._report_shifted(function, shifted, is_sure=old is not None and old.shifted(takes) is not None)
            return
        sure = old is not None and bool(old.missing(takes) or old.refused(takes))
        self.report(
            function.name,
            self._message(hook, missing, refused, self.facts.lightning.version),
            tier=None if sure else Tier.WARNING,
            repair=self._repair(owner, function, takes, call, missing, refused),
        )

    def _suits_newest(self, owner: Owner, hook: str, takes: Taken) -> bool:
        """Whether only a version known by hearsay passes something else, and the newest what the hook takes."""
        call = passed(owner, hook, releases("lightning")[-1]) if self.facts.lightning.hearsay else None
        return call is not None and not (call.missing(takes) or call.refused(takes) or call.shifted(takes))

    def _report_shifted(self, function: cst.FunctionDef, shifted: tuple[str, str], *, is_sure: bool) -> None:
        """A parameter with a default in the middle, of which older releases passed the value."""
        gone, instead = shifted
        release = self.facts.lightning.version.minor
        self.report(
            function.name,
            f"Lightning {release} passes no `{gone}` to `{function.name.value}`: it gets what `{instead}` is meant for",
            tier=None if is_sure else Tier.WARNING,
        )

    def _message(self, hook: str, missing: list[str], refused: list[str], version: Version) -> str:
        parts = []
        if missing:
            parts.append(f"requires {_listed(missing)}, which Lightning {version.minor} does not pass")
        if refused:
            parts.append(f"does not take {_listed(refused)}, which Lightning {version.minor} passes")
        return f"`{hook}` " + " and ".join(parts)

    def _repair(
        self,
        owner: Owner,
        function: cst.FunctionDef,
        takes: Taken,
        call: Passed,
        missing: list[str],
        refused: list[str],
    ) -> Repair | None:
        """Drop the parameters that the body does not know; let `setup(self)` take its stage."""
        if is_called(self.facts.project, self.facts.source, function.name.value):
            return None
        if refused == ["stage"] and not missing and not takes.positional:
            return Repair("take `stage`", insert_parameter(self.code, function, "stage=None"))
        draft = None if refused else without_missing(self.facts, function, takes, call, missing)
        writes = f"lightning>={passed_since(owner, function.name.value, self.facts.lightning.version)}"
        return Repair(f"drop {_listed(missing)}", draft, writes=writes)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
