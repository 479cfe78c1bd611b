"""The command line: arguments to settings, the pipeline's result to reports and an exit status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from lightlint.config.options import FOR_PEOPLE, SettingsError
from lightlint.config.settings import Settings
from lightlint.config.settings import load as load_settings
from lightlint.finding import Finding
from lightlint.memo.compiled import kept_code
from lightlint.pages import PageError

if TYPE_CHECKING:
    from argparse import Namespace

    from lightlint.cache.store import Cache
    from lightlint.clock import Spent
    from lightlint.pipeline.run import Result

CLEAN, FOUND, FAILED, INTERRUPTED = 0, 1, 2, 130

_COMMANDS = {
    "clean": "lightlint.cache.command",
    "confirm": "lightlint.confirm.command",
    "env": "lightlint.environment.command",
    "forecast": "lightlint.forecast.command",
    "merge": "lightlint.cli.merge",
    "rule": "lightlint.cli.rule",
}  # first word: the module whose `main` runs it


def run_command(arguments: Sequence[str]) -> int:
    """Run `lightlint` with the given arguments and return its exit status."""
    try:
        status = _guarded(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon(sys.stdout)
        return CLEAN
    return status


def _guarded(arguments: Sequence[str]) -> int:
    """Run, and turn whatever ends the run early into a line and a status."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # paths need not be UTF-8, terminals need not show every character
                stream.reconfigure(errors="backslashreplace")
        return _dispatch(arguments)
    except SystemExit as left:  # argparse, at --help and wrong options
        return left.code if isinstance(left.code, int) else FAILED
    except (SettingsError, PageError) as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        _failed("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        import traceback

        traceback.print_exc()
        return _failed(f"internal error: {type(error).__name__}: {error}; please report it with the lines above")


def _dispatch(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in _COMMANDS:
        command = import_module(_COMMANDS[arguments[0]])
        status: int = command.main(arguments[1:])
        return status
    from lightlint.arguments import as_settings, parse

    options = parse(arguments)
    settings = load_settings(as_settings(options), file=options.config, isolated=options.isolated)
    if options.show_settings:
        return _show_settings(options.paths, settings)
    if options.show_files:
        return _show_files(options, settings)
    with kept_code("command"):
        return _stdin(options, settings) if options.paths == ["-"] else _paths(arguments, options, settings)


def _show_settings(paths: Sequence[str], settings: Settings) -> int:
    """Print what decides how files are linted; of a folder the first that would be."""
    from lightlint.reports import resolved
    from lightlint.sources.discover import discover

    for path in paths:
        files, missing = discover([path], exclude=settings.exclude, respect_gitignore=settings.respect_gitignore)
        if not files:
            return _failed(f"{path}: {missing[0].message if missing else 'no Python file is found here'}")
        _print([resolved.render(files[0], settings.for_path(files[0]))], sys.stdout)
    return CLEAN


def _show_files(options: Namespace, settings: Settings) -> int:
    """Print the files that would be linted, a line each."""
    from lightlint.pipeline.run import files_of

    files, missing = files_of(options.paths, settings)
    for problem in missing.problems:
        _say(f"{problem.filename}: {problem.message}")
    _print([f"{file}\n" for file in options.shard.of(files)], sys.stdout)
    return FAILED if missing.problems else CLEAN


def _paths(arguments: Sequence[str], options: Namespace, settings: Settings) -> int:
    from lightlint.pipeline import run
    from lightlint.reports.progress import progress_bar

    fixing = settings.fix or options.diff
    cache = _cache(options, settings)
    with progress_bar(not options.quiet) as progress:
        if fixing:
            result = run.fix(
                options.paths,
                settings,
                unsafe=settings.unsafe_fixes,
                write_files=not options.diff,
                cache=cache,
                jobs=options.jobs,
                shard=options.shard,
                progress=progress,
            )
        else:
            result = run.check(
                options.paths,
                settings,
                cache=cache,
                jobs=options.jobs,
                shard=options.shard,
                timed=options.statistics,
                progress=progress,
            )
    if not result.files and not result.problems and not options.quiet:
        _say(_nothing_found(options.paths, settings))
    if options.write_baseline is not None:
        from lightlint.cli import baseline

        _say(f"{options.write_baseline} knows {baseline.write_known(result, options.write_baseline)} findings now")
        return FAILED if any(problem.fatal for problem in result.problems) else CLEAN
    result = _told(result, options, settings)
    status = _report(result, options, settings, sys.stdout)
    aside = options.diff or options.output_file or options.baseline
    stable = result.files and not result.problems and not result.changed and not aside
    stamps = cache.looked_at() if cache is not None and stable else None
    if stamps is not None:
        from lightlint.cache import whole

        whole.keep(arguments, stamps, "".join(_texts(result, options, settings, sys.stdout)), status)
    return status


def _nothing_found(paths: Sequence[str], settings: Settings) -> str:
    """What a run over no files says: git may ignore what it keeps all the same."""
    from lightlint.pipeline.run import files_of

    said, ignored = f"no Python files found under {', '.join(paths)}", dict[str, str]()
    if files_of(paths, settings, ignored)[0] or not ignored:  # another shard's, or nothing is ignored
        return said
    left_out, _ = files_of(paths, replace(settings, respect_gitignore=False))
    ignoring = [file for path, file in ignored.items() if left_out and left_out[0].is_relative_to(path)]
    if not ignoring:
        return said
    shown = os.path.relpath(ignoring[0])
    shown = ignoring[0] if shown.startswith(os.pardir) else shown
    return f"{said}: {shown} leaves out {len(left_out)}, which `--no-respect-gitignore` takes in"


def _cache(options: Namespace, settings: Settings) -> Cache | None:
    if options.no_cache or options.statistics:  # which says what linting takes
        return None
    from lightlint.cache.folder import folder_of, prepare
    from lightlint.cache.store import Cache

    where = folder_of(options.cache_dir, settings)
    try:
        prepare(where)
    except OSError as error:
        if options.cache_dir is not None:
            raise SettingsError(f"--cache-dir: {where} cannot be written: {error.strerror}") from error
        return None
    return Cache(where, settings)


def _stdin(options: Namespace, settings: Settings) -> int:
    from lightlint.pipeline import run

    data, filename = sys.stdin.buffer.read(), options.stdin_filename or "-"
    if not settings.fix and not options.diff:
        result = _told(run.check_text(data, filename, settings), options, settings)
        return _report(result, options, settings, sys.stdout)
    result, repaired = run.fix_text(data, filename, settings, unsafe=settings.unsafe_fixes)
    result = _told(result, options, settings)
    if options.diff:
        return _report(result, options, settings, sys.stdout)
    sys.stdout.buffer.write(repaired)
    sys.stdout.flush()
    return _report(result, options, settings, sys.stderr)  # standard output is the repaired text


def _told(result: Result, options: Namespace, settings: Settings) -> Result:
    """What is told of a result: nothing of what is left where only repairs are asked for, nor of what the baseline knows."""
    if options.fix_only:
        from dataclasses import replace

        return replace(result, findings=(), files=0)  # that none are left would not be so
    if options.baseline is None:
        return result
    from lightlint.cli import baseline

    is_part = options.paths == ["-"] or options.shard.count > 1
    found, gone = baseline.without_known(result, options.baseline, [] if is_part else options.paths, settings)
    if gone:
        _say(f"{gone} of what {options.baseline} knew is gone: it is shorter now")
    return found


def _report(result: Result, options: Namespace, settings: Settings, stream: TextIO) -> int:
    """Print a result and return the exit status it stands for."""
    for problem in result.problems:
        hint = "; --verbose shows where" if problem.details and not options.verbose else ""
        _say(f"{problem.filename}: {problem.message}{hint}")
        if options.verbose:
            sys.stderr.write(problem.details)
    if options.diff:
        _print(_diffs(result, stream), stream)
        if not options.quiet:
            _print(_summary(result, _listed(result, settings), options.diff, sys.stderr), sys.stderr)
    elif options.output_file is not None:
        from lightlint.cli import output

        text = "".join(_texts(result, options, settings, io.StringIO()))
        output.save(options.output_file, text.encode(errors="backslashreplace"), "--output-file")
    else:
        _print(_texts(result, options, settings, stream), stream)
    return _status(result, options)


def _texts(result: Result, options: Namespace, settings: Settings, stream: TextIO) -> list[str]:
    """The report of a run that was not to show differences."""
    listed = _listed(result, settings)
    texts = [_listing(listed, result.spent, options, settings, stream)]
    if not options.quiet and settings.output_format in FOR_PEOPLE:
        texts += _summary(result, listed, options.diff, stream)
    return texts


def _listed(result: Result, settings: Settings) -> list[Finding]:
    return [finding for finding in result.findings if settings.for_path(finding.filename).shows(finding)]


def _status(result: Result, options: Namespace) -> int:
    if any(problem.fatal for problem in result.problems):
        return FAILED
    found = any(finding.counts for finding in result.findings)
    found |= bool(result.changed) and (options.diff or options.exit_non_zero_on_fix)
    return FOUND if found and not options.exit_zero else CLEAN


def _listing(findings: Sequence[Finding], spent: Spent, options: Namespace, settings: Settings, stream: TextIO) -> str:
    from lightlint.reports.paint import wants_colour

    if options.statistics:
        from lightlint.reports import statistics

        if settings.output_format == "json":
            return statistics.render_json(findings)
        return statistics.render(findings, wants_colour(stream), () if options.quiet else spent)
    report = import_module(f"lightlint.reports.formats.{settings.output_format.replace('-', '_')}")
    text: str = report.render(findings, wants_colour(stream))
    return text


def _diffs(result: Result, stream: TextIO) -> Iterator[str]:
    from lightlint.reports import diff
    from lightlint.reports.paint import wants_colour

    for changed in result.changed:
        for text in changed.texts:
            yield diff.render(text.place, text.before, text.after, wants_colour(stream))


def _summary(result: Result, listed: Sequence[Finding], would: bool, stream: TextIO) -> Iterator[str]:
    from lightlint.reports import summary
    from lightlint.reports.paint import wants_colour

    colour = wants_colour(stream)
    fixed = [(changed.filename, changed.fixed) for changed in result.changed]
    yield summary.render_fixed(fixed, would=would, colour=colour)
    if result.files:
        hidden = len(result.findings) - len(listed)
        yield summary.render(listed, hidden=hidden, files=result.files, left=bool(fixed), colour=colour)
        yield summary.render_known(result.known)
        yield summary.render_strangers(result.strangers, colour=colour)
        yield summary.render_newer(result.newer, colour=colour)


def _print(texts: Iterator[str] | Sequence[str], stream: TextIO) -> None:
    """Write texts; a reader that went away (`| head`) does not change the exit status."""
    try:
        for text in texts:
            stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _abandon(stream)


def _abandon(stream: TextIO) -> None:
    """Let what is still buffered for a closed pipe go nowhere, or Python complains at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _say(message: str) -> None:
    sys.stderr.write(f"lightlint: {' '.join(message.splitlines())}\n")


def _failed(message: str) -> int:
    _say(message)
    return FAILED
