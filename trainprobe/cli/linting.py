"""Reads, judges and corrects code for `trainprobe lint`."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from trainprobe.errors import UsageError

if TYPE_CHECKING:
    from trainprobe.lint.model import Finding, NotRead
    from trainprobe.lint.output import LintResult

ROUNDS = 4
"""One rewrite may enable another; after this many turns nothing should change."""


@dataclasses.dataclass(frozen=True)
class LeaveOut:
    """Findings that are not told: those of a baseline's file, those about lines that did not change
    since a commit, and hints.
    """

    baseline: str | None = None
    unchanged_since: str | None = None
    hints: bool = True
    """Findings that are less likely right than wrong."""


def check_paths(paths: Sequence[str]) -> None:
    """Raise UsageError for a path that does not exist."""
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(
                f"{path} does not exist.", "Name Python files, notebooks, or folders of them."
            )


def rule_ids(texts: Sequence[str] | None) -> frozenset[str]:
    """Return the ids of `--select a,b`; raises UsageError for one that no rule has."""
    from trainprobe.cli.arguments import names
    from trainprobe.lint.engine import known_ids

    ids = frozenset(names(texts or ()))
    unknown = sorted(ids - known_ids())
    if unknown:
        raise UsageError(
            f"There is no cause or rule {unknown[0]} among those that lint finds.",
            f"It finds: {', '.join(sorted(known_ids()))}.",
        )
    return ids


def look(
    paths: Sequence[str],
    *,
    select: Collection[str],
    ignore: Collection[str],
    fix: bool,
    diff: bool,
    cpus: int | None = None,
    ranks: int | None = None,
    leave_out: LeaveOut = LeaveOut(),
    use_cache: bool = False,
) -> tuple[LintResult, list[str]]:
    """Read and judge; with `fix` also mend, until nothing changes. `cpus` and `ranks` are those of
    a node of the job, None where they are not known. What is left out is counted.

    Returns the answer and the differences as text.
    """
    from trainprobe.lint.engine import findings_of
    from trainprobe.lint.fixing import difference
    from trainprobe.lint.kept_answers import Question, keep, kept
    from trainprobe.lint.output import LintResult, ReadStats
    from trainprobe.lint.program import NodeInfo
    from trainprobe.lint.reading import Looked, installed_versions, read_program

    started, began_ns = time.monotonic(), time.time_ns()
    around = NodeInfo(installed_versions(), cpus=cpus, ranks=ranks)
    question = Question(paths, select, ignore, not leave_out.hints, around)
    use_cache = use_cache and not (fix or diff)
    answer = kept(question) if use_cache else None
    if answer is not None:
        took = dataclasses.replace(answer.read, took_s=round(time.monotonic() - started, 3))
        return _left(dataclasses.replace(answer, read=took), paths, leave_out), []
    looked = Looked(set(), set())
    mended: list[Finding] = []
    first: dict[str, str] = {}
    now: dict[str, str] = {}
    failed: list[NotRead] = []
    for turn in range(ROUNDS):
        with _no_collection():
            program = read_program(paths, around=around, looked=looked)
            findings, trouble = findings_of(
                program, select=select, ignore=ignore, hints=not leave_out.hints
            )
            if fix or diff:
                findings = _left_of(findings, paths, leave_out)[0]
        if not (fix or diff) or turn == ROUNDS - 1:
            break
        changed = {}
        for module in program.modules.values():
            unwritable = module.path in {entry.file for entry in failed}
            if module.requested and not module.is_notebook and not unwritable:
                own = [finding for finding in findings if finding.file == module.path]
                made = _mended(module.path, module.text, own, failed, write=fix)
                if made is not None:
                    changed[module.path] = made[0]
                    mended += made[1] if fix else []
                    first.setdefault(module.path, module.text)
        now.update(changed)
        if not changed or not fix:
            break
    read = ReadStats(
        len(program.modules),
        sum(len(module.lines) for module in program.modules.values()),
        round(time.monotonic() - started, 3),
        program.tests_left_out,
    )
    diffs = [difference(path, first[path], now[path]) for path in sorted(now)] if diff else []
    answer = LintResult(findings, read, [*program.not_read, *trouble, *failed], mended)
    if use_cache:
        keep(question, looked, began_ns, answer)
    return _left(answer, paths, leave_out), diffs


def keep_as_baseline(path: str, findings: Sequence[Finding]) -> None:
    """Write the findings that a project accepts; raises UsageError where that fails."""
    from trainprobe.lint import baseline

    try:
        text = baseline.as_document(findings, os.path.dirname(path) or ".")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"The baseline {path} cannot be written: {error.strerror}.") from None


def _left(answer: LintResult, paths: Sequence[str], leave_out: LeaveOut) -> LintResult:
    """Return an answer without what the user knows already."""
    findings, known, unchanged = _left_of(answer.findings, paths, leave_out)
    return dataclasses.replace(answer, findings=findings, in_baseline=known, unchanged=unchanged)


def _left_of(
    findings: Sequence[Finding], paths: Sequence[str], leave_out: LeaveOut
) -> tuple[list[Finding], int, int]:
    """Return the findings that are left, and how many the baseline holds or stand unchanged."""
    left = list(findings)
    if leave_out.baseline is not None:
        left = _beyond(left, leave_out.baseline)
    new = len(left)
    if leave_out.unchanged_since is not None:
        left = _in_changed_lines(left, paths, leave_out.unchanged_since)
    return left, len(findings) - new, new - len(left)


def _beyond(findings: Sequence[Finding], path: str) -> list[Finding]:
    from trainprobe.lint import baseline

    try:
        with open(path, encoding="utf-8") as file:
            held = baseline.read(file.read())
    except (OSError, ValueError) as error:
        says = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"The baseline {path} cannot be read: {says}.", "Make one with --write-baseline FILE."
        ) from None
    return baseline.beyond(findings, held, os.path.dirname(path) or ".")


def _in_changed_lines(
    findings: Sequence[Finding], paths: Sequence[str], reference: str
) -> list[Finding]:
    """Return the findings that are about a changed line, or lead to one."""
    from trainprobe.system.changed_lines import ChangedLines, changed_lines

    changed: ChangedLines = {}
    for folder in sorted(
        {path if os.path.isdir(path) else os.path.dirname(path) for path in paths}
    ):
        changed.update(changed_lines(reference, folder or "."))

    def touched(file: str, first: int, last: int) -> bool:
        lines = changed.get(os.path.realpath(file), set())
        return lines is None or any(first <= line <= last for line in lines)

    return [
        finding
        for finding in findings
        if touched(finding.file, finding.line, finding.line)
        or (finding.span[0] and touched(finding.file, *finding.span))
        or (finding.reaches[0] and touched(finding.reaches[0], *[finding.reaches[1]] * 2))
    ]


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pause garbage collection: syntax trees are many small objects that all stay, and scanning
    them takes half of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _mended(
    path: str, text: str, findings: Sequence[Finding], failed: list[NotRead], *, write: bool
) -> tuple[str, list[Finding]] | None:
    """Apply the safe rewrites of one file and write it as it was: encoding, newlines, mode."""
    from trainprobe.lint.fixing import applied
    from trainprobe.lint.model import NotRead

    new, done = applied(text, findings)
    if not done or new == text:
        return None
    if write:
        try:
            _write(path, text, new)
        except (OSError, ValueError) as error:
            says = error.strerror if isinstance(error, OSError) else str(error)
            failed.append(NotRead(path, f"It was not mended: {says}."))
            return None
    return new, done


def _write(path: str, old: str, new: str) -> None:
    from trainprobe.lint.reading import encoding_of, text_of

    with open(path, "rb") as file:
        encoding = encoding_of(file.read())
    held = text_of(path)
    newline = "\r\n" if "\r\n" in held else "\r" if "\r" in held else "\n"
    if old.replace("\n", newline) != held:
        raise ValueError("its lines end in different ways, or it has changed meanwhile")
    whole = os.path.realpath(path)
    raw = new.replace("\n", newline).encode(encoding)
    handle, beside = tempfile.mkstemp(dir=os.path.dirname(whole), prefix=".trainprobe-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        os.chmod(beside, os.stat(whole).st_mode & 0o7777)
        os.replace(beside, whole)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
