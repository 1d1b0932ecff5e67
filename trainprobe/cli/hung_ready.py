"""The last word of a `ready` that hangs itself: a batch script waits for it, and nobody is there
to end it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainprobe.system.overseer import Known

# until the working process says what its budget allows; with the last word it is over before a
# minute has passed
LONGEST_S = 54.0


def oversee_ready(argv: Sequence[str]) -> None:
    """Go on in a child process where `argv` is a readiness check of the job's own step."""
    if argv[:1] != ["ready"]:
        return
    from trainprobe.cli.ready_slot import is_for_a_slot

    if not is_for_a_slot(list(argv), os.environ):
        from trainprobe.system.overseer import oversee

        oversee(LONGEST_S, last_word)


def last_word(known: Known) -> int:
    """Print the report of what is known, in the form that was asked for, and return the exit
    code.
    """
    asked = known.words
    if isinstance(asked.get("code"), int):  # the report is out: only what came behind it hangs
        return int(asked["code"])
    from trainprobe.cli.exit_codes import ready_code_of
    from trainprobe.cli.output import output_of, write_result
    from trainprobe.report.readiness_section import readiness_of
    from trainprobe.report.unfinished import unfinished_report

    report = unfinished_report(asked, known.rows, known.after_s, known.told_s)
    options = [word if isinstance(word, str) else None for word in asked.get("output") or ()]
    output = output_of(
        "readiness",
        *options,
        quiet=asked.get("quiet") is True,
        no_color=asked.get("no_color") is True,
    )
    write_result(output, report)
    sys.stdout.flush()
    path = asked.get("exclude_file")
    if isinstance(path, str) and readiness_of(report).get("exclude"):
        from trainprobe.cli.ready import write_exclude_file

        write_exclude_file(report, path)
    code = ready_code_of(report, inconclusive=str(asked.get("inconclusive") or ""))
    return output.exit_code(report, code)
