"""Whether a README sends elsewhere for what is to be installed: "refer to the T-Few repo for setup", an image of one's own."""

from __future__ import annotations

import re

from lightlint.facts.versions.pins.formats.prose.paragraphs import Paragraph

_OTHER = re.compile(r"https?://(?:www\.)?(?:github|gitlab)\.com/[\w.-]+/([\w.-]+)")
_TURNS = re.compile(
    r"\b(?:follow|following\s+(?:\w+\s+){0,2}(?:instruction|guide|step|README)\w*|refer(?:ring)?\s+to|according\s+to"
    r"|same\b[^.]{0,60}\b(?:as|of)|identical\s+to|consult)\b",
    re.IGNORECASE,
)
_SETS_UP = re.compile(
    r"\bset(?:ting)?[\s-]?up\b|\benvironments?\b|\brequirements?\b|\bdependenc(?:y|ies)\b|\bprerequisites?\b"
    r"|(?<=for )installation\b|\binstallation\s+(?:instruction|guide|step)s?",
    re.IGNORECASE,
)
_OF_ONE_PACKAGE = re.compile(
    r"\binstall(?:ing)?\s+(?!the\b|all\b|it\b|required\b|dependenc|environment|package)[\w\[`*]", re.IGNORECASE
)
_ASIDE = re.compile(
    r"\b(?:if|optional\w*|alternatively|more\s+(?:details?|info\w*)|trouble\w*|data\s?sets?)\b", re.IGNORECASE
)
_PULLED = re.compile(
    r"\bdocker\s+(?:image\s+)?pull\s+(?!pytorch/pytorch\b)[\w./-]*(?:torch|lightning)[a-z_/-]*(?::latest)?[ \t]*$",
    re.MULTILINE,
)
"""An image that somebody made, whose name says which library is in it and not which release."""
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n\s*\n")


def sends_elsewhere(paragraph: Paragraph, project: str) -> bool:
    """Whether a paragraph says that the set-up is another repository's, or an image of somebody: neighbouring sentences name
    the one and turn to it, a command pulls the other.

    Args:
        paragraph: what is read.
        project: the name of the project's folder, to which a link leads nowhere else.
    """
    text = paragraph.text
    if _PULLED.search(text):
        return True
    named = [each.removesuffix(".git").lower() for each in _OTHER.findall(text)]
    if paragraph.is_code or not any(each != project.lower() for each in named):
        return False
    sentences = _SENTENCE_END.split(text)
    windows = [" ".join(sentences[place : place + 2]) for place in range(max(len(sentences) - 1, 1))]
    return any(map(_sends, windows))


def _sends(text: str) -> bool:
    words = _OTHER.sub(" repository ", text)
    turns = _TURNS.search(words) and _SETS_UP.search(words) and re.search(r"repo|codebase", words, re.IGNORECASE)
    return bool(turns) and not _OF_ONE_PACKAGE.search(words) and not _ASIDE.search(words)
