"""Stack dumps as people save them: the text of `py-spy dump`, faulthandler, pystack or gdb,
recognised by its form.

The result has the shape of a `stacks.python` or `stacks.native` record: threads with frames, leaf
first.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import Any

LINE_CAP = 5000
LINES_CAP = 1_000_000
PROCESSES_CAP = 4096
THREADS_CAP = 512
FRAMES_CAP = 400
_RANK_SECTION = re.compile(r"^=+ Rank (\d{1,7})\b")  # torch.distributed.debug's periodic dumps
_PY_SPY_PROCESS = re.compile(r"^Process (\d{1,9}): ?(.{0,1000})")
_PY_SPY_THREAD = re.compile(
    r'^Thread (?:(0x[0-9A-Fa-f]{1,16}|\d{1,20}) )?\(([a-z+ ]{0,40})\)(?:: "(.{0,200})")?'
)
_PY_SPY_FRAME = re.compile(r"^ {2,8}(\S.{0,400}?) \(([^()]{1,4096}?)(?::(\d{1,9}))?\)$")
_TIMER = re.compile(
    r"^Timeout \((\d{1,4}):(\d{2}):(\d{2}(?:\.\d{1,6})?)\)!"
)  # of faulthandler.dump_traceback_later
_FAULT_THREAD = re.compile(
    r"^(Current thread|Thread) (0x[0-9A-Fa-f]{1,16})(?: \[(.{0,64}?)\])? \(most recent call"
    r" first\):"
)
_FAULT_FRAME = re.compile(r'^ {0,8}File "([^"\n]{1,4096})", line (\d{1,9}|\?\?\?) in (.{1,400})$')
_PYSTACK_THREAD = re.compile(
    r"^Traceback for thread (\d{1,9})(?: \((.{0,64}?)\))? \[(.{0,60}?)\] \(most recent call last\):"
)
_PYSTACK_FRAME = re.compile(
    r'^ {4}\((Python|C)\) File "([^"\n]{1,4096})", line (\d{1,9}), in (.{1,400})$'
)
_GDB_THREAD = re.compile(
    r'^Thread \d{1,9} \((?:Thread 0x[0-9a-f]{1,16} )?\(?LWP (\d{1,9})\)?\)?(?: "(.{0,64}?)")?'
)
_GDB_FRAME = re.compile(
    r"^#\d{1,5}\s+(?:0x[0-9a-f]{1,16} in )?(\S.{0,4000}?)(?: from (\S{1,4096})| at"
    r" (\S{1,4096}?):(\d{1,9}))?$"
)
_GDB_LEAF = re.compile(r"^#0\s+(?:0x[0-9a-f]{1,16} in )?\S.{0,4000} \(")
# Frames that people copied out of py-spy's text without the line that names their thread, and the
# line that says whose they are.
_BARE_FRAME = re.compile(
    r"^\s{0,24}(?:(?:[-*>•]|\d{1,3}[.:)]|#\d{1,3}:?|at) {1,3})?([A-Za-z_<][\w.<>]{0,300})"
    r" {1,40}\(([^()\s:]{1,4000}\.py|<[\w .-]{1,100}>):(\d{1,9})\)$"
)
_LEFT_OUT = re.compile(r"^\s{0,24}(?:\.{2,3}|…|\[\.{3}\])$")
_OWNER = re.compile(
    r"(?i)(?<![a-z])(?:global |local )?(?:rank|tp|dp|pp|gpu)[ _:=#-]{0,2}(\d{1,6})\b"
)
_OWNER_CAP = 100
# Threads begin in threading.py too, and processes in none of these.
_WAITED_IN = frozenset("threading.py queue.py selectors.py socket.py ssl.py".split())
_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}m")
# What the lines above begin with, or a colour before it: most lines of a training log are none of
# them. People paste without the blanks before `File` and without the line that names the thread.
_BEGINNINGS = frozenset("=PTCF #\x1b")
_NAMELESS = "0"
# py-spy's text gives paths relative to sys.path: these first parts are installed libraries, not the
# user's code.
_LIBRARIES = frozenset(
    "accelerate aiohttp datasets deepspeed fairseq filelock fsspec httpcore httpx huggingface_hub"
    " lightning litdata megatron monai numpy pandas polars prefetch_generator pyarrow"
    " pytorch_lightning ray requests s3fs safetensors torch_xla torchvision tqdm transformers"
    " triton urllib3 wandb webdataset".split()
)


@dataclass
class ProcessStack:
    """One process in one look. `pid` and `rank` are None where the text does not tell; `native`
    where the frames are C's.

    `timer_s` is how long faulthandler waited before it wrote this, where a timer made it write.
    """

    form: str
    pid: int | None = None
    rank: int | None = None
    cmdline: str = ""
    native: bool = False
    threads: list[dict[str, Any]] = field(default_factory=list)
    timer_s: float | None = None

    @property
    def is_worker(self) -> bool:
        """A DataLoader's worker, which such a dump lists beside the rank that it serves."""
        return any(
            frame["name"].endswith("_worker_loop")
            for thread in self.threads
            for frame in thread["frames"]
        )


def parse_stack_text(text: str) -> list[ProcessStack]:
    """Return the processes that the text shows, in order, without those that have no frame; empty
    where it is no stack dump at all.

    One pass over at most a million lines, of each the first 5000 characters; every pattern runs in
    time linear in its line.
    """
    reader = _Reader()
    for line in _with_owners(text.splitlines()[:LINES_CAP]):
        if line[:1] in _BEGINNINGS:
            reader.line(_ANSI.sub("", line[: 2 * LINE_CAP])[:LINE_CAP].rstrip())
        elif reader.found and line.strip():
            reader.found[-1].timer_s = None  # it went on to say something
        if len(reader.found) > PROCESSES_CAP:
            break
    shown = (each for each in reader.found if any(thread["frames"] for thread in each.threads))
    return [_finished(process) for process in shown]


def bare_frame(line: str) -> bool:
    """Is it a frame as py-spy writes it, however deep it is indented?"""
    return line.endswith(")") and _BARE_FRAME.match(line[:LINE_CAP]) is not None


def _is_leaf_last(paths: list[str]) -> bool:
    """Whether frames stand outermost first, as some tools write them: the last one is of the module
    in which threads wait, and the first is not of one in which they begin.
    """
    first, last = (path.replace("\\", "/").rpartition("/")[2] for path in (paths[0], paths[-1]))
    return last in _WAITED_IN and first not in _WAITED_IN


def _with_owners(lines: list[str]) -> list[str]:
    """The lines, where runs of at least two frames without any thread's line above them get one, as
    py-spy would have written it; with a section's where the line above a process, or its command,
    names a rank.

    One place again and again is no stack.
    """
    found: list[str] = []
    run: list[str] = []
    owned = False  # below a line that names a thread, up to the next gap

    def name_rank(line: str) -> None:
        if found and _RANK_SECTION.match(found[-1]):
            return
        named = _OWNER.search(line) if len(line) < _OWNER_CAP else None
        if named is not None:
            found.append(f"=== Rank {named.group(1)}")

    def flush() -> None:
        frames = [line for line in run if not _LEFT_OUT.match(line)]
        if len({line.strip() for line in frames}) < 2:
            found.extend(run)
        else:
            name_rank(next((line for line in reversed(found) if line.strip()), ""))
            found.append("Thread (idle)")
            rows = [_BARE_FRAME.match(line).groups() for line in frames]  # type: ignore[union-attr]
            if _is_leaf_last([path for _, path, _ in rows]):
                rows.reverse()
            found.extend(f"    {name} ({path}:{number})" for name, path, number in rows)
        run.clear()

    for line in lines:
        if not owned and (bare_frame(line) or (run and _LEFT_OUT.match(line))):
            run.append(line)
            continue
        flush()
        if line.startswith("Process ") and (process := _PY_SPY_PROCESS.match(line)):
            name_rank(process.group(2))
            name_rank(next((line for line in reversed(found) if line.strip()), ""))
        owned = bool(line.strip()) and (owned or line.startswith(("Thread ", "\x1b", "Process ")))
        found.append(line)
    flush()
    return found


class _Reader:
    def __init__(self) -> None:
        self.found: list[ProcessStack] = []
        self.rank: int | None = None
        self.threads_of_look: set[str] = set()
        self.timer_s: float | None = None

    def line(self, line: str) -> None:
        if section := _RANK_SECTION.match(line):
            self.rank = int(section.group(1))
            self._begin("")
        elif timer := _TIMER.match(line):
            hours, minutes, seconds = timer.groups()
            self.timer_s = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
        elif process := _PY_SPY_PROCESS.match(line):
            self._begin("py-spy", int(process.group(1)), process.group(2))
        elif thread := _FAULT_THREAD.match(line):
            current = thread.group(1) == "Current thread"
            if current or thread.group(2) in self.threads_of_look:  # the same thread: another look
                self.threads_of_look.clear()
                if current or self._now("faulthandler").threads:
                    self._begin("faulthandler")
            self.threads_of_look.add(thread.group(2))
            self._thread("faulthandler", thread.group(2), thread.group(3) or "", active=current)
            self.found[-1].timer_s = self.timer_s
        elif thread := _PY_SPY_THREAD.match(line):
            ident, state, name = thread.groups()
            ident = ident or _NAMELESS
            gil, active = (flag in state.split("+") for flag in ("gil", "active"))
            self._thread("py-spy", ident, name or "", gil=gil, active=active)
        elif thread := _PYSTACK_THREAD.match(line):
            ident, name, state = thread.groups()
            self._thread("pystack", ident, name or "", gil="Has the GIL" in state)
        elif thread := _GDB_THREAD.match(line):
            self._thread("gdb", thread.group(1), thread.group(2) or "")
        elif self.timer_s is not None and not self.found and _FAULT_FRAME.match(line):
            self._thread("faulthandler", _NAMELESS, "", active=True)
            self.found[-1].timer_s = self.timer_s
            self._frame(self.found[-1], line)
        elif _GDB_LEAF.match(line) and not (self.found and self.found[-1].form == "gdb"):
            self._thread("gdb", _NAMELESS, "")
            self._frame(self.found[-1], line)
        elif self.found and self.found[-1].threads:
            self._frame(self.found[-1], line)

    def _begin(self, form: str, pid: int | None = None, cmdline: str = "") -> None:
        self.found.append(ProcessStack(form, pid, self.rank, cmdline))

    def _now(self, form: str) -> ProcessStack:
        if not self.found or (self.found[-1].form not in ("", form)):
            self._begin(form)
        self.found[-1].form = form
        return self.found[-1]

    def _thread(
        self, form: str, ident: str, name: str, *, gil: bool = False, active: bool = False
    ) -> None:
        process = self._now(form)
        process.native = form == "gdb"
        if len(process.threads) < THREADS_CAP:
            number = int(ident, 16) if ident.startswith("0x") else int(ident)
            row: dict[str, Any] = {
                "thread_id": number % 2**62,
                "os_thread_id": None if ident.startswith("0x") or not number else number,
                "name": name,
                "active": active,
                "owns_gil": gil,
                "frames": [],
            }
            process.threads.append(row)

    def _frame(self, process: ProcessStack, line: str) -> None:
        frames = process.threads[-1]["frames"]
        if len(frames) >= FRAMES_CAP:
            return
        if process.form == "py-spy" and (frame := _PY_SPY_FRAME.match(line)):
            name, path, number = frame.groups()
            frames.append(_row(name, _whole_path(path, name), number))
        elif process.form == "faulthandler" and (frame := _FAULT_FRAME.match(line)):
            frames.append(_row(frame.group(3), frame.group(1), frame.group(2)))
        elif process.form == "pystack" and (frame := _PYSTACK_FRAME.match(line)):
            frames.append(_row(frame.group(4), frame.group(2), frame.group(3)))
        elif process.form == "gdb" and (frame := _GDB_FRAME.match(line)):
            # The arguments go, those of the signature and those of the call; in C++ a name may hold
            # a bracket of its own.
            name = frame.group(1).replace("(anonymous namespace)", "<unnamed>").partition("(")[0]
            frames.append(_row(name[:400], frame.group(2) or frame.group(3) or "", frame.group(4)))


def _row(name: str, file: str, line: str | None) -> dict[str, Any]:
    return {
        "name": name.strip(),
        "file": file,
        "line": int(line) if line and line.isdecimal() else 0,
    }


def _whole_path(short: str, function: str) -> str:
    """Complete a short path of py-spy's so that it shows whose code it is. A user's program may
    have the name of a standard module.
    """
    if short.startswith(("/", "<")):
        return short
    first = short.split("/", maxsplit=1)[0].removesuffix(".py")
    if first in sys.stdlib_module_names and function != "<module>":
        return f"/lib/python3/{short}"
    return f"/site-packages/{short}" if "/" in short and first in _LIBRARIES else short


def _finished(process: ProcessStack) -> ProcessStack:
    """Put frames leaf first and name the main thread: faulthandler and gdb list it last, pystack
    first.
    """
    threads = process.threads
    if process.form == "pystack":
        for thread in threads:
            thread["frames"].reverse()
    main = next((thread for thread in threads if thread["name"] == "MainThread"), None)
    if main is None:
        numbered = [thread for thread in threads if thread["os_thread_id"] is not None]
        of_pid = [thread for thread in numbered if thread["os_thread_id"] == process.pid]
        lowest = sorted(numbered, key=lambda thread: thread["os_thread_id"])
        main = (of_pid or lowest or threads[-1:])[0]
        main["name"] = "MainThread"
    if process.pid is None:
        process.pid = main["os_thread_id"]
    return process
