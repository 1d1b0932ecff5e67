"""Where results go: one format on stdout, others in files, and the text wherever it is not in the
way.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from trainprobe.cli.exit_codes import INTERRUPTED
from trainprobe.errors import UsageError
from trainprobe.report.format import Format, Layout, Subject
from trainprobe.report.formats import choose

if TYPE_CHECKING:
    from trainprobe.model.evidence import Evidence


@dataclass(frozen=True)
class Output:
    """What was asked for. Where stdout holds another format, the text goes to stderr, or nowhere
    with `quiet`.
    """

    subject: Subject
    stdout: Format
    files: tuple[tuple[Format, str], ...] = ()
    quiet: bool = False
    no_color: bool = False
    verbose: bool = False
    share: str = ""

    def text_stream(self) -> IO[str] | None:
        """Return where the text goes, or None."""
        if self.stdout.name == "text":
            return sys.stdout
        return None if self.quiet else sys.stderr

    def exit_code(self, report: Any, code: int) -> int:
        """Return the code of the format on stdout where it has its own, else `code`."""
        own = self.stdout.exit_code
        return code if own is None or code == INTERRUPTED else own(report)


def output_of(  # noqa: PLR0913 - one parameter per option
    subject: Subject,
    format_name: str | None = None,
    output_file: str | None = None,
    json_to: str | None = None,
    sarif_to: str | None = None,
    html_to: str | None = None,
    *,
    share_to: str | None = None,
    quiet: bool = False,
    no_color: bool = False,
    verbose: bool = False,
) -> Output:
    """Return where the results on `subject` go.

    Raises UsageError where a format cannot render it, two formats are meant for stdout, or a file
    cannot be written: now, rather than after minutes of work.
    """
    wanted: list[tuple[str, Format, str]] = []
    if format_name is not None or output_file is not None:
        chosen = choose(subject, format_name, output_file)
        if output_file is not None or chosen.name != "text":
            wanted.append((f"--format {chosen.name}", chosen, output_file or "-"))
    short = (
        ("--json", "json", json_to),
        ("--sarif", "sarif", sarif_to),
        ("--html", "html", html_to),
    )
    for option, name, target in short:
        if target is not None:
            wanted.append((f"{option} -", choose(subject, name), target))
    on_stdout = [(option, chosen) for option, chosen, target in wanted if target == "-"]
    if len({chosen.name for _, chosen in on_stdout}) > 1:
        raise UsageError(
            f"{' and '.join(option for option, _ in on_stdout)} cannot both be stdout.",
            "Write one of them to a file.",
        )
    files = tuple((chosen, target) for _, chosen, target in wanted if target != "-")
    for option, _, path in wanted:
        check_file(path, option.removesuffix(" -") if option.endswith(" -") else "--output")
    stdout = on_stdout[0][1] if on_stdout else choose(subject, "text")
    if share_to is not None:
        check_file(share_to if share_to != "-" else "./-/", "--share")
    return Output(subject, stdout, files, quiet, no_color, verbose, share_to or "")


def check_file(path: str | None, option: str = "--json") -> None:
    """Raise UsageError where the file that `option` names cannot be written."""
    if path is None or path == "-":
        return
    folder = os.path.dirname(path) or "."
    if (
        os.path.isdir(path)
        or not os.path.isdir(folder)
        or not os.access(path if os.path.exists(path) else folder, os.W_OK)
    ):
        raise UsageError(
            f"{option} {path} cannot be written.",
            "Name a file in a folder that exists and is yours, or - for stdout.",
        )


def write_result(
    output: Output,
    result: Any,
    evidence: Sequence[Evidence] | None = None,
) -> None:
    """Write `result`, which is of `output.subject`, to files, stdout and stderr. Without `evidence`
    a format that shows it reads the case.

    A format that fails costs its own output alone: the text is written before its error is raised.
    """
    failed: Exception | None = None
    layout = Layout(
        ended_at=time.time(),
        evidence=lambda: _evidence_of(result) if evidence is None else evidence,
    )
    for chosen, path in output.files:
        try:
            write_file(path, chosen.renders[output.subject](result, layout))
        except Exception as error:  # noqa: BLE001 - of a plugin's format; raised below
            failed = error
    if output.share:
        _share(output, result)
    stream = output.text_stream()
    if stream is not None:
        _write_text(output, result, stream)
    if output.stdout.name != "text":
        try:
            rendered = output.stdout.renders[output.subject](result, layout)
        except Exception as error:  # noqa: BLE001 - as above
            failed = error
        else:
            with to_a_reader(sys.stdout):
                sys.stdout.write(rendered)
                sys.stdout.flush()
    if failed is not None:
        raise failed


def _evidence_of(report: Any) -> Sequence[Evidence]:
    """The evidence of the case that the report names, empty where it cannot be read."""
    from trainprobe.saved_case import read_case

    try:
        return read_case(report.case).evidence if report.case else ()
    except UsageError:
        return ()


def _share(output: Output, report: Any) -> None:
    """Write the report with stand-ins in the format that the file's ending names, else as text, and
    beside it the ledger, which nobody else may read.
    """
    import getpass

    from trainprobe.report.stand_ins import for_strangers

    try:
        users = [getpass.getuser()]
    except (KeyError, OSError):  # a user without a name, as in many containers
        users = []
    shared, ledger = for_strangers(report, users)
    chosen = choose(output.subject, None, output.share)
    layout = Layout(verbose=True, ended_at=time.time())
    write_file(output.share, chosen.renders[output.subject](shared, layout))
    write_file(f"{output.share}.ledger", ledger, private=True)


def _write_text(output: Output, result: Any, stream: IO[str]) -> None:
    from trainprobe.report.terminal import wants_colour

    colour = wants_colour(stream, os.environ, asked_not=output.no_color)
    layout = Layout(width_of(stream), colour, output.quiet, output.verbose)
    with to_a_reader(stream):
        stream.write(choose(output.subject, "text").renders[output.subject](result, layout))
        stream.flush()


def write_file(path: str, text: str, *, private: bool = False) -> None:
    """Write `text` to the file; where that fails stderr says so. A `private` file is for its owner
    alone.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600 if private else 0o666)

    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape", opener=opener) as file:
            if private:
                os.fchmod(file.fileno(), 0o600)
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"trainprobe: {path} was not written: {error.strerror}.\n")


@contextlib.contextmanager
def to_a_reader(stream: IO[str]) -> Iterator[None]:
    """Write to someone who may leave early, as `head` does: that is no fault, and it changes no
    exit code. A full disk is reported on stderr.
    """
    try:
        yield
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(
                    f"trainprobe: The report could not be written: {error.strerror}.\n"
                )
        # so that the interpreter does not complain when it flushes at exit
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def width_of(stream: IO[str]) -> int:
    """Return the columns of a terminal, and 100 for anything else, so that saved text is always
    the same.
    """
    return shutil.get_terminal_size((100, 24)).columns if stream.isatty() else 100
