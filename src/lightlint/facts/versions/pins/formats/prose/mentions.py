"""Versions in sentences and badges: "tested on PyTorch 1.4 and 1.7", "PyTorch >= 1.0", `img.shields.io/badge/PyTorch-1.8-red`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from urllib.parse import unquote

from lightlint.facts.versions.pins.formats.images import image_pins
from lightlint.facts.versions.pins.formats.prose.paragraphs import Paragraph, is_aside

_TORCH = r"py-?torch[\s_-]*lightning|lightning|py-?torch|torch|torchvision|torchaudio"
_HUGGING_FACE = r"transformers|trl|peft|accelerate"
_PYTHON = r"python(?:\s?3(?=[\s:,(]+(?:[<>=~≥≤v]|3\.)))?"  # also `Python 3 (3.6.9)`
_CUDA = r"cuda(?:[\s_-]*toolkit)?"
_REST = r"\.(?:\d{1,2}(?:\.\d{1,2})?|x)(?!\d|\.\d|(?!rc\d)[A-Zac-z_])"
_LATER = r"\+(?!\s*[a-z]*\d)|\s+\+(?!\s*[a-z]*\s*v?\d)|[\s(]*(?:or|and|及|或)?\s*(?:later|higher|above|newer|greater|upwards?|onwards?|up\b|以上)"
_EARLIER = r"[\s(]*(?:or|and)\s*(?:earlier|lower|below|older)"
_PREFERRED = r"\s*[.,;(\u2013-]*\s*(?:and\s+|we\s+|the\s+)?(?:best|recommend(?:ed)?|prefer(?:red|ably)?|ideally|tested|works?\s+best)\s*(?:version)?\s*(?:is|with|on|to\s+use|:)?\s*"
_BELOW = r"(?:before|below|prior\s+to|(?:earlier|lower|less)\s+than)\b"
_BETWEEN = r"(?:[\s:,|(=_-]|(?<![A-Za-z])(?:versions?|v\.|install(?:ed)?|tested|on|with\s+(?:cuda|gpu)(?=\s*\()|with|is|between|from|e\.g\.|i\.e\.)(?!\w)|版本|버전|\uff1a)*"

_AHEAD = (
    r"\b(?:using|use[sd]?|with|on|and)\s+(?:versions?\s+)?(?=v?\d+\.\d+\.\d+\s)"  # a number of three parts is a version
)


def _one(majors: str) -> str:
    """A version whose first number is one of some, with the words that make a bound of it."""
    version = f"{majors}{_REST}"
    return (
        rf"(?:{_BELOW}\s*v?(?P<bound>{version})"
        rf"|(?P<operator>[<>=~]{{1,2}}|[≥≤]|at\s+least)?\s*v?(?P<version>{version})(?:rc\d+)?(?:\+?(?:cu\d+|cpu))?"
        rf"(?:(?P<later>{_LATER})|(?P<earlier>{_EARLIER}))?)"
    )


def _mention(names: str, majors: str) -> re.Pattern[str]:
    """A name with one or several versions behind it or ahead of it, as in "version 1.4 of PyTorch", "I used 1.12.1 for PyTorch"."""
    one = re.sub(r"\?P<\w+>", "?:", _one(majors))
    several = rf"{one}(?:(?:\s*[,/|&~\u2013-]\s*|\s*,?\s*(?:or|and|to|through)\s+|{_PREFERRED}){one})*"
    return re.compile(
        rf"(?<![\w.-])(?<!\S/)({names})(?:\.__version__)?(?![a-uw-z/]|\.\w){_BETWEEN}({several})"
        rf"|\bversions?\s+({several})\s+of\s+({names})\b"
        rf"|{_AHEAD}({one})\s+for\s+({names})\b(?!{_BETWEEN}v?\d)",
        re.IGNORECASE,
    )


_EACH = re.compile(_one(r"(?:1\d|\d)"), re.IGNORECASE)
_MENTIONS = (
    _mention(_TORCH, "[012]"),
    _mention(_HUGGING_FACE, "[0-5]"),
    _mention(_PYTHON, "[23]"),
    _mention(_CUDA, r"(?:[789]|1\d)"),
)
_SAYS_SO = re.compile(
    r"\b(?:tested|verified|validated|checked|evaluated|developed|written|implemented|built|based|train(?:s|ed|ing)?|requir\w+|needs?|needed|depend\w*"
    r"|prerequisites?|install\w*|using|uses?|used|works?|working|runs?|runnable|supports|supported|compatible|environments?|versions?|example"
    r"|settings?|conducted|performed|hardware|experiments?|expected|reproduc\w+|recommend\w*|ran|test\s+(?:on|with|under|in))\b"
    r"|需要|要求|依赖|环境|版本|安装|测试|支持",
    re.IGNORECASE,
)
_GOES_BACK = re.compile(
    r"\b(?:downgrad\w+|(?:try|please)\s+(?:try\s+)?(?:to\s+)?(?:us(?:e|ing)|install\w*))\b", re.IGNORECASE
)
_OLDEST = re.compile(
    r"\b(?:minim\w+|at\s+least|from|since|above|over|(?:newer|later|higher)\s+than)[^\w\n]*(?:version[^\w\n]*)?\Z",
    re.IGNORECASE,
)
_AND_UP = re.compile(r"^.{0,30}?(?:\bfrom\b|&\s*(?:up|above|later|higher|newer)\b)", re.IGNORECASE)
_BOUND = re.compile(
    r"<|==|\u2264|\b(?:before|below|earlier|older|lower)\b", re.IGNORECASE
)  # newer ones are known not to do
_BADGE = re.compile(r"(?:shields\.io|badgen\.net)/(?:static/)?(?:badge/|v1\?)([^\s)\"'>\]]+)", re.IGNORECASE)
_MARKUP = re.compile(r"<[A-Za-z/!][^<>]{0,300}>|[*`]+|(?<=\])\([^()]*(?:\([^()]*\)[^()]*)*\)|(?<=\])\s?\[[^\]]*\]")
_DISTRIBUTIONS = {
    "pytorch": "torch",
    "pytorchlightning": "pytorch-lightning",
    "python3": "python",
    "cudatoolkit": "cuda",
}
_CELL = re.compile(r"</?(?:td|th|tr|li|p|br)\b[^<>\n]{0,300}>", re.IGNORECASE)  # what parts words
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s|(?<=。)")
_CLAUSE_END = re.compile(
    r"(?<=[.!?;])\s|(?<=。)|\s(?=(?:since|because|but|however|while|although|whereas)\b)|\(|(?<=\))", re.IGNORECASE
)
_LIST = re.compile(r"[A-Za-z][\w -]*[<>=~]{1,2} ?[\w.]+(?:, ?[A-Za-z][\w -]*[<>=~]{1,2} ?[\w.]+)+")
_PYTHON_ONLY = _MENTIONS[2]
_BEGINS = re.compile(r"\s*(?:[-*+•|]|\d+[.)])?\s*")
_PACKAGES = re.compile(  # what is left of `- pytorch 0.3.*, numpy, argparse`
    r"\s*(?:[-*+•|]|\d+[.)])?\s*(?:(?:[A-Za-z][\w.-]*|\.[xX]?)?\s*,\s*)*(?:and\s+)?(?:[A-Za-z][\w-]*|\.[xX]?)?\s*[.;]?\s*"
)
_BLANK = re.compile(
    r"^.*\([^\w\n]*e\.g\.[^()\n]*\)\W*:[ \t]*$", re.MULTILINE
)  # to be filled in: `Version (e.g., 1.0):`
_ALL_BUT_LETTERS = re.compile(r"[\W\d_]+")
_MOST_BESIDE = 8  # letters besides what is named with its version: another package, Ubuntu
_MOST_BEHIND = 40  # characters behind a version on a line that is an entry
_OF_NVIDIA = re.compile(  # `PyTorch 20.06-py3 NGC container`, `NVIDIA's PyTorch container (20.06)`
    r"\bpytorch:?\s+(?P<ahead>\d\d\.\d\d(?:\.\d+)?)(?:-py3)?\s+(?:from\s+)?(?:NGC|NVIDIA)\b(?:\s+(?:container|image))?"
    r"|\b(?:NGC|NVIDIA)(?:'s)?\s+pytorch\s+(?:container|image)s?\s*(?:version\s+|release\s+|[:(]\s*)?(?P<behind>\d\d\.\d\d(?:\.\d+)?)(?:-py3)?",
    re.IGNORECASE,
)
_OR_LATER = re.compile(_LATER, re.IGNORECASE)
_LONGEST = 20_000
_DATA = re.compile(r"\S{400,}")  # a picture in the text


@dataclass(frozen=True, slots=True)
class Mention:
    """A version of a distribution that a text names; `counts` where the text says that the project needs or used it."""

    name: str
    specifier: str
    row: int
    counts: bool


def versions_at(line: str) -> tuple[str, list[str]] | None:
    """The distribution and the specifiers that a line without markup begins with."""
    found = next(filter(None, (each.search(line) for each in _MENTIONS)), None)
    return (distribution(found[1]), specifiers(found[2])) if found and found[1] else None


def distribution(name: str) -> str:
    """The distribution that people mean by a name."""
    plain = re.sub(r"[\s_-]", "", name.lower())
    return _DISTRIBUTIONS.get(plain, plain)


def mentions(paragraph: Paragraph) -> Iterator[Mention]:
    """The versions that a paragraph mentions; code shows none but in lists, commands in it are read by others."""
    if paragraph.is_code:
        yield from _listed_in_code(paragraph)
        return
    yield from _in_badges(paragraph)
    text = plain(paragraph.text)
    yield from _of_images(paragraph, text)
    for found in _all(text):
        says_so = bool(_SAYS_SO.search(_around(_SENTENCE_END, text, found))) or paragraph.sets_up
        sentence = _around(_SENTENCE_END, text, found)
        counts = says_so and not paragraph.is_news and not is_aside(_around(_CLAUSE_END, text, found))
        counts |= bool(_GOES_BACK.search(sentence) and _BOUND.search(found.group()))
        counts |= not paragraph.is_news and _is_entry(text, found)
        row = paragraph.row + text.count("\n", 0, found.start())
        if not _is_oldest(text, found):
            yield from _each(*_named(found), row, counts=counts)


def _of_images(paragraph: Paragraph, text: str) -> Iterator[Mention]:
    """The torch of NVIDIA's images that a text speaks of; a newer one than that may do."""
    for found in _OF_NVIDIA.finditer(text):
        row = paragraph.row + text.count("\n", 0, found.start())
        counts = not paragraph.is_news and not is_aside(_around(_CLAUSE_END, text, found))
        if _OR_LATER.match(text, found.end()) is None:
            pins = image_pins("nvcr.io/nvidia/pytorch", found["ahead"] or found["behind"])
            yield from (Mention(name, specifier, row, counts) for name, specifier in pins)


def _is_entry(text: str, found: re.Match[str]) -> bool:
    """Whether a line has versions and hardly more, or the Python or CUDA ahead of little: one of several that say what is needed."""
    start, end = text.rfind("\n", 0, found.start()) + 1, text.find("\n", found.end())
    line = text[start : end if end >= 0 else len(text)]
    if is_aside(line):
        return False
    rest = reduce(lambda left, each: left.replace(each.group(), "", 1), _all(line), line)
    if len(_ALL_BUT_LETTERS.sub("", rest)) <= _MOST_BESIDE or _PACKAGES.fullmatch(rest):
        return True
    is_alone = _BEGINS.fullmatch(text[start : found.start()]) and len(line) - (found.end() - start) <= _MOST_BEHIND
    return bool(is_alone and _is_below(found))


def _named(found: re.Match[str]) -> tuple[str, str]:
    """The name and the versions of a mention, whichever comes first."""
    return found[1] or found[4] or found[6], found[2] or found[3] or found[5]


def _is_below(found: re.Match[str]) -> bool:
    """Whether it is what packages run on: Python, CUDA."""
    return distribution(_named(found)[0]) in ("python", "cuda")


def _is_oldest(text: str, found: re.Match[str]) -> bool:
    """Whether words around a version of Python or CUDA say that it is the oldest that will do."""
    return _is_below(found) and bool(
        _OLDEST.search(text[: found.start()]) or _AND_UP.search(found.group() + text[found.end() :])
    )


def _all(text: str) -> list[re.Match[str]]:
    return [found for pattern in _MENTIONS for found in pattern.finditer(text)]


def _listed_in_code(paragraph: Paragraph) -> Iterator[Mention]:
    """The versions in lines of code that are none: `Python >= 3.5, PyTorch == 0.3.1`, or `(we use torch 1.6.0)`."""
    for row, line in enumerate(paragraph.text.splitlines(), paragraph.row):
        remark = line.lstrip().startswith(("#", "(")) and _SAYS_SO.search(line) and not is_aside(line)
        is_list = _LIST.fullmatch(line.strip()) or _PYTHON_ONLY.fullmatch(line.strip())
        for found in _all(line) if remark or (is_list and not paragraph.is_news) else ():
            yield from _each(*_named(found), row, counts=True)


def _around(end: re.Pattern[str], text: str, found: re.Match[str]) -> str:
    """The sentence or the clause that a match stands in."""
    breaks = [0, *(each.start() for each in end.finditer(text)), len(text)]
    return text[
        max(each for each in breaks if each <= found.start()) : min(each for each in breaks if each >= found.end())
    ]


def _in_badges(paragraph: Paragraph) -> Iterator[Mention]:
    for badge in _BADGE.finditer(paragraph.text):
        row = paragraph.row + paragraph.text.count("\n", 0, badge.start())
        for found in _all(_of_badge(badge[1])):
            yield from _each(*_named(found), row, counts=True)


def _of_badge(address: str) -> str:
    """The words on a badge: `PyTorch-1.8-red` is `PyTorch 1.8`, `label=PyTorch&message=1.8` too."""
    if "message=" in address:
        parts = dict(part.partition("=")[::2] for part in address.split("&"))
        return unquote(f"{parts.get('label', '')} {parts['message']}").replace("_", " ")
    words = unquote(address.partition("?")[0]).replace("--", "~").split("-")
    return " ".join(words[:-1]).replace("~", "-").replace("_", " ").strip()


def plain(text: str) -> str:
    """A text without markup; its lines stay as they are."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", _DATA.sub("", text[:_LONGEST]))
    text = _MARKUP.sub(lambda found: "\n" * found.group().count("\n"), _CELL.sub(" ", text))
    return _BLANK.sub("", re.sub(r"[\[\]]", "", text))


def _each(name: str, versions: str, row: int, *, counts: bool) -> Iterator[Mention]:
    for specifier in specifiers(versions):
        yield Mention(distribution(name), specifier, row, counts)


def specifiers(versions: str) -> list[str]:
    """What a list of versions asks for: `1.4, 1.5+` is two of them, `>=1.4, <1.9` one, `>=1.4 (tested with 1.7)` the last."""
    found: list[str] = []
    end = 0
    for each in _EACH.finditer(versions):
        specifier = f"<{each['bound']}" if each["bound"] else _of(each)
        between, end = versions[end : each.start()], each.end()
        if re.search(r"[A-Za-z]{4}", between) and re.fullmatch(_PREFERRED, between, re.IGNORECASE):
            found = []
        if found and specifier.startswith(("<", "!")) and found[-1].startswith(">"):
            found[-1] += f",{specifier}"
        else:
            found.append(specifier)
    return found


def _of(found: re.Match[str]) -> str:
    """People who write 1.7 mean any release of it, with `==` too, and 1.7.1 for that one."""
    operator, version = _operator(found), found["version"].lower().replace("x", "*")
    if operator in {"", "=="}:
        operator = "==" if version.count(".") > 1 else ""
    return operator + version


def _operator(version: re.Match[str]) -> str:
    written = version["operator"] or ""
    if written.lower().startswith("at") or version["later"]:
        return ">="
    return "<=" if version["earlier"] else {"≥": ">=", "≤": "<=", "=": "=="}.get(written, written)
