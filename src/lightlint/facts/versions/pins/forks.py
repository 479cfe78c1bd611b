"""Which requirements are a library from a repository that says no release of it: somebody's fork, or one commit."""

from __future__ import annotations

import re

from lightlint.facts.versions.requirements import Requirement, normalise

FORK_OF = "fork-of-"
# Who keeps the repository of each library that is asked for its version.
_KEPT_BY = {
    "torch": {"pytorch"},
    "lightning": {"pytorchlightning", "lightning-ai", "lightning", "williamfalcon"},
    "transformers": {"huggingface"},
    "trl": {"huggingface", "lvwerra"},
    "peft": {"huggingface"},
    "accelerate": {"huggingface"},
}
_NAMES = {each: each for each in _KEPT_BY} | {"pytorch": "torch", "pytorch-lightning": "lightning"}
_FORKED = re.compile(
    r"(?:my|our|custom|hf|huggingface|mod|modified|patched|fork|forked|new|dev|adapter)-(transformers|trl|peft|accelerate)"
    r"|(transformers|trl|peft|accelerate|pytorch-lightning)-.+"
)
_REPOSITORY = re.compile(r"git\+.*?[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?(?:@([\w./-]+))?/?(?:#.*)?$")
_BRANCH = re.compile(r"://github\.com/([\w.-]+)/([\w.-]+)/archive/(?:refs/heads/)?([\w-]+)\.(?:zip|tar\.gz)(?:#.*)?$")
_FOLDER = re.compile(r"\.{1,2}/()(?:[\w.-]+/)*([\w-]+)()/?$")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def fork_of(requirement: Requirement) -> str:
    """The library whose version a requirement leaves unknown; empty for a release, and for the newest of its own repository."""
    url = requirement.url
    found = _REPOSITORY.match(url) or _BRANCH.search(url) or _FOLDER.match(url)
    if found is None or requirement.specifier:
        return ""
    owner, repository, revision = (each or "" for each in found.groups())
    package = _NAMES.get(requirement.name) if requirement.name else _held_by(normalise(repository))
    if package is None or (owner.lower() in _KEPT_BY[package] and not _COMMIT.fullmatch(revision)):
        return ""
    return package


def _held_by(repository: str) -> str | None:
    """The library whose code a repository has by its name."""
    forked = _FORKED.fullmatch(repository)
    return _NAMES.get(repository) or (_NAMES[forked[1] or forked[2]] if forked else None)
