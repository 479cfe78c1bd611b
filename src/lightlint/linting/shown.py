"""What reports show beside a finding."""

from __future__ import annotations

from dataclasses import replace

from lightlint.finding import Finding
from lightlint.sources.source import Source
from lightlint.sources.suppress import noqa_row


def shown(source: Source, finding: Finding) -> Finding:
    """The finding with the lines around it, and the row where a suppression comment goes."""
    row = noqa_row(source, finding.start)
    return replace(finding, noqa_row=row, excerpt=source.excerpt(finding.start, finding.end))
