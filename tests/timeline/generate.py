"""Rebuild `src/lightlint/data/lightning-api.toml` from released wheels of pytorch-lightning.

    cd tests && python -m timeline.generate [--check] [--wheels DIRECTORY] [--data FILE] [VERSION ...]

Downloads the wheels of some releases with pip (without versions: `RELEASES`), reads them with `ast`, nothing is
installed or imported, and brings the data file up to what they hold:

* the arguments of `Trainer`, the names of LightningModule, LightningDataModule and Callback over their bases inside of
  the package, the attributes of a Trainer, the arguments of `self.log` and of fit, validate, test and predict: each with
  the release that added and the one that removed it;
* the signatures of hooks, and their history.

Any choice of releases will do. A date in the file is changed only if a wheel refutes it (see `timeline.history`), so a few
wheels check the file and many date what is new. Kept by hand, never overwritten: the columns `replacement`, `note`,
`effect` and `autofix`, comments, and the sections `value_changes`, `callback_init`, `imports`, `self_log`,
`configure_optimizers` and `precision`. What is new is printed: it gets empty columns, which a person then fills in.

`--check` writes nothing. Status 0: the file holds what the wheels hold. 1: it does not (it did not, where it was
written), or says what a wheel refutes and only a person can mend. 2: no wheels.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from timeline.merge import Merged, merge
from timeline.release import Release, read
from timeline.wheel import Wheel

DATA = Path(__file__).parents[2] / "src/lightlint/data/lightning-api.toml"
RELEASES = (
    "1.0.0", "1.0.8", "1.1.0", "1.1.8", "1.2.0", "1.2.10", "1.3.0", "1.3.8", "1.4.0", "1.4.9", "1.5.0", "1.5.10", "1.6.0",
    "1.6.5", "1.7.0", "1.7.7", "1.8.0", "1.8.6", "1.9.0", "1.9.5", "2.0.0", "2.0.9", "2.1.0", "2.1.4", "2.2.0", "2.2.5",
    "2.3.0", "2.3.3", "2.4.0", "2.5.0", "2.5.6", "2.6.0", "2.6.5", "2.6.6",
)  # fmt: skip
"""The first and the last release of every minor version."""

_NO_INDEX = (
    "Connection",
    "NewConnectionError",
    "Temporary failure",
    "Read timed out",
    "Max retries",
    "No module named pip",
)


class UnreachableError(OSError):
    """No package index answers, or there is no pip to ask one."""


def fetch(version: str, folder: Path) -> Path:
    """Downloads the wheel of a release into a folder, unless it is there, and returns its path.

    Raises:
        UnreachableError: no package index answers.
        ValueError: the index has no such release.
    """
    name = f"pytorch_lightning-{version}-py3-none-any.whl"
    if not (folder / name).exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run(
            [*command, "--dest", str(folder), f"pytorch-lightning=={version}"], capture_output=True, text=True
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            if any(sign in done.stderr for sign in _NO_INDEX) or "from versions: none" in done.stderr:
                raise UnreachableError(f"no package index has answered for pytorch-lightning {version}: {last}")
            raise ValueError(f"pip has no wheel of pytorch-lightning {version}: {last}")
    return folder / name


def read_wheels(paths: Iterable[Path]) -> list[Release]:
    """Reads wheels, one after the other."""
    releases = []
    for path in paths:
        with Wheel(path) as wheel:
            releases.append(read(wheel))
    return releases


def report(merged: Merged) -> None:
    """Prints what is new and what needs a person."""
    for line in merged.news:
        print(line)
    for line in merged.contradictions:
        print(f"settle by hand: {line}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="releases to read")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--wheels", type=Path, metavar="DIRECTORY", help="where wheels are kept between runs")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FILE", help="the file to rebuild")
    options = parser.parse_args(arguments)
    text = options.data.read_text("utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.wheels or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            merged = merge(text, read_wheels([fetch(version, folder) for version in options.versions or RELEASES]))
        except (OSError, ValueError) as error:
            print(f"timeline: {error}", file=sys.stderr)
            return 2
    report(merged)
    if merged.text != text and not options.check:
        partial = options.data.with_suffix(".new")
        partial.write_text(merged.text, "utf-8")
        partial.replace(options.data)
    return int(merged.text != text or bool(merged.contradictions))


if __name__ == "__main__":
    sys.exit(main())
