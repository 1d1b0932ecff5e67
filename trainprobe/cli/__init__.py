"""The command line. Heavy imports stand inside the commands: `trainprobe --help` costs little
more than typer itself.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from typing import IO, NoReturn

from trainprobe.cli.standard_streams import mend
from trainprobe.errors import TrainprobeError

DEBUG = "TRAINPROBE_DEBUG"


def main() -> NoReturn:
    """Run the command line of this process and end it with the exit code of docs/exits.md."""
    mend()
    # Modules, and facts about thousands of ranks, live to the end and make no cycles: looking for
    # some among them again and again took a quarter of the time of judging. A small case stays
    # below the threshold, and what is left at the end needs no search either.
    gc.set_threshold(200_000, 50, 100)
    argv = sys.argv[1:]
    if argv[:1] == ["ready"]:
        from trainprobe.cli.hung_ready import oversee_ready

        oversee_ready(argv)
    code = run(argv)
    gc.freeze()
    sys.exit(code)


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. Foreseen failures become one sentence on
    stderr; nothing else escapes.
    """
    try:
        if argv[:1] == ["ready"]:
            from trainprobe.cli.ready_slot import is_for_a_slot, ready_slot

            if is_for_a_slot(list(argv), os.environ):
                return ready_slot(argv)
        from trainprobe.cli.app import command_line

        return command_line(list(argv))
    except TrainprobeError as error:
        return _failed(f"{error.says} {error.do}".strip(), error.exit_code, argv, error.lines)
    except KeyboardInterrupt:
        _write(sys.stderr, "trainprobe: Interrupted.\n")
        return 130
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _failed(
            f"A fault of trainprobe itself: {type(error).__name__}:"
            f" {' '.join(str(error).split())[:300]}. {_saved_traceback()}",
            70,
            argv,
        )


def _failed(sentence: str, code: int, argv: Sequence[str], lines: Sequence[str] = ()) -> int:
    """Print an error on stderr, and on stdout where the chosen format has words for it: a monitor
    takes silence for health.
    """
    from trainprobe.report.formats import failure_of

    sentence = _without_secrets(sentence)
    below = "".join(f"  {_without_secrets(line)}\n" for line in lines)
    _write(sys.stderr, f"trainprobe: {sentence}\n{below}")
    instead = failure_of(argv, sentence)
    if instead is None:
        return code
    _write(sys.stdout, instead[0])
    return instead[1]


def _without_secrets(sentence: str) -> str:
    """What an error quotes of names and files may hold escape sequences and secrets; neither
    belongs on a terminal.
    """
    from trainprobe.redact import Redactor
    from trainprobe.report.phrases import clean

    return clean(Redactor(os.environ).text(sentence)[0])


def _write(stream: IO[str], text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()


def _saved_traceback() -> str:
    """Save the traceback and say where; where that fails too, say how to see it."""
    import tempfile
    import traceback

    from trainprobe.redact import Redactor

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="trainprobe-fault-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(Redactor(os.environ).text(traceback.format_exc())[0])
            return f"The traceback lies in {file.name}."
    except OSError:
        return f"Set {DEBUG}=1 to see the traceback."
