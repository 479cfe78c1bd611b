"""Where nodes stand in the text. Computed on first use, so that a file without findings never pays for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

import libcst as cst

from lightlint.sources.source import Source

if TYPE_CHECKING:
    from libcst.metadata import CodeSpan


class Positions:
    """Character spans of the nodes of one module."""

    def __init__(self, module: cst.Module, source: Source) -> None:
        self._module = module
        self._source = source

    @cached_property
    def _ranges(self) -> dict[cst.CSTNode, tuple[int, int]]:
        from libcst.metadata import ByteSpanPositionProvider

        provider = ByteSpanPositionProvider()
        provider._gen_impl(self._module)  # MetadataWrapper would do the same after a walk that takes as long again
        spans = cast("dict[cst.CSTNode, CodeSpan]", provider._computed)
        return {node: (span.start, span.start + span.length) for node, span in spans.items()}

    @cached_property
    def _characters(self) -> list[int] | None:
        """Character offset of each UTF-8 byte of the tree's code, None where the text is ASCII and they are the same."""
        text = self._source.text
        if text.isascii() and "\f" not in text:
            return None
        # libcst drops or repeats form feeds in front of a statement, so places are matched without counting them.
        places = [index for index, character in enumerate(text) if character != "\f"] + [len(text)]
        offsets: list[int] = []
        place = 0
        for character in self._module.code if "\f" in text else text:
            offsets.extend([places[place]] * len(character.encode()))
            place += character != "\f"
        return [*offsets, len(text)]

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets `[start, end)` of a node in the text, its own brackets included, comments around it not."""
        opening: Sequence[cst.CSTNode] = node.lpar if isinstance(node, cst.BaseExpression) else ()
        closing: Sequence[cst.CSTNode] = node.rpar if isinstance(node, cst.BaseExpression) else ()
        start = self._ranges[opening[0] if opening else node][0]
        end = self._ranges[closing[-1] if closing else node][1]
        if self._characters is None:
            return start, end
        return self._characters[start], self._characters[end]
