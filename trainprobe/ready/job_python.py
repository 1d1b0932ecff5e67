"""Whether the Python of the job starts on this node, asked before it is given a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainprobe.system.run import run

CHECK = "py.start"
OLDEST = (3, 9)
START_S = 10.0  # without site-packages; a cold network disk takes a second or two
# Plain enough for any Python.
_ASK = "import sys; sys.stdout.write('%d.%d.%d' % sys.version_info[:3])"


@dataclass(frozen=True)
class JobPython:
    """The state of the check: `unknown` for a Python that may be what the job needs and cannot run
    the check programs. `version` is empty where it told none.
    """

    state: Literal["ok", "fail", "unknown"]
    says: str
    version: str = ""


def ask_python(path: str, timeout_s: float = START_S) -> JobPython:
    """Start it once, without its packages. Never raises."""
    try:
        ran = run((path, "-I", "-S", "-c", _ASK), timeout_s=timeout_s, kill_s=0.5, cwd="/")
    except OSError as error:  # no place for its output
        return JobPython("unknown", f"{path} was not tried: {error.strerror or error}.")
    version = ran.stdout.decode("ascii", "replace").strip()
    numbers = version.split(".")
    if ran.ended.how == "exited" and ran.ended.code == 0 and all(map(str.isdecimal, numbers)):
        if tuple(map(int, numbers[:2])) >= OLDEST:
            return JobPython("ok", f"{path} starts, and is Python {version}.", version)
        needed = ".".join(map(str, OLDEST))
        says = f"{path} is Python {version}; the check programs need {needed} or newer."
        return JobPython("unknown", says, version)
    if ran.ended.how == "not_started":
        return JobPython("fail", f"{ran.ended.reason.rstrip('.')}.")
    if ran.ended.how == "timed_out":
        return JobPython("fail", f"{path} did not start within {timeout_s:.0f} s.")
    said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    code = ran.ended.code if ran.ended.code is not None else f"signal {ran.ended.signal}"
    why = said[0][:300].rstrip(".") if said else f"it ended with {code}"
    return JobPython("fail", f"{path} cannot be started: {why}.")
