"""The command as people run it: real processes, their output and their exit status."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from forked import forked

from lightlint import __version__
from lightlint.pages import all_pages

FAULTY = """\
import torch


def train(model, loader, optimizer: torch.optim.Optimizer):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""
FIXED = FAULTY.replace("        torch.cuda.empty_cache()\n", "")
_NOT_OURS = ("NO_COLOR", "FORCE_COLOR", "TERM", "PYTHONUNBUFFERED")
CODE = all_pages()["empty-cache-in-loop"].code


def lightlint(*arguments: str | bytes, cwd: Path, data: bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
    """A run of the command in a clean environment."""
    result = forked("lightlint", *arguments, cwd=cwd, environment=clean(**env), data=data)
    assert b"Traceback" not in result.stderr
    out, err = (stream.decode("utf-8", "surrogateescape") for stream in (result.stdout, result.stderr))
    return subprocess.CompletedProcess(result.args, result.returncode, out, err)


def clean(**env: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in _NOT_OURS}
    return {**kept, "TERM": "xterm-256color", **env}


def on_a_terminal(*arguments: str, cwd: Path, **env: str) -> tuple[int, str]:
    """A run whose stdout and stderr are a terminal: its status and what the terminal got."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        arguments, cwd=cwd, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=clean(**env)
    )
    os.close(theirs)
    got = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        got += part
    os.close(ours)
    return process.wait(60), got.decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(FAULTY)
    (tmp_path / "clean.py").write_text("import torch\n")
    return tmp_path


def test_findings_in_full_with_a_summary(project: Path) -> None:
    ran = lightlint(cwd=project)
    assert ran.returncode == 1
    assert ran.stderr == ""
    assert ran.stdout.startswith(f"{CODE} [empty-cache-in-loop] warning: ")
    assert " --> ./train.py:9:9\n" in ran.stdout or " --> train.py:9:9\n" in ran.stdout
    assert "9 |         torch.cuda.empty_cache()\n" in ran.stdout
    assert "  |         ^^^^^^^^^^^^^^^^^^^^^^^^\n" in ran.stdout
    assert ran.stdout.endswith("Found 1 warning in 2 files.\n1 can be repaired with --fix.\n")


def test_a_clean_file_is_status_0(project: Path) -> None:
    ran = lightlint("clean.py", cwd=project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "No findings in 1 file.\n", "")
    assert lightlint("-q", "clean.py", cwd=project).stdout == ""


def test_a_framework_that_no_rule_knows_is_told(project: Path) -> None:
    (project / "engine.py").write_text("import deepspeed\n")
    told = "deepspeed (engine.py) is not known to lightlint: what it does with a model was not looked at.\n"
    for _ in range(3):  # linted, from the cache of files, from that of runs
        ran = lightlint("engine.py", "clean.py", cwd=project)
        assert (ran.returncode, ran.stdout) == (0, f"No findings in 2 files.\n{told}")
    (project / "again.py").write_text("def start():\n    from deepspeed.ops import adam\n")
    assert "deepspeed (2 files) is not known to lightlint" in lightlint(cwd=project).stdout
    (project / "deepspeed.py").write_text("")
    assert "deepspeed" not in lightlint(cwd=project).stdout


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads it")
def test_a_file_for_a_newer_python_is_told(project: Path) -> None:
    (project / "newer.py").write_text(
        "import torch\n\n\ndef first[T](loader: list[T]) -> T:\n    return loader[0].backward()\n"
    )
    for _ in range(3):  # linted, from the cache of files, from that of runs
        ran = lightlint("newer.py", "clean.py", cwd=project)
        assert ran.returncode == 0
        assert "which runs lightlint, cannot read newer.py: what the code does was not followed." in ran.stdout


def test_concise_and_quiet(project: Path) -> None:
    ran = lightlint("train.py", "--output-format", "concise", "-q", cwd=project)
    assert ran.returncode == 1
    (line,) = ran.stdout.splitlines()
    assert line.startswith(f"train.py:9:9: {CODE} ")


def test_json_is_a_list_and_nothing_else(project: Path) -> None:
    ran = lightlint("--output-format", "json", "train.py", cwd=project)
    (found,) = json.loads(ran.stdout)
    assert (found["code"], found["name"], found["severity"]) == (CODE, "empty-cache-in-loop", "warning")
    assert (found["filename"], found["cell"]) == ("train.py", None)
    assert (found["location"], found["end_location"]) == ({"row": 9, "column": 9}, {"row": 9, "column": 33})
    assert found["fix"]["applicability"] == "safe"
    assert lightlint("--output-format", "json", "clean.py", cwd=project).stdout == "[]\n"


def test_paths_and_options_mix(project: Path) -> None:
    ran = lightlint("clean.py", "--output-format", "concise", "train.py", cwd=project)
    assert "in 2 files" in ran.stdout


def test_exit_zero_and_statistics(project: Path) -> None:
    ran = lightlint("--exit-zero", "--statistics", "-q", "--no-cache", cwd=project)
    assert (ran.returncode, ran.stdout) == (0, f"1  {CODE}  [*] empty-cache-in-loop\n")
    told = lightlint("--exit-zero", "--statistics", "--jobs", "2", cwd=project).stdout
    assert re.search(r"^ +\d+\.\d{3} s  parse\n.*\n.* rules, of these\n *\d+\.\d{3} s    [a-z-]+$", told, re.MULTILINE)


def test_fix_repairs_and_says_what_is_left(project: Path) -> None:
    (project / "broken.py").write_text("import torch\nfor torch.cuda.empty_cache()\n")
    ran = lightlint("--fix", cwd=project)
    assert (project / "train.py").read_text() == FIXED
    assert f"train.py: 1 x {CODE}\n" in ran.stdout
    assert "Left: 1 error in 3 files.\n" in ran.stdout
    assert ran.returncode == 1
    (project / "broken.py").unlink()
    again = lightlint("--fix", cwd=project)
    assert (again.returncode, again.stdout) == (0, "No findings in 2 files.\n")


def test_fix_that_leaves_nothing_is_status_0(project: Path) -> None:
    ran = lightlint("--fix", "train.py", cwd=project)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"Fixed 1 finding in 1 file:\n  train.py: 1 x {CODE}\nNo findings left in 1 file.\n"


def test_diff_shows_and_changes_nothing(project: Path) -> None:
    ran = lightlint("--diff", "train.py", cwd=project)
    assert ran.returncode == 1
    assert ran.stdout == (
        "--- train.py\n+++ train.py\n@@ -6,4 +6,3 @@\n"
        "         optimizer.zero_grad()\n         model(batch).mean().backward()\n         optimizer.step()\n"
        "-        torch.cuda.empty_cache()\n"
    )
    assert ran.stderr.startswith("Would fix 1 finding in 1 file:\n")
    assert (project / "train.py").read_text() == FAULTY
    assert lightlint("--diff", "--fix", "--exit-zero", "train.py", cwd=project).returncode == 0
    assert (project / "train.py").read_text() == FAULTY
    nothing = lightlint("--diff", "clean.py", cwd=project)
    assert (nothing.returncode, nothing.stdout) == (0, "")


def test_standard_input(project: Path) -> None:
    data = FAULTY.encode()
    ran = lightlint("-", "--output-format", "concise", "-q", cwd=project, data=data)
    assert (ran.returncode, ran.stdout[:7]) == (1, "-:9:9: ")
    ran = lightlint("-", "--stdin-filename", "a/b.py", "--output-format", "concise", "-q", cwd=project, data=data)
    assert ran.stdout.startswith("a/b.py:9:9: ")
    assert lightlint("-", "-q", cwd=project).returncode == 0


def test_fixed_standard_input_is_standard_output(project: Path) -> None:
    data = FAULTY.replace("\n", "\r\n").encode()
    ran = lightlint("-", "--fix", cwd=project, data=data)
    assert (ran.returncode, ran.stdout) == (0, FIXED.replace("\n", "\r\n"))
    assert ran.stderr.startswith("Fixed 1 finding in 1 file:\n")
    same = lightlint("-", "--fix", cwd=project, data=b"x = 1")
    assert (same.returncode, same.stdout) == (0, "x = 1")
    broken = lightlint("-", "--fix", cwd=project, data=b"import torch\nempty_cache for (")
    assert (broken.returncode, broken.stdout) == (1, "import torch\nempty_cache for (")


def test_repairs_alone_say_nothing_of_what_is_left(project: Path) -> None:
    (project / "left.py").write_text("import lightning as L\n\ntrainer = L.Trainer(gpus=2)\n")
    assert lightlint("left.py", cwd=project).returncode == 1
    ran = lightlint("--fix-only", cwd=project)
    assert (ran.returncode, ran.stdout) == (0, "Fixed 1 finding in 1 file:\n  train.py: 1 x LL501\n")
    again = lightlint("--fix-only", cwd=project)
    assert (again.returncode, again.stdout) == (0, "")


def test_a_repair_can_be_a_failure(project: Path) -> None:
    assert lightlint("--fix", "--exit-non-zero-on-fix", "train.py", cwd=project).returncode == 1
    assert lightlint("--fix", "--exit-non-zero-on-fix", "train.py", cwd=project).returncode == 0


def test_files_are_named_and_not_linted(project: Path) -> None:
    (project / "broken.py").write_text("(")
    (project / "notes.txt").write_text("")
    ran = lightlint("--show-files", "--extend-exclude", "clean.py", cwd=project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "broken.py\ntrain.py\n", "")
    ran = lightlint("--show-files", "none", cwd=project)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1


def test_selection_on_the_command_line(project: Path) -> None:
    concise = ("train.py", "-q", "--output-format", "concise")
    assert lightlint(*concise, "--ignore", "LL002,devices", cwd=project).returncode == 0
    assert lightlint(*concise, "--select", "LL4", "--select", "LL6", cwd=project).returncode == 0
    assert lightlint(*concise, "--select", "LL4", "--extend-select", CODE, cwd=project).returncode == 1


def test_settings_of_the_project_and_without_them(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.lightlint.per-file-ignores]\n"train.py" = ["devices"]\n')
    assert lightlint(cwd=project).returncode == 0
    assert lightlint("--isolated", cwd=project).returncode == 1
    (project / "ci.toml").write_text('output-format = "json"\n')
    ran = lightlint("--config", "ci.toml", cwd=project)
    assert (ran.returncode, len(json.loads(ran.stdout))) == (1, 1)
    (project / "pyproject.toml").write_text('[tool.lightlint]\nextend-exclude = ["train.py"]\n')
    assert lightlint(cwd=project).stdout == "No findings in 1 file.\n"
    assert lightlint("train.py", cwd=project).returncode == 1
    assert lightlint("train.py", "--force-exclude", cwd=project).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--selct", "LL1"], "unrecognized arguments: --selct; did you mean `--select`?"),
        (["--output-format", "jsn"], "--output-format: unknown format `jsn`; did you mean `json`?"),
        (["--select", "rnaks"], "--select: unknown rule `rnaks`; did you mean `ranks`?"),
        (
            ["--target-torch", "new"],
            '--target-torch: expected a version in quotes such as "2.4" or ">=1.9,<2.3", found "new"',
        ),
        (["--config", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["--config", "a", "--isolated"], "--isolated and --config exclude each other; see `lightlint --help`"),
        (["-", "x.py"], "`-` (standard input) cannot be mixed with other paths; see `lightlint --help`"),
        (["gone.py"], "gone.py: no such file or directory"),
        (["rule", "empty-cash-in-loop"], "unknown rule `empty-cash-in-loop`; did you mean `empty-cache-in-loop`?"),
        (["rule", "--all", "LL0"], "name a rule, or give --all (a file or directory called rule is ./rule); see"),
    ],
)
def test_a_mistake_gets_one_line_and_status_2(project: Path, arguments: list[str], says: str) -> None:
    ran = lightlint("-q", *arguments, cwd=project) if arguments[0] != "rule" else lightlint(*arguments, cwd=project)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"lightlint: {says}")


def test_a_mistake_in_a_nested_settings_file_gets_one_line(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub/x.py").write_text("import torch\n")
    (project / "sub/pyproject.toml").write_text("[tool.lightlint]\nselct = []\n")
    ran = lightlint(cwd=project)
    assert (ran.returncode, ran.stderr) == (
        2,
        "lightlint: sub/pyproject.toml: selct: unknown key; did you mean `select`?\n",
    )


def test_no_files_is_status_0_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("torch")
    ran = lightlint(".", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr == "lightlint: no Python files found under .\n"
    assert lightlint("-q", cwd=tmp_path).stderr == ""


def test_no_files_for_all_are_ignored_says_so(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub/x.py").write_text("import torch\n")
    (project / ".gitignore").write_text("*\n")
    ran = lightlint(".", cwd=project)
    count = len([*project.rglob("*.py")])
    says = f"no Python files found under .: .gitignore leaves out {count}, which `--no-respect-gitignore` takes in"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", f"lightlint: {says}\n")
    assert f"sub{os.sep}x.py" in lightlint("--no-respect-gitignore", "--show-files", cwd=project).stdout
    (project / ".gitignore").write_text("*.py\n!train.py\n")
    (project / "sub/.gitignore").write_text("*\n")
    assert "sub/.gitignore leaves out 1," in lightlint("sub", cwd=project).stderr.replace(os.sep, "/")


def test_no_files_for_all_are_ignored_further_up_says_so_without_a_repository(tmp_path: Path) -> None:
    (tmp_path / "sub/inner").mkdir(parents=True)
    (tmp_path / "sub/inner/x.py").write_text("import torch\n")
    (tmp_path / ".gitignore").write_text("*.py\n")
    says = "no Python files found under .: .gitignore leaves out 1, which `--no-respect-gitignore` takes in"
    assert lightlint(".", cwd=tmp_path).stderr == f"lightlint: {says}\n"


def test_a_missing_path_does_not_hide_the_findings_of_others(project: Path) -> None:
    ran = lightlint("gone.py", "train.py", "--exit-zero", cwd=project)
    assert ran.returncode == 2
    assert ran.stderr == "lightlint: gone.py: no such file or directory\n"
    assert "Found 1 warning in 1 file.\n" in ran.stdout


def test_a_path_that_is_not_utf_8(project: Path) -> None:
    name = os.fsencode(project) + b"/tr\xe4in.py"
    try:
        Path(os.fsdecode(name)).write_text(FAULTY)
    except OSError:
        pytest.skip("the file system takes UTF-8 names only")
    for form in ("full", "concise", "json"):
        ran = lightlint(name, "--output-format", form, cwd=project)
        assert ran.returncode == 1
        assert "\\udce4in.py" in ran.stdout
    assert lightlint("--diff", name, cwd=project).returncode == 1


def test_version_in_both_spellings(tmp_path: Path) -> None:
    for arguments in (["--version"], ["-V"], ["-q", "--version"]):
        assert lightlint(*arguments, cwd=tmp_path).stdout == f"lightlint {__version__}\n"


def imported(*arguments: str, cwd: Path) -> set[str]:
    """The modules a run imports."""
    command = [sys.executable, "-X", "importtime", "-m", "lightlint", *arguments]
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=clean())
    return {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")}


def test_nothing_is_imported_before_it_must(project: Path) -> None:
    (project / "words.py").write_text("print('no training here')\n")
    heavy = {"libcst", "rich", "argparse", "json", "tomllib", "torch", "pathspec", "difflib"}
    assert imported("--version", cwd=project) & (heavy | {"re", "pathlib"}) == set()
    assert imported("words.py", cwd=project) & (heavy - {"argparse", "json"}) == set()
    assert "rich" not in imported("train.py", cwd=project)


def test_colour_on_a_terminal_only(project: Path) -> None:
    command = (sys.executable, "-m", "lightlint", "train.py")
    status, got = on_a_terminal(*command, cwd=project)
    assert status == 1
    assert "\x1b[1;33mwarning\x1b[0m" in got
    assert "\x1b[" not in on_a_terminal(*command, cwd=project, NO_COLOR="1")[1]
    assert "\x1b[" not in on_a_terminal(*command, cwd=project, TERM="dumb")[1]
    assert "\x1b[" not in lightlint("train.py", cwd=project).stdout
    assert "\x1b[1;33mwarning\x1b[0m" in lightlint("train.py", cwd=project, FORCE_COLOR="1").stdout
    assert "\x1b[" not in lightlint("train.py", cwd=project, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_progress_bar_on_a_terminal_once_patience_is_over(tmp_path: Path) -> None:
    code = (
        "from lightlint.reports import progress\n"
        "progress._PATIENCE = -1.0\n"
        "with progress.progress_bar(True) as advance:\n"
        "    [advance(done, 3) for done in (1, 2, 3)]\n"
    )
    status, got = on_a_terminal(sys.executable, "-c", code, cwd=tmp_path)
    assert status == 0
    assert "Checking" in got
    assert "3/3" in got
    piped = code.replace("[advance(done, 3) for done in (1, 2, 3)]", "assert advance is None")
    assert subprocess.run([sys.executable, "-c", piped], stderr=subprocess.PIPE, check=True).stderr == b""


def test_a_reader_that_goes_away_changes_nothing(project: Path) -> None:
    for number in range(100):
        (project / f"more{number}.py").write_text(FAULTY)
    for arguments in ([], ["rule", "--all"], ["--version"], ["--help"]):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "lightlint", *arguments]
        ran = subprocess.run(command, cwd=project, stdout=write, stderr=subprocess.PIPE, env=clean())
        os.close(write)
        assert (ran.returncode, ran.stderr) == (0 if arguments else 1, b"")


def test_an_interrupt_gets_one_line(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lightlint", "-"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean(),
    )
    assert process.stdin is not None
    process.stdin.write(b"#" * 1_000_000)  # more than a pipe holds: once it is written, standard input is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"lightlint: interrupted\n")


def test_rule_prints_its_page(tmp_path: Path) -> None:
    by_name = lightlint("rule", "empty-cache-in-loop", cwd=tmp_path)
    assert by_name.returncode == 0
    assert by_name.stdout.startswith(f"# empty-cache-in-loop ({CODE})\n\nWarning of the family `devices`; safe fix; ")
    assert "## " in by_name.stdout
    assert "needs:" not in by_name.stdout
    assert lightlint("rule", CODE.lower(), cwd=tmp_path).stdout == by_name.stdout
    status, got = on_a_terminal(sys.executable, "-m", "lightlint", "rule", CODE, cwd=tmp_path)
    assert status == 0
    assert "\x1b[" in got
    assert "```" not in got


def test_rule_lists_all(tmp_path: Path) -> None:
    listed = lightlint("rule", "--all", cwd=tmp_path).stdout
    rows = json.loads(lightlint("rule", "--all", "--output-format", "json", cwd=tmp_path).stdout)
    assert [row["code"] for row in rows] == [page.code for page in all_pages().values()]
    for page in all_pages().values():
        assert f"  {page.code}  {page.name} " in listed
    one = json.loads(lightlint("rule", CODE, "--output-format", "json", cwd=tmp_path).stdout)
    assert (one["code"], one["severity"], one["fix"], one["family"]) == (CODE, "warning", "safe", "devices")
    assert one["explanation"].startswith("# empty-cache-in-loop")


def test_rule_lists_a_family(tmp_path: Path) -> None:
    listed = lightlint("rule", "devices", cwd=tmp_path)
    assert listed.returncode == 0
    assert lightlint("rule", "LL5", cwd=tmp_path).stdout == listed.stdout
    lines = listed.stdout.splitlines()
    assert lines[0] == "LL5 · devices, memory, speed (devices)"
    assert all(line.startswith("  LL5") for line in lines[1:])


def test_a_directory_called_rule_can_be_linted(tmp_path: Path) -> None:
    (tmp_path / "rule").mkdir()
    (tmp_path / "rule/train.py").write_text(FAULTY)
    assert lightlint("./rule", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("rule", list(all_pages()))
def test_every_rule_can_be_asked_for(rule: str) -> None:
    from lightlint.cli.rule import as_markdown

    page = all_pages()[rule]
    assert as_markdown(page).startswith(f"# {page.name} ({page.code})\n")
