"""`%load_ext trainprobe`: trainprobe's commands in a notebook, with the answer part of the page
below the cell; and cells that a look at the notebook's own job calls by their number.
"""

from __future__ import annotations

import atexit
import contextlib
import html
import os
import shlex
import stat
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report

LIMIT_S = 3600.0  # the longest that a command may take: `ready --deep` ends within half an hour
WITH_REPORT = ("attach", "diagnose", "explain", "ready")
SOURCE_CAP_BYTES = 2**20


@dataclass(frozen=True)
class Answer:
    """What a command said. A notebook shows the answer part of the page, everything else the
    text.
    """

    text: str
    report: Report | None = None

    def __repr__(self) -> str:
        """The text, as it stands on a terminal."""
        return self.text.rstrip()

    def _repr_html_(self) -> str | None:
        if self.report is None:
            return None
        from trainprobe.report.page.document import answer_page

        # In a frame of its own, without scripts: what a job printed cannot reach the notebook.
        page = html.escape(answer_page(self.report), quote=True)
        return (
            f'<iframe sandbox srcdoc="{page}" title="trainprobe" style="width: 100%;'
            ' height: 40em; border: 0; resize: vertical; overflow: auto"></iframe>'
        )


def register(shell: Any) -> None:
    """Add `%trainprobe` to an IPython shell, and keep the source of each cell from now on."""
    shell.register_magic_function(command, "line", "trainprobe")
    cells = KeptCells()
    named = getattr(shell.compile, "get_code_name", None)
    if named is None:  # IPython before 7.21
        return

    def name_of(source: str, transformed: str, number: int) -> str:
        name = str(named(source, transformed, number))
        cells.keep(name, source, number)
        return name

    # Where a cell's code gets its name, its number is the same in all versions of IPython.
    shell.compile.get_code_name = name_of
    atexit.register(cells.remove)


def command(line: str) -> Answer:
    """Run a command of trainprobe, such as `%trainprobe attach 4711` or `%trainprobe explain
    train.log`; without one, look at the training job of this host.
    """
    from trainprobe.supervise.looks import own_command
    from trainprobe.system.run import run

    arguments = shlex.split(line) or ["attach"]
    with tempfile.TemporaryDirectory(prefix="trainprobe-notebook-") as folder:
        file = os.path.join(folder, "report.json")
        wanted = arguments[0] in WITH_REPORT and "--json" not in arguments
        # before `--`, behind which the arguments are those of the job
        typed = [arguments[0], "--json", file, *arguments[1:]] if wanted else arguments
        ran = run(
            [*own_command(), *typed],
            timeout_s=LIMIT_S,
            env={**os.environ, "NO_COLOR": "1"},
        )
        text = ran.stdout.decode(errors="replace")
        report = _report_in(file) if wanted else None
    if report is None:
        text += ran.stderr.decode(errors="replace")
    return Answer(text or ran.ended.reason, report)


def _report_in(file: str) -> Report | None:
    from trainprobe.report.json_report import read_report

    with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8") as opened:
        return read_report(opened.read())
    return None


class KeptCells:
    """The sources of the cells, under the names that the code of the cells has in stacks."""

    def __init__(self) -> None:
        self._made: set[str] = set()
        self._pid = os.getpid()

    def keep(self, name: str, source: str, number: int) -> None:
        """Write the source of a cell that is about to run, as `cell N` and under its code's
        name.
        """
        folder, content = os.path.dirname(name), source.encode(errors="replace")
        ours = os.path.isabs(name) and "/ipykernel_" in name and os.getpid() == self._pid
        if not ours or len(content) > SOURCE_CAP_BYTES:
            return
        # A notebook's cell runs whether or not its source could be written.
        with contextlib.suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            of = os.lstat(folder)
            if not stat.S_ISDIR(of.st_mode) or of.st_uid != os.getuid() or of.st_mode & 0o022:
                return
            self._write(os.path.join(folder, f"cell {number}"), content)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            os.symlink(f"cell {number}", name)
            self._made.add(name)

    def _write(self, file: str, content: bytes) -> None:
        with open(file, "wb") as opened:
            opened.write(content)
        self._made.add(file)

    def remove(self) -> None:
        """Remove what was written, at the end of the kernel and not of what it has forked."""
        if os.getpid() != self._pid:
            return
        for file in self._made:
            with contextlib.suppress(OSError):
                os.unlink(file)
        for folder in {os.path.dirname(file) for file in self._made}:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
