"""The user's script as text: does it exist, does it parse, what does it import."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainprobe.errors import UsageError
from trainprobe.system.answering import silent
from trainprobe.system.run import run

READ_S = 20.0
MOUNT = "Ask whoever runs that file system, or copy the script to a local disk."
_MARK = b"\nTRAINPROBE "


@dataclass(frozen=True)
class SyntaxFault:
    file: str
    line: int
    says: str
    text: str


@dataclass(frozen=True)
class Script:
    """A script as its text shows it.

    `imports` are top-level module names that running it imports, without the standard library and
    its own neighbours; `optional` those whose absence it provides for. `spawns` is true where it
    starts its ranks itself. `reason` says why it could not be read, empty when it could.
    `group_timeout_s` is the shortest timeout that it sets for a process group, in seconds, None
    where it sets none that the text shows.
    """

    path: str
    imports: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    syntax_error: SyntaxFault | None = None
    distributed: bool = False
    spawns: bool = False
    reason: str = ""
    group_timeout_s: float | None = None


def in_command(argv: Sequence[str], cwd: str) -> str | None:
    """Return the path of the script that a command runs, None when it names none (such as `-m
    package`).

    Raises UsageError when it names one that is not there.
    """
    named = [word for word in argv if word.endswith(".py") and not word.startswith("-")]
    inside = [
        part.strip("'\"") for word in argv for part in word.split()[1:]
    ]  # bash -c "python train.py"
    for word in (*named, *(part for part in inside if part.endswith(".py"))):
        path = os.path.join(cwd, word)
        silence = silent(path)
        if silence:
            raise UsageError(f"The script {path} cannot be read: {silence}.", MOUNT)
        if os.path.isfile(path):
            return path
    named = [word for word in named if len(word.split()) == 1]
    if named:
        raise UsageError(
            f"The script {named[0]} does not"
            f" exist{' in ' + cwd if not os.path.isabs(named[0]) else ''}.",
            "Check the path after `--`.",
        )
    return None


def read(path: str, python: str) -> Script:
    """Read the script at `path` with the grammar of the interpreter `python`.

    Raises UsageError when it is not a readable file.
    """
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise UsageError(
            f"The script {path} cannot be read: {error.strerror}.", "Check the path after `--`."
        ) from error
    reader = str(Path(__file__).with_name("script_reader.py"))
    ran = run([python, "-I", "-S", reader, path], timeout_s=READ_S)
    answer = parse_answer(ran.stdout)
    if answer is None:
        why = "no answer in time" if ran.ended.how == "timed_out" else "no readable answer"
        return Script(path, reason=f"{python} was asked to parse the script and gave {why}")
    fault = answer.get("syntax_error")
    return Script(
        path,
        imports=_names(answer.get("imports")),
        optional=_names(answer.get("optional")),
        local=_names(answer.get("local")),
        syntax_error=(
            SyntaxFault(
                str(fault.get("file", path)),
                int(fault.get("line", 0)),
                str(fault.get("says", "")),
                str(fault.get("text", "")),
            )
            if isinstance(fault, dict)
            else None
        ),
        distributed=bool(answer.get("distributed")),
        spawns=bool(answer.get("spawns")),
        group_timeout_s=(
            float(timeout_s)
            if isinstance(timeout_s := answer.get("group_timeout_s"), (int, float))
            else None
        ),
    )


def parse_answer(stdout: bytes) -> dict[str, Any] | None:
    """Return the JSON object after the mark, whatever was printed around it."""
    _, mark, rest = (b"\n" + stdout).rpartition(_MARK)
    if not mark:
        return None
    try:
        answer = json.loads(rest.splitlines()[0])
    except (ValueError, IndexError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
