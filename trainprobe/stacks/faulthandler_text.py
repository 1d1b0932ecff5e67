"""What a dying process prints about itself: faulthandler's stacks and C++'s `terminate called
…`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainprobe.stacks.frames import Frame

MESSAGE_CAP = 2000
FRAMES_CAP = 400
# Names in CPython's Modules/faulthandler.c.
SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating-point exception": "SIGFPE",
    "Floating point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
    "Bad system call": "SIGSYS",
}
_FATAL = re.compile(r"Fatal Python error: ([^\n]{1,400})")
_THREAD = re.compile(
    r"(Current thread|Thread) 0x([0-9a-fA-F]{1,16})(?: \[(.{0,64}?)\])? \(most recent call first\):"
)
_FRAME = re.compile(r'  File "([^"\n]{1,4096})", line (\d{1,9}|\?\?\?) in (.{1,400})$')
_BINARY = re.compile(r'  Binary file "([^"\n]{1,4096})"(?:, at (\S{1,300}))?')
_MODULES = re.compile(r"Extension modules: (.{0,20000}?)(?: \(total: \d+\))?$")
_THROWN = re.compile(r"terminate called after throwing an instance of '(.{1,400}?)'")
# abseil's handler, glog's, Open MPI's, UCX's, c10's, and the kernel's words that a shell repeats.
_HANDLED = re.compile(
    r"\*\*\* (SIG[A-Z]{3,5}) (?:\([^)]{0,40}\) )?received (?:at time|by PID)|Caught signal \d{1,2}"
    r" \((Segmentation fault|Bus error|Aborted|Illegal instruction|Floating point exception)"
    r"|^\W{0,3}(?:\[[\w.:-]{1,80}\] )?Signal: (Segmentation fault|Bus error|Aborted|Illegal"
    r" instruction|Floating point exception) \(\d{1,2}\)|!{3,} (Segfault) encountered !{3,}"
)
_HANDLED_NAMES = {**SIGNALS, "Segfault": "SIGSEGV"}
_NO_LIBRARY = re.compile(
    r"/(?:ld-linux[^/]*|libc|libpthread|libpython[^/]*)[.-][^/]*$|/python[\d.]*$"
)


@dataclass
class ThreadDump:
    """One thread, frames outermost first."""

    ident: str
    name: str = ""
    current: bool = False
    frames: list[Frame] = field(default_factory=list)


@dataclass
class Dump:
    """One death. `signal_name` is empty for an error of the interpreter itself; `begins` is the
    number of its first line.
    """

    signal_name: str = ""
    message: str = ""
    exception: str = ""
    without_exception: bool = False
    from_faulthandler: bool = False
    threads: list[ThreadDump] = field(default_factory=list)
    extension_modules: tuple[str, ...] = ()
    library: str = ""
    begins: int = 0

    def current(self) -> ThreadDump | None:
        """The thread that got the signal; where none is marked (a signal on a thread without
        Python), the main one.
        """
        return next((thread for thread in self.threads if thread.current), None) or self.main()

    def main(self) -> ThreadDump | None:
        """CPython lists threads newest first, so the main thread is the last one."""
        return self.threads[-1] if self.threads else None


def parse_deaths(lines: Sequence[str]) -> list[Dump]:
    """Return the deaths told of in the lines of one rank, in order. `terminate called …` and the
    stack after it are one.
    """
    deaths: list[Dump] = []
    open_death: Dump | None = None
    for place, line in enumerate(lines):
        if "terminate called" in line:
            open_death = _terminated(lines, place)
            deaths.append(open_death)
        elif "Fatal Python error: " in line:
            if open_death is None or open_death.from_faulthandler:
                open_death = Dump(begins=place)
                deaths.append(open_death)
            _fatal(line, open_death)
        elif ("ignal" in line or "SIG" in line or "Segfault" in line) and (
            handled := _HANDLED.search(line)
        ) is not None:
            if open_death is None:
                word = next(group for group in handled.groups() if group)
                open_death = Dump(
                    _HANDLED_NAMES.get(word, word), line.strip()[:MESSAGE_CAP], begins=place
                )
                deaths.append(open_death)
        elif open_death is not None:
            _stack_line(line, open_death)
    for death in deaths:
        for thread in death.threads:
            thread.frames.reverse()
    return deaths


def _terminated(lines: Sequence[str], place: int) -> Dump:
    death = Dump(signal_name="SIGABRT", begins=place)
    thrown = _THROWN.search(lines[place])
    death.exception = thrown.group(1) if thrown else ""
    death.without_exception = "without an active exception" in lines[place]
    words = [] if thrown else [lines[place][lines[place].index("terminate called") :].strip()]
    for line in lines[place + 1 : place + 40]:
        if (
            "Fatal Python error" in line
            or "Traceback (most" in line
            or (not line.strip() and words)
        ):
            break
        if line.lstrip().startswith("what():"):
            words.append(line.split("what():", 1)[1].strip())
        elif words and thrown:
            words.append(line.rstrip())
        else:
            break
    death.message = "\n".join(words).strip()[:MESSAGE_CAP]
    return death


def _fatal(line: str, death: Dump) -> None:
    match = _FATAL.search(line)
    text = match.group(1).strip() if match else ""
    death.from_faulthandler = True
    name = SIGNALS.get(text)
    if name is not None:
        death.signal_name = death.signal_name or name
        death.message = death.message or text
    else:
        death.signal_name = death.signal_name or "SIGABRT"
        death.message = death.message or text


def _stack_line(line: str, death: Dump) -> None:
    thread = _THREAD.search(line)
    if thread is not None:
        state, ident, name = thread.groups()
        if len(death.threads) < 256:
            current = state == "Current thread"
            death.threads.append(ThreadDump(ident, (name or "").strip(), current))
        return
    frame = _FRAME.match(line)
    if frame is not None and death.threads:
        number = int(frame.group(2)) if frame.group(2).isdecimal() else 0
        if len(death.threads[-1].frames) < FRAMES_CAP:
            death.threads[-1].frames.append(Frame(frame.group(3), frame.group(1), number))
        return
    binary = _BINARY.match(line)
    if binary is not None and not death.library and not _NO_LIBRARY.search(binary.group(1)):
        death.library = binary.group(1)
    modules = _MODULES.match(line)
    if modules is not None:
        names = (name.strip() for name in modules.group(1).split(","))
        death.extension_modules = tuple(filter(None, names))[:512]
