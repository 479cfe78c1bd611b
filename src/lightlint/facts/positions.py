"""Where nodes stand in the text. Computed on first use, so that a file without findings never pays for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import libcst as cst

from lightlint.sources.source import Source


class Positions:
    """Character spans of the nodes of one module."""

    def __init__(self, module: cst.Module, source: Source) -> None:
        self._module = module
        self._source = source

    @cached_property
    def _ranges(self) -> dict[cst.CSTNode, tuple[int, int]]:
        from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

        wrapper = MetadataWrapper(self._module, unsafe_skip_copy=True)
        spans = wrapper.resolve(ByteSpanPositionProvider)
        return {node: (span.start, span.start + span.length) for node, span in spans.items()}

    @cached_property
    def _characters(self) -> list[int] | None:
        """Character offset of each UTF-8 byte, None where the text is ASCII and they are the same."""
        text = self._source.text
        if text.isascii():
            return None
        offsets: list[int] = []
        for index, character in enumerate(text):
            offsets.extend([index] * len(character.encode()))
        return [*offsets, len(text)]

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets `[start, end)` of a node in the text, its own brackets included, comments around it not."""
        opening: Sequence[cst.CSTNode] = getattr(node, "lpar", ())
        closing: Sequence[cst.CSTNode] = getattr(node, "rpar", ())
        start = self._ranges[opening[0] if opening else node][0]
        end = self._ranges[closing[-1] if closing else node][1]
        if self._characters is None:
            return start, end
        return self._characters[start], self._characters[end]
