"""The command line. Heavy imports stand inside the commands: `trainprobe --help` costs little more than typer itself."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from trainprobe.errors import TrainprobeError

DEBUG = "TRAINPROBE_DEBUG"


def main() -> NoReturn:
    """Run the command line of this process and end it with the exit code of docs/exits.md."""
    _mend_streams()
    argv = sys.argv[1:]
    if argv[:1] == ["ready"]:
        from trainprobe.cli.overseen import oversee_ready

        oversee_ready(argv)
    sys.exit(run(argv))


def _mend_streams() -> None:
    """Make stdin, stdout and stderr usable: a closed one leads nowhere, and a character that one cannot write becomes a question mark.

    A closed one would also give its number to the next file that is opened, and a child would write its output there.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    while nowhere <= 2:
        os.set_inheritable(nowhere, True)
        nowhere = os.open(os.devnull, os.O_RDWR)
    os.close(nowhere)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. Foreseen failures become one sentence on stderr; nothing else escapes."""
    try:
        if argv[:1] == ["ready"]:
            from trainprobe.cli.ready_slot import is_for_a_slot, ready_slot

            if is_for_a_slot(list(argv), os.environ):
                return ready_slot(argv)
        from trainprobe.cli.app import command_line

        return command_line(list(argv))
    except TrainprobeError as error:
        return _failed(str(error), error.exit_code, argv)
    except KeyboardInterrupt:
        _say("Interrupted.")
        return 130
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _failed(f"A fault of trainprobe itself: {type(error).__name__}: {' '.join(str(error).split())[:300]}. {_kept()}", 70, argv)


def _failed(sentence: str, code: int, argv: Sequence[str]) -> int:
    """Say it, to a monitor in its own form: it reads stdout, and takes silence for health."""
    _say(sentence)
    if argv[:1] == ["ready"]:
        from trainprobe.cli.ready_slot import asks_for_nagios, write_unknown

        if asks_for_nagios(argv):
            write_unknown(sentence)
            return 3
    return code


def _say(sentence: str) -> None:
    """What an error quotes of names and files may hold escape sequences and secrets; neither belongs on a terminal."""
    from trainprobe.redact import Redactor
    from trainprobe.report.words import clean

    try:
        sys.stderr.write(f"trainprobe: {clean(Redactor(os.environ).text(sentence)[0])}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def _kept() -> str:
    """Save the traceback and say where; where that fails too, say how to see it."""
    import tempfile
    import traceback

    from trainprobe.redact import Redactor

    try:
        with tempfile.NamedTemporaryFile("w", prefix="trainprobe-fault-", suffix=".txt", delete=False, encoding="utf-8") as file:
            file.write(Redactor(os.environ).text(traceback.format_exc())[0])
            return f"The traceback lies in {file.name}."
    except OSError:
        return f"Set {DEBUG}=1 to see the traceback."
