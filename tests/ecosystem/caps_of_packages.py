"""Which Python, torch, Transformers and TRL a release of another package leaves, from what pip says of its files; nothing is installed.

pip -vv index versions numpy > LOGS/numpy.log
pip install --dry-run --no-deps --ignore-installed --ignore-requires-python --report ASKED/vllm==0.5.4.json vllm==0.5.4
python tests/ecosystem/caps_of_packages.py LOGS ASKED > src/lightlint/data/caps.toml

The requirements of a package without wheels may lie in `ASKED/NAME==VERSION.txt`, as its source has them. Only bounds that
bind are kept: those of a Python for which another release of torch or of what comes with it is the last.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from lightlint.facts.versions.requirements import parse_requirement
from lightlint.facts.versions.tables import table
from lightlint.facts.versions.versions import Version, parse_range

_HEAD = """\
# Written by tests/ecosystem/caps_of_packages.py from the names of wheels and what their metadata asks for: before which Python,
# torch, Transformers or TRL those end that go with the releases of a package below a version ("" is any); the first row that fits
# counts, and an empty end is none. A release whose source is built may run on a newer Python than its wheels: all this is hearsay.
schema = 1
"""
_WHEEL = re.compile(r"/([A-Za-z0-9_]+)-(\d+(?:\.\d+)*)-(?:\d+-)?([^/\s-]+)-([^/\s-]+)-[^/\s-]+\.whl")
_SOURCE = re.compile(r"/[A-Za-z0-9_.-]+-(\d+(?:\.\d+)*)\.(?:tar\.gz|zip)")
_CAPPED = ("torch", "transformers", "trl")
_SAME = {"tensorflow": ("tensorflow-gpu",)}
_BY_TOKENIZERS = [("4.0", "3.9"), ("4.16", "3.10")]  # what the wheels of tokenizers leave that a Transformers asks for
_ANY_PYTHON = (99, 0)
Rows = list[tuple[str, str]]


def ends_of_wheels(log: str) -> Rows:
    """The Python before which the wheels of a package's releases end, by the first release that goes further."""
    ends: dict[Version, tuple[int, int]] = {}
    for _, version, pythons, abi in _WHEEL.findall(log):
        found = max((_after(each, abi) for each in pythons.split(".")), default=(0, 0))
        ends[Version(version)] = max(ends.get(Version(version), (0, 0)), found)
    rows: Rows = [(str(min(ends, default="")), "")]  # older ones have none: they are built on any Python
    furthest = (0, 0)
    for version in sorted(ends):
        if furthest > (0, 0) and ends[version] > furthest:
            rows.append((str(version), "{}.{}".format(*furthest)))
        furthest = max(furthest, ends[version])
    if furthest < _ANY_PYTHON:
        rows.append(("", "{}.{}".format(*furthest)))
    return [row for row in rows if not row[1] or Version(row[1]) <= _last_bound()]


def _after(tag: str, abi: str) -> tuple[int, int]:
    """The Python behind the one of a wheel's tag."""
    if abi == "abi3" or tag.startswith("py"):
        return _ANY_PYTHON
    found = re.fullmatch(r"cp(\d)(\d+)", tag)
    return (int(found[1]), int(found[2]) + 1) if found else (0, 0)


def _last_bound() -> Version:
    """The newest Python below which anything ends."""
    known = table("releases")["last_for_python"].values()
    return max(Version(python) for ends in known for python in ends).bumped(2)


def released(log: str) -> list[Version]:
    found = {each[1] for each in _WHEEL.findall(log)} | set(_SOURCE.findall(log))
    return sorted(map(Version, found))


def asked_ends(asked: Iterable[tuple[Version, list[str]]], package: str, known: list[Version]) -> Rows:
    """Before which version of a package those end that releases of another ask for.

    Between two releases that were looked at the later end holds, or none.
    """
    ends = sorted((version, _end(lines, package)) for version, lines in asked)
    if not any(end for _, end in ends):
        return []
    rows: Rows = []
    for (before, first), (version, end) in pairwise([(Version("0"), ends[0][1]), *ends]):
        if any(before < each < version for each in known):
            rows.append((str(version), max(first, end, key=Version) if first and end else ""))
        rows.append((str(next((each for each in known if each > version), "")), end))
    kept = [row for row, following in pairwise([*rows, ("", "-")]) if row[1] != following[1]]
    while kept and not kept[-1][1]:
        kept.pop()
    return kept


def _end(lines: list[str], package: str) -> str:
    for line in lines:
        asked = parse_requirement(line.replace("(", "").replace(")", ""))
        if asked and asked.name == package and "extra" not in asked.marker:
            upper = parse_range(asked.specifier).upper
            if upper is not None:
                return str(upper.bumped(3) if upper.is_just_above else upper)
    return ""


def read_asked(folder: Path) -> dict[str, list[tuple[Version, list[str]]]]:
    """What the releases of packages ask for, by the packages' names."""
    found: dict[str, list[tuple[Version, list[str]]]] = {}
    for file in sorted(folder.iterdir()):
        name, _, version = file.name.removesuffix(file.suffix).partition("==")
        lines = file.read_text("utf-8")
        if file.suffix == ".json":
            said = json.loads(lines)["install"][0]["metadata"].get("requires_dist", ())
        else:
            said = [line for line in lines.splitlines() if line.strip()]
        found.setdefault(name, []).append((Version(version), list(said)))
    return found


def by_tokenizers(asked: list[tuple[Version, list[str]]]) -> Rows:
    """Before which Transformers those end that take a release of tokenizers: each takes a range of them."""
    rows: Rows = []
    for version, lines in sorted(asked):
        wanted = (parse_requirement(re.sub("[()]", "", line)) for line in lines)
        lower = next((parse_range(each.specifier).lower for each in wanted if each and each.name == "tokenizers"), None)
        if lower is not None and (not rows or Version(rows[-1][0]) < lower):
            rows.append((str(lower), version.minor))
    return rows


def tables(logs: Path, asked: Path) -> Iterator[str]:
    texts = {file.stem: file.read_text("utf-8") for file in sorted(logs.glob("*.log"))}
    said = read_asked(asked)
    capped: dict[str, dict[str, Rows]] = {"python": {"transformers": _BY_TOKENIZERS}}
    for name, text in texts.items():
        if name not in said:
            for each in (name, *_SAME.get(name, ())):
                capped["python"][each] = ends_of_wheels(text)
    for package in _CAPPED:
        others = {name: lines for name, lines in said.items() if name != package}
        capped[package] = {
            name: asked_ends(lines, package, released(texts.get(name, ""))) for name, lines in others.items()
        }
    capped["transformers"]["tokenizers"] = by_tokenizers(said["transformers"])
    for package, rows_of in capped.items():
        yield f"\n[{package}]"
        for name, rows in sorted(rows_of.items()):
            if rows:
                yield f"{name} = {json.dumps(rows)}"


if __name__ == "__main__":
    print(_HEAD + "\n".join(tables(Path(sys.argv[1]), Path(sys.argv[2]))))
