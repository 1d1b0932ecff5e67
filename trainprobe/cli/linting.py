"""Reads, judges and corrects code for `trainprobe lint`."""

from __future__ import annotations

import contextlib
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
) -> tuple[LintResult, list[str]]:
    """Read and judge; with `fix` also mend, until nothing changes. `cpus` and `ranks` are those of
    a node of the job, None where they are not known.

    Returns the answer and the differences as text.
    """
    from trainprobe.lint.engine import findings_of
    from trainprobe.lint.fixing import difference
    from trainprobe.lint.output import LintResult, ReadStats
    from trainprobe.lint.program import NodeInfo
    from trainprobe.lint.reading import installed_versions, read_program

    started = time.monotonic()
    mended: list[Finding] = []
    first: dict[str, str] = {}
    now: dict[str, str] = {}
    failed: list[NotRead] = []
    around = NodeInfo(installed_versions(), cpus=cpus, ranks=ranks)
    for turn in range(ROUNDS):
        with _no_collection():
            program = read_program(paths, around=around)
            findings, trouble = findings_of(program, select=select, ignore=ignore)
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
    return LintResult(findings, read, [*program.not_read, *trouble, *failed], mended), diffs


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
