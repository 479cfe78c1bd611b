"""Findings as lists that JSON can hold, and back."""

from __future__ import annotations

from typing import Any

from lightlint.finding import Applicability, Edit, Excerpt, Finding, Fix, Location, Tier


def packed(finding: Finding) -> list[Any]:
    """A finding without the name of its file."""
    fix, excerpt, cause = finding.fix, finding.excerpt, finding.cause
    return [
        finding.code,
        finding.name,
        finding.tier.value,
        finding.message,
        finding.start,
        finding.end,
        _place(finding.location),
        _place(finding.end_location),
        finding.cell,
        fix and [fix.message, fix.applicability.value, [_packed_edit(edit) for edit in fix.edits]],
        finding.noqa_row,
        excerpt and [excerpt.row, list(excerpt.lines)],
        cause and [cause.filename, packed(cause)],
    ]


def unpacked(filename: str, parts: list[Any]) -> Finding:
    """The finding that `packed` made these parts of, in a file by its name of now.

    Raises:
        ValueError, TypeError: it made no such parts.
    """
    code, name, tier, message, start, end, location, end_location, cell, fix, noqa_row, excerpt, cause = parts
    return Finding(
        code,
        name,
        Tier(tier),
        message,
        filename,
        start,
        end,
        Location(*location),
        Location(*end_location),
        cell,
        fix and Fix(fix[0], Applicability(fix[1]), tuple(_unpacked_edit(*edit) for edit in fix[2])),
        noqa_row,
        excerpt and Excerpt(excerpt[0], tuple(excerpt[1])),
        cause and unpacked(*cause),
    )


def _place(location: Location) -> list[int]:
    return [location.row, location.column]


def _packed_edit(edit: Edit) -> list[Any]:
    return [edit.start, edit.end, edit.content, _place(edit.location), _place(edit.end_location)]


def _unpacked_edit(start: int, end: int, content: str, location: list[int], end_location: list[int]) -> Edit:
    return Edit(start, end, content, Location(*location), Location(*end_location))
