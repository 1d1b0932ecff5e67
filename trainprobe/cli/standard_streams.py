"""stdin, stdout and stderr as we were started with them, made usable."""

from __future__ import annotations

import io
import os
import sys

closed: list[int] = []  # those that we were started without


def mend() -> None:
    """Make stdin, stdout and stderr usable: a closed one leads nowhere, and a character that one
    cannot write becomes a question mark.

    A closed one would also give its number to the next file that is opened, and a child would write
    its output there.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    while nowhere <= 2:
        closed.append(nowhere)
        os.set_inheritable(nowhere, True)
        nowhere = os.open(os.devnull, os.O_RDWR)
    os.close(nowhere)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
