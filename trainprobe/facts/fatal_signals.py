"""What a dying process said of the signal that ended it: faulthandler's text, `terminate called after …`."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame


@dataclass(frozen=True)
class FatalSignal(Fact):
    """`signal_name` is SIGSEGV, SIGABRT, SIGBUS, SIGFPE or SIGILL. `message` is what C++ said (`what()`) or faulthandler's line.

    `exception` is the C++ type after "terminate called after throwing an instance of", empty otherwise.
    `frames` are the current thread's Python frames, outermost first. `echo` is as in RankException.
    """

    signal_name: str = ""
    frames: tuple[Frame, ...] = ()
    from_faulthandler: bool = False
    message: str = ""
    exception: str = ""
    echo: bool = False
    echo_of: str = ""
    extension_modules: tuple[str, ...] = ()
