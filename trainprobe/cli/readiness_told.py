"""What `trainprobe ready` leaves behind: its report in the form that was asked for, the exclude file, and, only where it was asked for by name, a drain."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from trainprobe.cli.showing import show_report, to_a_reader
from trainprobe.model.node_names import folded
from trainprobe.report.forms import in_form
from trainprobe.report.readiness_section import readiness_of
from trainprobe.report.words import clean

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report


def show_ready(report: Report, form: str, *, json_to: str | None, quiet: bool, no_color: bool) -> None:
    """Print `report` as text, or in the form for a machine on stdout alone."""
    if form == "text":
        show_report(report, json_to=json_to, quiet=quiet, no_color=no_color)
        return
    if json_to is not None:
        show_report(report, json_to=json_to, quiet=True, no_color=True) if json_to == "-" else _json_too(report, json_to)
    with to_a_reader(sys.stdout):
        sys.stdout.write(in_form(report, form, time.time()))
        sys.stdout.flush()


def _json_too(report: Report, json_to: str) -> None:
    from trainprobe.report.json_report import report_text

    with open(json_to, "w", encoding="utf-8") as file:
        file.write(report_text(report))


def write_exclude_file(report: Report, path: str) -> None:
    """Write the nodes to leave out, one line in SLURM's short form; a file of an earlier run goes where there are none, and stays where we were interrupted. A failure is said, not raised."""
    if report.extra.get("interrupted") is True:
        return
    exclude = _names(report, "exclude")
    try:
        if exclude:
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{folded(exclude)}\n")
        elif os.path.isfile(path):
            os.unlink(path)
    except OSError as error:
        sys.stderr.write(f"trainprobe: --exclude-file {path} was not written: {error.strerror}.\n")


def drained(report: Report, named: str) -> None:
    """Set those of the named nodes to drain that were found at fault, and say what came of it. What an administrator has set by hand is never undone."""
    from trainprobe.ready.drain import drain
    from trainprobe.targets.host_names import host_names

    wanted = host_names("--drain", named)
    chosen = [node for node in _names(report, "exclude") if node in wanted]
    if not chosen:
        sys.stderr.write(f"trainprobe: None of {folded(wanted)} was found at fault; nothing was drained.\n")
        return
    checks = [row for row in readiness_of(report).get("checks", ()) if row.get("state") == "fail" and set(row.get("hosts", ())) & set(chosen)]
    reason = ", ".join(dict.fromkeys(str(row.get("id")) for row in checks)) or "no answer"  # a node that gave none has no checks
    for says in drain(chosen, reason).says:
        sys.stderr.write(f"trainprobe: {clean(says)}\n")


def _names(report: Report, name: str) -> list[str]:
    found = readiness_of(report).get(name)
    return [node for node in found if isinstance(node, str)] if isinstance(found, (list, tuple)) else []
