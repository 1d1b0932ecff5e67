"""Stack dumps inside logs: those that faulthandler wrote (`dump_traceback_later`, a signal's
handler), one process after the other and mostly without a name, and those of py-spy, pystack and
gdb that somebody pasted between the lines.

Whose a dump is, is told by the line's prefix, by a rank that raised at the very same line
afterwards, or by elimination.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.frame_rows import frames_of
from trainprobe.facts.log_jobs import LogJob, LogProgress
from trainprobe.facts.log_rows import Row, rows_of, streams
from trainprobe.facts.main_threads import Thread
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.next_calls import with_next_call
from trainprobe.stacks.places import user_frame
from trainprobe.stacks.stack_text import bare_frame, parse_stack_text
from trainprobe.stacks.traceback_forms import without_dress

_BEGINS = re.compile(r"^Timeout \((?:\d{1,4}:)?\d{1,4}:\d\d(?:\.\d{1,9})?\)!")
_THREAD = re.compile(
    r"^(?:Current thread|Thread) 0x[0-9A-Fa-f]{1,16}.{0,80}\(most recent call first\)"
)
_INSIDE = re.compile(r"^(?: {0,8}File \"|  \.\.\.|  <|\s*$|(?:Current thread|Thread) 0x)")
_DEATH = re.compile(r"^(?:Fatal Python error|Windows fatal exception)")
# What a pasted dump begins with, and what its lines look like.
_PASTED = re.compile(
    r"^(?:Process \d{1,9}: |Thread (?:(?:0x)?[0-9a-fA-F]{1,20} )?\([a-z+ ]{2,40}\)"
    r"|Thread \d{1,9} \((?:Thread 0x|LWP)|Traceback for thread \d"
    r"|#0 {1,3}(?:0x[0-9a-f]{1,16} in )?\S"
    r"|=+ Rank \d)"
)
_OF_A_DUMP = re.compile(
    r"^(?:\s*$|Python v\d| {1,12}\S.{0,400} \([^()]{1,4096}\)$| {4}\((?:Python|C)\) File \""
    r"| {6,8}\S"
    r"|#\d{1,5} {1,3}\S| {4}at \S)"
)
_OF_A_CHILD = frozenset({"_bootstrap", "spawn_main", "_worker_loop"})
_LAUNCHERS = re.compile(
    r"torch/distributed/(?:run|launch|launcher/|elastic/(?!multiprocessing/errors))"
    r"|accelerate/commands/|deepspeed/launcher/|multiprocessing/spawn\.py|/bin/"
)
_PRINTED_FRAME = re.compile(r'\s{0,8}File "([^"\n]{1,4096})", line (\d{1,9}), in (.{1,400})$')
_WAITS = frozenset({"comm-wait", "gpu-wait", "store-wait", "dataloader", "child-wait", "lock"})
LEAST_FRAMES = 3
CUT_ROWS = 200  # of one rank in which a traceback that was cut off is sought
BELOW = 60  # lines below a frame: some tracebacks print the variables as well
PROCESSES_CAP = 512
WENT_ON = 2  # steps behind a dump after which it was none of a hang


@dataclass(frozen=True)
class LogStack(Fact):
    """One process's dump. `threads` hold each thread's frames, outermost first, the main
    thread's last. `place` and `seen_at` are those of its first line.
    """

    threads: tuple[tuple[Frame, ...], ...] = ()
    place: int = 0
    seen_at: str = ""
    pid: int | None = None
    native: bool = False
    alone: bool = False

    @property
    def main(self) -> tuple[Frame, ...]:
        return self.threads[-1]

    @property
    def role(self) -> str:
        """rank, loader-worker or child, by the frames at the bottom of its main thread."""
        if self.alone or any(
            frame.file.endswith("torch/multiprocessing/spawn.py") for frame in self.main
        ):
            return "rank"
        names = {
            frame.name
            for frame in self.main
            if "multiprocessing/" in frame.file or frame.name == "_worker_loop"
        } & _OF_A_CHILD
        return "loader-worker" if "_worker_loop" in names else "child" if names else "rank"


def parse_log_stacks(record: Evidence) -> list[Fact]:
    """Every dump that is not a dying process's last word."""
    found: list[Fact] = []
    for rank, rows in streams(rows_of(record)).items():
        cut = _cut_traceback(record, rank, rows)
        found += [cut] if cut is not None else []
        for dump in (*_dumps(rows), *_pasted(rows)):
            text = "\n".join(
                (
                    row.text
                    if row.text.rstrip().endswith(":") or not _THREAD.match(row.text)
                    else f"{row.text.rstrip()}:"
                )
                for row in dump
            )
            for process in parse_stack_text(text):
                threads = [
                    frames_of(thread["frames"], leaf_first=True)
                    for thread in sorted(
                        process.threads, key=lambda one: one["name"] == "MainThread"
                    )
                    if thread["frames"]
                ]
                if threads and len(found) < PROCESSES_CAP:
                    found.append(
                        LogStack(
                            (record.id,),
                            record.cell,
                            rank if process.rank is None else process.rank,
                            threads=tuple(threads),
                            place=dump[0].place,
                            seen_at=dump[0].seen_at,
                            pid=process.pid,
                            native=process.native,
                        )
                    )
    return found


def _dumps(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The lines of each dump; one begins at its head, or at the first thread where there is no
    head.
    """
    now: list[Row] = []
    dying = False
    for row in rows:
        if _BEGINS.match(row.text) or (not now and _THREAD.match(row.text)):
            if now and not dying:
                yield now
            now = [row]
            dying = dying and not _BEGINS.match(row.text)
        elif _DEATH.match(row.text):
            if now and not dying:
                yield now
            now, dying = [row], True
        elif now and _INSIDE.match(row.text):
            now.append(row)
        elif now:
            if not dying:
                yield now
            now, dying = [], False
    if now and not dying:
        yield now


def _cut_traceback(record: Evidence, rank: int | None, rows: Sequence[Row]) -> LogStack | None:
    """A traceback without head and exception, with which a log ends, where it shows a wait: what is
    left of a Ctrl-C. One with a head may be of an error.
    """
    last = rows[-CUT_ROWS:]
    if not any("File " in row.text for row in last):
        return None
    lines, notebook = without_dress([row.text for row in last])
    frames: list[Frame] = []
    texts: list[str] = []  # below the frame that comes next
    first = None
    for row, line in zip(reversed(last), reversed(lines), strict=True):
        frame = _PRINTED_FRAME.match(line)
        if frame is not None:
            deep = len(line) - len(line.lstrip())
            if len(texts) > 1 and not all(_deeper(text, deep) for text in texts):
                break
            text = next((text for text in reversed(texts) if text.strip()), "")
            text = text.strip().removeprefix("line: ")
            frames.append(Frame(frame[3], frame[1].replace("\\", "/"), int(frame[2]), text=text))
            texts, first = [], row
        elif "Traceback" in line or len(texts) > BELOW or not (line.strip() or notebook):
            break
        else:
            texts.append(line)
    if first is None or len(frames) < (LEAST_FRAMES - notebook):
        return None
    header = next((row for row in reversed(last) if row.place < first.place), None)
    if header is not None and "Traceback (most recent" in header.text:
        return None
    outermost = with_next_call(tuple(reversed(frames)))
    if (place := classify(outermost)).leaf not in _WAITS and place.op != "extension-build":
        return None
    return LogStack(
        (record.id,),
        record.cell,
        rank,
        threads=(outermost,),
        place=first.place,
        seen_at=first.seen_at,
    )


def _deeper(text: str, deep: int) -> bool:
    """Whether a line is empty, or stands further to the right than the frame that it belongs to."""
    return not text.strip() or len(text) - len(text.lstrip()) > deep


def _pasted(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The lines of each pasted dump of another tool, with the one above it, which may say whose it
    is. Two frames without any thread's line are one too.
    """
    now: list[Row] = []
    for number, row in enumerate(rows):
        text = row.text.rstrip()
        bare = bare_frame(text)
        if now and (bare or _PASTED.match(text) or _OF_A_DUMP.match(text)):
            now.append(row)
            continue
        if now:
            yield now
            now = []
        if _PASTED.match(text) or (
            bare and number + 1 < len(rows) and bare_frame(rows[number + 1].text.rstrip())
        ):
            now = [*rows[max(number - 1, 0) : number], row]
    if now:
        yield now


def join_log_stacks(facts: list[Fact]) -> list[Fact]:
    """Give each dump its rank where that can be told, and make the threads of it that stacks of any
    other source make. Dumps that steps followed are dropped.

    Where Ctrl-C is all that was raised, its tracebacks show as well where the processes stood.
    """
    stacks = [fact for fact in facts if isinstance(fact, LogStack)] + _interrupted(facts)
    if not stacks:
        return facts
    rest = [fact for fact in facts if not isinstance(fact, LogStack)]
    made: list[Fact] = []
    for cell in dict.fromkeys(stack.cell for stack in stacks):
        progress = [fact for fact in rest if isinstance(fact, LogProgress) and fact.cell == cell]
        still = [stack for stack in stacks if stack.cell == cell and not _went_on(stack, progress)]
        still = [replace(stack, alone=len(still) == 1) for stack in still]
        for number, stack in enumerate(
            _with_ranks(still, [fact for fact in rest if fact.cell == cell]), start=1
        ):
            made += [stack, *_threads(stack, stack.pid or -number)]
    return [*rest, *made]


def _interrupted(facts: Sequence[Fact]) -> list[LogStack]:
    """The tracebacks of KeyboardInterrupt of attempts in which nothing else was raised; a
    launcher's own is none of a rank.
    """
    found: list[LogStack] = []
    logged = {fact.cell for fact in facts if isinstance(fact, LogJob)}
    raised = [
        fact
        for fact in facts
        if isinstance(fact, RankException)
        and fact.cell in logged
        and fact.place is not None
        and not fact.handled
    ]
    for cell in dict.fromkeys(fact.cell for fact in raised):
        mine = [
            fact
            for fact in raised
            if fact.cell == cell and not any(_LAUNCHERS.search(frame.file) for frame in fact.frames)
        ]
        if all(fact.type == "KeyboardInterrupt" for fact in mine):
            found += [
                LogStack(
                    fact.evidence,
                    cell,
                    fact.rank,
                    threads=(with_next_call(fact.frames),),
                    place=fact.place or 0,
                    seen_at=fact.seen_at,
                )
                for fact in mine[:PROCESSES_CAP]
                if fact.frames
            ]
    return found


def _went_on(stack: LogStack, progress: Sequence[LogProgress]) -> bool:
    file = stack.seen_at.rpartition(":")[0]
    after = {
        step
        for one in progress
        if one.seen_at.rpartition(":")[0] == file
        for place, step in one.marks
        if place > stack.place
    }
    return len(after) >= WENT_ON


def _with_ranks(stacks: Sequence[LogStack], facts: Sequence[Fact]) -> list[LogStack]:
    raised = {
        fact.rank: _at(fact.frames)
        for fact in facts
        if isinstance(fact, RankException)
        and fact.rank is not None
        and fact.echo
        and not fact.handled
    }
    world = _world(facts)
    taken = {stack.rank for stack in stacks if stack.rank is not None}
    done = list(stacks)
    for number, stack in enumerate(done):
        here = _at(stack.main)
        rank = next(
            (
                one
                for one, place in sorted(raised.items())
                if place == here and here is not None and one not in taken
            ),
            None,
        )
        if stack.rank is None and stack.role == "rank" and rank is not None:
            done[number] = replace(stack, rank=rank)
            taken.add(rank)
    nameless = [
        number for number, stack in enumerate(done) if stack.rank is None and stack.role == "rank"
    ]
    # where nothing names a rank, one process is the job
    left = [rank for rank in range(max(world, 1)) if rank not in taken]
    if len(nameless) == len(left) == 1:
        done[nameless[0]] = replace(done[nameless[0]], rank=left[0])
    return done


def _at(frames: Sequence[Frame]) -> tuple[str, int] | None:
    frame = user_frame(frames)
    return (frame.file.rsplit("/", 1)[-1], frame.line) if frame is not None else None


def _world(facts: Sequence[Fact]) -> int:
    told = [
        fact.rank + 1
        for fact in facts
        if isinstance(fact, (RankException, RankEnding)) and fact.rank is not None
    ]
    for fact in facts:
        if isinstance(fact, LogJob):
            told += [fact.world_size or 0, *(rank + 1 for rank in fact.ranks[-1:])]
    return min(max(told, default=0), PROCESSES_CAP)


def _threads(stack: LogStack, pid: int) -> list[Thread]:
    """`pid` keeps the processes apart: a dump does not always tell its own."""
    last = len(stack.threads) - 1
    return [
        Thread(
            stack.evidence,
            stack.cell,
            stack.rank,
            pid=pid,
            role=stack.role,
            os_thread_id=number,
            main=number == last,
            frames=frames,
            native=stack.native,
        )
        for number, frames in enumerate(stack.threads)
    ]
