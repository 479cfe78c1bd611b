"""The report for a browser: one file with a verdict for each finding and pictures of the run."""

from __future__ import annotations

from html import escape

from lightlint.confirm.observed.observation import Observation
from lightlint.confirm.reports.pictures import pictures
from lightlint.confirm.reports.report import Judged, Report
from lightlint.confirm.verdict import Number, Outcome

_COLOURS = {Outcome.CONFIRMED: "#b3261e", Outcome.REFUTED: "#1b7a3d", Outcome.OPEN: "#8a6100"}
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #777; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; }
code, pre { font: 0.9em ui-monospace, monospace; } pre { overflow-x: auto; padding: 1rem; border: 1px solid var(--line); }
article { border-left: 4px solid var(--tone); padding: 0.2rem 0 0.2rem 1rem; margin: 1.2rem 0; }
article p { margin: 0.2rem 0; } .verdict { color: var(--tone); font-weight: 600; } .dim { color: var(--dim); }
table { border-collapse: collapse; margin: 0.5rem 0; } td { padding: 0.1rem 1rem 0.1rem 0; border-bottom: 1px solid var(--line); }
"""


def render(report: Report) -> str:
    """The whole page; it loads nothing from anywhere."""
    run = report.run
    order = list(Outcome)
    judged = sorted(report.judged, key=lambda each: order.index(each.verdict.outcome))
    stacks = "".join(
        f"<h2>{escape(who)} stood in</h2><pre>{escape(text)}</pre>" for who, text in (run.stacks or {}).items()
    )
    notes = "".join(f"<p>Note: {escape(note)}</p>" for note in run.notes)
    written = "".join(f"<li><code>{escape(path)}</code></li>" for path in run.written)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>lightlint confirm: {escape(report.command)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1><code>{escape(report.command)}</code></h1>
<p>{escape(run.ended)}, {escape(run.scope)}. {_counts(judged)}</p>
{"".join(map(_observed, report.observed))}
{notes}{_determinism(report)}
{"".join(map(_article, judged)) or "<p>No finding to confirm.</p>"}
{pictures(run)}
{stacks}
{f"<h2>Files it wrote</h2><ul>{written}</ul>" if written else ""}
<h2>Again</h2>
<pre>{escape(report.reproduce)}</pre>
</body>
</html>
"""


def _determinism(report: Report) -> str:
    """What the comparison of two seeded runs gave."""
    if report.determinism is None:
        return ""
    operations = "".join(f"<li><code>{escape(each)}</code></li>" for each in report.determinism.operations)
    listed = f"<p>Not deterministic:</p><ul>{operations}</ul>" if operations else ""
    return f"<h2>Two runs with one seed</h2><p>{escape(report.determinism.sentence)}</p>{listed}"


def _observed(observed: Observation) -> str:
    """What the run itself showed."""
    tone = _COLOURS[Outcome.CONFIRMED] if observed.is_fault else _COLOURS[Outcome.OPEN]
    details = "".join(f"<p>{escape(each)}</p>" for each in observed.details)
    return f"""<article style="--tone: {tone}">
<p><span class="verdict">{"fault" if observed.is_fault else "seen"}</span> {escape(observed.message)}</p>
{details}
</article>
"""


def _counts(judged: list[Judged]) -> str:
    counts = {outcome: sum(each.verdict.outcome is outcome for each in judged) for outcome in Outcome}
    return ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items() if count)


def _article(judged: Judged) -> str:
    finding, verdict = judged.finding, judged.verdict
    tone = _COLOURS.get(verdict.outcome, "#777")
    rows = "".join(_row(number) for number in verdict.numbers)
    return f"""<article style="--tone: {tone}">
<p><span class="verdict">{escape(verdict.outcome.value)}</span> {escape(finding.code)} {escape(finding.name)}
<span class="dim">{escape(judged.place)}, {escape(finding.tier.value)}</span></p>
<p class="dim">{escape(finding.message)}</p>
<p>{escape(verdict.reason)} <span class="dim">{escape(verdict.scope)}</span></p>
{f"<table>{rows}</table>" if rows else ""}
</article>
"""


def _row(number: Number) -> str:
    who = f"rank {number.rank}" if number.rank is not None else ""
    return f"<tr><td>{who}</td><td>{escape(number.what)}</td><td>{escape(number.shown)}</td></tr>"
