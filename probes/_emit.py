"""What all probes share: events, phases, the answer, and the rank's environment.

A probe imports this first. Nothing here may ever hurt the probe: an event file that cannot be
written and a closed stdout are both ignored. One event is one JSON line and one `write`, so that
ranks may share a file. The exit code by hand is 0 (yes), 10 (no) or 11 (cannot); 1 and 2 mean
nothing, since a crash and argparse use them.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import sys
import time
import traceback
from typing import Any, Dict, Iterator, List, NamedTuple, NoReturn, Optional

_HERE = os.path.dirname(os.path.realpath(__file__))


def _leave_path() -> None:
    """Take the probes' folder off `sys.path`, so that it shadows nothing that is imported later.
    Packages imported before find their modules without it.
    """
    main = os.path.basename(getattr(sys.modules["__main__"], "__file__", None) or "")
    for package in ("_shared", f"_{os.path.splitext(main)[0]}"):
        if os.path.isfile(os.path.join(_HERE, package, "__init__.py")):
            importlib.import_module(package)
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.realpath(entry) != _HERE]


_leave_path()

EXIT_CODES = {"yes": 0, "no": 10, "cannot": 11}
MAX_LINE_BYTES = 256 * 1024
PR_SET_PTRACER = 0x59616D61  # linux/prctl.h; -1 is PR_SET_PTRACER_ANY
_state: Dict[str, Any] = {"seq": 0, "file": None, "opened": False, "open_phase": ""}


class RankEnvironment(NamedTuple):
    """torchrun's variables, or the values of a single process where they are not set."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int


class Parser(argparse.ArgumentParser):
    """A bad argument is an answer (`cannot`), not argparse's exit code 2."""

    def error(self, message: str) -> NoReturn:
        result("cannot", f"Bad argument: {message}.")

    def text(self, flag: str, variable: str, default: str = "") -> None:
        """Add a flag whose default is an environment variable, unless that is empty."""
        self.add_argument(flag, default=os.environ.get(variable) or default)

    def number(self, flag: str, variable: str, default: int, least: int = 0) -> None:
        """Add a flag whose default is an integer variable of at least `least`."""
        value = number_from_environment(variable, default, least)
        self.add_argument(flag, type=int, default=value)

    def seconds(self, default: float, variable: str = "TRAINPROBE_DEADLINE_S") -> None:
        """Add --timeout-s, whose default is an environment variable."""
        value = seconds_from_environment(variable, default)
        self.add_argument("--timeout-s", type=float, default=value)


def number_from_environment(name: str, default: int, least: int = 0) -> int:
    """Return an integer variable; answer `cannot` unless it is a number of at least `least`."""
    text = os.environ.get(name, "").strip()
    try:
        value = int(text) if text else default
    except ValueError:
        result("cannot", f"{name}={text!r} is not a number.")
    if value < least:
        result("cannot", f"{name}={value} is less than {least}.")
    return value


def seconds_from_environment(name: str, default: float) -> float:
    """Return a variable that holds seconds; answer `cannot` unless it is a number."""
    text = os.environ.get(name, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        result("cannot", f"{name}={text!r} is not a number.")


def rank_environment() -> RankEnvironment:
    """Read and check RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE."""
    world_size = number_from_environment("WORLD_SIZE", 1, 1)
    rank = number_from_environment("RANK", 0)
    if rank >= world_size:
        result("cannot", f"RANK={rank} does not fit WORLD_SIZE={world_size}.")
    return RankEnvironment(
        rank,
        world_size,
        number_from_environment("LOCAL_RANK", rank),
        number_from_environment("LOCAL_WORLD_SIZE", world_size, 1),
    )


def _events_file() -> Optional[int]:
    if not _state["opened"]:
        _state["opened"] = True
        path = os.environ.get("TRAINPROBE_EVENTS")
        if path:
            with contextlib.suppress(OSError, ValueError):
                # Non-blocking, so that a pipe without a reader is an error here and not a hang.
                _state["file"] = os.open(
                    path,
                    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK,
                    0o600,
                )
    return _state["file"]  # type: ignore[no-any-return]


def emit(event: str, **fields: Any) -> None:
    """Append one event; fields that JSON does not know become their repr."""
    file = _events_file()
    if file is None:
        return
    _state["seq"] += 1
    rank = os.environ.get("RANK", "")
    record = {
        "event": event,
        "at": time.time(),
        "rank": int(rank) if rank.isdecimal() else None,
        "seq": _state["seq"],
        **fields,
    }
    line = json.dumps(record, default=repr).encode("utf-8", "replace")
    if len(line) > MAX_LINE_BYTES:
        record = {
            key: value if not isinstance(value, (str, list, dict)) else str(value)[:2000]
            for key, value in record.items()
        }
        line = json.dumps({**record, "cut": True}, default=repr).encode()[:MAX_LINE_BYTES]
    with contextlib.suppress(OSError):
        os.write(file, line + b"\n")


def say(text: str) -> None:
    """Print one readable line, unbuffered: nothing is left to fail when the interpreter ends."""
    if sys.stdout is not None:
        with contextlib.suppress(OSError):
            os.write(1, (text + "\n").encode("utf-8", "replace"))


@contextlib.contextmanager
def phase(name: str) -> Iterator[Dict[str, Any]]:
    """Name a risky step before it starts. The dict's content becomes fields of its end."""
    began = time.monotonic()
    fields: Dict[str, Any] = {}
    _state["open_phase"] = name
    emit("phase.begin", name=name)
    yield fields
    emit("phase.end", name=name, took_s=round(time.monotonic() - began, 6), **fields)


@contextlib.contextmanager
def scratch_folder(name: str) -> Iterator[str]:
    """A folder that is removed after the block. The ladder removes it when it kills the probe."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(
        prefix=f"trainprobe-{name}-",
        dir=os.path.dirname(os.environ.get("TRAINPROBE_EVENTS", "")) or None,
    )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(name: str, value: Any, unit: str, **more: Any) -> None:
    """Report a number; `more` may hold threshold, source, who and labels."""
    emit("measure", name=name, value=value, unit=unit, **more)
    labels = " ".join(f"{key}={value}" for key, value in more.items() if key != "source")
    say(
        f"  {name} = {f'{value:.6g}' if isinstance(value, float) else value} {unit}"
        + (f"   ({labels})" if labels else "")
    )


def note(sentence: str, /, **fields: Any) -> None:
    """Report something worth knowing that is no fault."""
    emit("note", says=sentence, **fields)
    say(f"  {sentence}")


def fail(sentence: str, /, **fields: Any) -> None:
    """Report a fault; the answer still has to follow."""
    emit("fail", says=sentence, **fields)
    say(f"  FAIL: {sentence}")


def check(name: str, state: str, sentence: str, value: Any = None, **more: Any) -> None:
    """Report one check. `state` is ok, warn, fail, skip (it does not apply) or unknown (it could
    not be measured); for the last two `sentence` says why.

    `more` may hold fix, threshold, source, severity and who, where they differ from those of the
    catalogue.
    """
    emit(
        "fail" if state == "fail" else "note",
        says=sentence,
        check=name,
        status=state,
        value=value,
        **more,
    )
    say(f"  {'FAIL: ' if state == 'fail' else '' if state == 'ok' else f'{state}: '}{sentence}")


def fail_exception(sentence: str, error: BaseException, /, **fields: Any) -> None:
    """Report an exception with its frames, outermost first, and the phase that it came from."""
    frames: List[Dict[str, Any]] = [
        {
            "file": entry.filename,
            "line": entry.lineno,
            "function": entry.name,
            "text": (entry.line or "")[:200],
        }
        for entry in traceback.extract_tb(error.__traceback__)[-60:]
    ]
    message = str(error)[:4000]
    fail(
        f"{sentence} ({type(error).__name__}: {message[:300]})",
        type=type(error).__name__,
        message=message,
        frames=frames,
        phase=_state["open_phase"],
        **fields,
    )


def result(answer: str, sentence: str, at_once: bool = False) -> NoReturn:
    """Give the answer and exit with its code; `at_once` skips a clean-up that could hang."""
    emit("result", answer=answer, says=sentence)
    say(f"{answer.upper()}: {sentence}")
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    if at_once:
        os._exit(EXIT_CODES[answer])
    raise SystemExit(EXIT_CODES[answer])


def _let_others_look() -> None:
    """Allow a debugger of the same user; faulthandler prints all stacks on a fatal signal."""
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1).value, 0, 0, 0)
    with contextlib.suppress(Exception):
        if not faulthandler.is_enabled():
            faulthandler.enable(all_threads=True)


_let_others_look()
