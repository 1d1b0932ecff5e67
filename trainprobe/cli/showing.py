"""Results: text to stdout, or JSON there and the text to stderr; colour only where it is wanted."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from trainprobe.errors import UsageError

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report


def show_report(report: Report, *, json_to: str | None, quiet: bool, no_color: bool) -> None:
    """Print `report`. With `--json -` stdout holds JSON alone and the text goes to stderr, or nowhere with `--quiet`."""
    if json_to is not None:
        _write_json(report, json_to)
        if json_to == "-" and quiet:
            return
    from trainprobe.report.terminal import show, wants_colour
    from trainprobe.report.text import quiet_lines, report_lines

    stream = sys.stderr if json_to == "-" else sys.stdout
    colour = wants_colour(stream, os.environ, asked_not=no_color)
    lines = (quiet_lines if quiet else report_lines)(report, width_of(stream))
    with to_a_reader(stream):
        show(lines, stream, colour=colour)


@contextlib.contextmanager
def to_a_reader(stream: IO[str]) -> Iterator[None]:
    """Write to someone who may leave early, as `head` does: that is no fault, and it changes no exit code. A full disk is said on stderr."""
    try:
        yield
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(f"trainprobe: The report could not be written: {error.strerror}.\n")
        with contextlib.suppress(OSError, ValueError):  # so that the interpreter does not complain when it flushes at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def width_of(stream: IO[str]) -> int:
    """Return the columns of a terminal, and 100 for anything that is none, so that saved text is always the same."""
    return shutil.get_terminal_size((100, 24)).columns if stream.isatty() else 100


def check_json_target(json_to: str | None) -> None:
    """Raise UsageError now, rather than after minutes of work, where `--json FILE` cannot be written."""
    if json_to is None or json_to == "-":
        return
    folder = os.path.dirname(json_to) or "."
    if os.path.isdir(json_to) or not os.path.isdir(folder) or not os.access(json_to if os.path.exists(json_to) else folder, os.W_OK):
        raise UsageError(f"--json {json_to} cannot be written.", "Name a file in a folder that exists and is yours, or - for stdout.")


def _write_json(report: Report, json_to: str) -> None:
    from trainprobe.report.json_report import report_text

    text = report_text(report)
    if json_to == "-":
        with to_a_reader(sys.stdout):
            sys.stdout.write(text)
            sys.stdout.flush()
        return
    try:
        with open(json_to, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"trainprobe: --json {json_to} was not written: {error.strerror}. The report lies in the case too.\n")
