"""Versions and ranges of them, as pip, Poetry and conda write them, and those a file must work with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from lightlint.facts.versions.tables import table

_VERSION = re.compile(
    r"v?(\d+(?:\.\d+)*)[-_.]?(?:(a|b|c|rc|alpha|beta|pre|preview|dev|post|rev|r)[-_.]?(\d*))?(?:[-_.]?(?:dev|post)\d*)?(?:\+.*)?"
)
_PHASES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "": 0, "post": 1, "rev": 1, "r": 1}
_JUST_ABOVE = (9, 0)
_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>|\^|~|=)?\s*v?(\d[\w.+!-]*?(?:\.?\*)?)(?=[\s,|)]|$)")


class Version(tuple[tuple[int, ...], tuple[int, int]]):
    """A version such as `2.0.1`, `2.0rc1` or `2.13.0+cpu`, in the order of releases; `2.0` equals `2.0.0`.

    Raises:
        ValueError: the text is no version.
    """

    text: str

    def __new__(cls, text: str) -> Version:
        parts = _VERSION.fullmatch(text.strip().lower())
        if not parts:
            raise ValueError(f"{text!r} is no version; write it like 2.1 or 2.1.0")
        phase = parts[2] or ""
        return cls._of(tuple(map(int, parts[1].split("."))), (_PHASES.get(phase, -1), int(parts[3] or 0)), text.strip())

    @classmethod
    def _of(cls, release: tuple[int, ...], phase: tuple[int, int] = (0, 0), text: str = "") -> Version:
        while release[1:] and release[-1] == 0:
            release = release[:-1]
        made = super().__new__(cls, (release, phase))
        made.text = text or ".".join(map(str, release))
        return made

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers, without zeros at the end."""
        return self[0]

    @property
    def minor(self) -> str:
        """Its first two numbers, as people speak of releases: `2.0` of 2.0.0."""
        return ".".join(map(str, (*self.release, 0)[:2]))

    @property
    def numbers(self) -> str:
        """The numbers as text, two of them at least: `2.0` of 2.0.0, `2.0.1` of 2.0.1+cpu."""
        return ".".join(map(str, (*self.release, 0) if len(self.release) == 1 else self.release))

    @property
    def is_early(self) -> bool:
        """Whether this comes before the release it is named for: `2.1.0a0`."""
        return self[1] < (0, 0)

    @property
    def is_just_above(self) -> bool:
        """Whether this is a bound that `just_above` made."""
        return self[1] == _JUST_ABOVE

    def just_above(self) -> Version:
        """A bound behind this version and before every later release."""
        return self._of(self.release, _JUST_ABOVE, self.text)

    def bumped(self, places: int) -> Version:
        """The next version that differs in the first `places` numbers: 1.9.3 is followed by 1.10 in two."""
        numbers = (*self.release, *[0] * places)[:places]
        return self._of((*numbers[:-1], numbers[-1] + 1))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


@dataclass(frozen=True, slots=True)
class Range:
    """Versions from `lower` on and below `upper`; None is no bound."""

    lower: Version | None = None
    upper: Version | None = None

    @property
    def empty(self) -> bool:
        return self.lower is not None and self.upper is not None and self.lower >= self.upper

    def __contains__(self, version: Version) -> bool:
        return (self.lower is None or self.lower <= version) and (self.upper is None or version < self.upper)

    def __and__(self, other: Range) -> Range:
        lowers = [bound for bound in (self.lower, other.lower) if bound is not None]
        uppers = [bound for bound in (self.upper, other.upper) if bound is not None]
        return Range(max(lowers, default=None), min(uppers, default=None))

    def __or__(self, other: Range) -> Range:
        """The smallest range that holds both."""
        lower = None if self.lower is None or other.lower is None else min(self.lower, other.lower)
        upper = None if self.upper is None or other.upper is None else max(self.upper, other.upper)
        return Range(lower, upper)


def parse_range(text: str) -> Range:
    """The range of a specifier of pip, Poetry or conda: `>=1.8,<2`, `~=1.9.0`, `^1.9`, `1.9.*`, `=1.9`, `<1 || >=2`.

    A version without operator stands for all releases that start with it. `!=` is ignored, and so is what is no clause.
    """
    choices = [_all_of(choice) for choice in re.split(r"\|\|?", text)]
    found = choices[0]
    for choice in choices[1:]:
        found |= choice
    return found


def _all_of(text: str) -> Range:
    found = Range()
    for operator, version in _CLAUSE.findall(text.strip()):
        bare = version.removesuffix("*").rstrip(".")
        if operator != "!=" and _VERSION.fullmatch(bare.lower()):
            found &= _clause(operator, bare, wild=bare != version)
    return found


def _clause(operator: str, text: str, wild: bool) -> Range:
    version = Version(text)
    places = len(text.partition("+")[0].lstrip("v").split("."))
    if operator in {"", "="} or (wild and operator in {"==", "===", "~="}):
        return Range(version, version.bumped(places))
    match operator:
        case "==" | "===":
            return Range(version, version.just_above())
        case ">=":
            return Range(lower=version)
        case ">":
            return Range(lower=version.just_above())
        case "<":
            return Range(upper=version)
        case "<=":
            return Range(upper=version.just_above())
        case "~=":
            return Range(version, version.bumped(max(places - 1, 1)))
        case "~":
            return Range(version, version.bumped(min(places, 2)))
        case _:  # ^ keeps the first number that is not zero
            leading = next((place for place, number in enumerate(version.release, 1) if number), places)
            return Range(version, version.bumped(leading))


@dataclass(frozen=True, slots=True)
class Target:
    """Versions of a package that a file must work with: from `lower` on, below `upper`; None is no bound.

    `source` says how it is known: "setting", "pin pyproject.toml:12", "installed" or "newest". `allowed` are all versions
    that the project's pins allow, where a lock or an image names one of them: None where these are the same. What is
    known by `hearsay`, from a README's prose, keeps rules silent and proves nothing: newer versions are not ruled out.
    `of_code`: it is known by what the code says that only old versions heed.
    """

    package: str
    lower: Version | None
    upper: Version | None
    source: str
    allowed: Range | None = None
    hearsay: bool = False
    of_code: bool = False

    def surely_at_least(self, version: Version | str) -> bool:
        """Whether every version of the target is `version` or later."""
        return self.lower is not None and self.lower >= _version(version)

    def surely_below(self, version: Version | str) -> bool:
        """Whether every version of the target is older than `version`."""
        return not self.hearsay and not self.may_be_at_least(version)

    def may_be_at_least(self, version: Version | str) -> bool:
        """Whether the target holds `version` or a later one."""
        return self.upper is None or self.upper > _version(version)

    def may_run_at(self, version: Version | str) -> bool:
        """Whether the code may be run with `version` or a later one: nothing but itself says that it is too old for it."""
        return self.of_code or self.may_be_at_least(version)

    def may_be_below(self, version: Version | str) -> bool:
        """Whether the target holds a version older than `version`."""
        return not self.surely_at_least(version)

    def always_has(self, since: Version | str) -> bool:
        """Whether all versions that the project allows have what a release brought: what is written for one must run in all."""
        lower = self.allowed.lower if self.allowed is not None else self.lower
        return lower is not None and lower >= _version(since)

    @property
    def version(self) -> Version:
        """One version of the target: the newest release in it that is known."""
        known = [version for version in releases(self.package) if version in Range(self.lower, self.upper)]
        return known[-1] if known else self.lower or self.upper or releases(self.package)[-1]


@cache
def _version(version: Version | str) -> Version:
    return version if isinstance(version, Version) else Version(version)


@cache
def releases(package: str) -> tuple[Version, ...]:
    """The known releases of `torch` or `lightning`, oldest first."""
    return tuple(Version(text) for text in table("releases")[package])
