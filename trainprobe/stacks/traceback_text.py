"""Python tracebacks in printed text: with or without rank prefixes, chained, grouped, or brought
over from a DataLoader worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from trainprobe.stacks.frames import Frame

MESSAGE_CAP = 2000
FRAMES_CAP = 400
_HEADER = "Traceback (most recent call last):"
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
# A page that takes `<module>` for a tag of its own shows nothing behind `in`.
_FRAME = re.compile(r'\s*File "([^"\n]{1,4096})", line (\d{1,9})(?:, in(?: (.{1,400})| ?))?$')
_RAISED = re.compile(r"([A-Za-z_][\w.<>]{0,200})(?::[ ]?(.*))?$")
_ERROR_NAME = re.compile(r"(?:Error|Exception|Interrupt|Exit|NotMet|Timeout|Died)$")
_THREAD = re.compile(
    r"Exception in thread (.{1,200}?)(?: \(most likely raised during interpreter shutdown\))?:$"
)
_PROCESS = re.compile(r"Process (\S.{0,200}):$")  # multiprocessing/process.py, _bootstrap
_CAUGHT = re.compile(
    r"Caught ([\w.]{1,200}) in (DataLoader worker process|replica|pin memory"
    r" thread|torch_xla)\s?(\d{1,6})?"
)
# What begins a line that is no longer part of an exception's message.
_NEXT_LOG = re.compile(
    r"Fatal Python error|terminate called|Extension modules:|[IWEF]\d{4} \d\d:|\[?\d{4}-\d\d-\d\d["
    r" T]\d\d:\d\d|Process [\w-]{1,60}:$|Exception (?:in|ignored)|\[[IWEF]\d{3,4}"
    r"|\[[IWE] \w|\[?(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL)\b[\]:"
    r" ]|[\w.]{1,120}(?:: \[| - )(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL)\b"
    r"|(?:srun|slurmstepd|wandb|ninja|mpirun|Killing subprocess)\b|\[?(?:rank|default)\d{1,7}\]:"
    r"|\S{1,80}:\d{1,9}:\d{1,9} \[\d{1,4}\] |(?:[\w./-]{1,80}:\d{1,6} )?NCCL (?:WARN|INFO)"
    r" |\s{0,8}\d{1,3}%\||\[?\d\d:\d\d:\d\d|(?i:epoch|step|iter(?:ation)?|train(?:ing)?)["
    r" :=\[]{1,3}\d"
)
# After a blank line only these go on with the message; Python and torch write nothing else there.
_GOES_ON = re.compile(
    r"\s|Exception raised from|frame #|Original Traceback|Last error|CUDA kernel errors|For"
    r" debugging|Compile with|Device-side|Parameter|\"\"\"|-- Process|[=*-]{5}"
    r"|[a-z(]|Note|Hint|Details|If you|To |In addition|Please|You |See |C\+\+ |Root"
    r" Cause|Failures|Other Failures|The following|Here "
)


@dataclass(frozen=True)
class Raised:
    """One exception of a chain. `frames` are outermost first."""

    type: str
    message: str = ""
    frames: tuple[Frame, ...] = ()
    worker: int | None = None
    wrapper: str = ""


@dataclass(frozen=True)
class Printed:
    """A printed traceback: its chain in time order. `begins` is the number of its first line,
    `ends` that of the last type and message.

    `ignored` says that Python said it ignored it, `process` which process of multiprocessing ended
    with it.
    """

    chain: tuple[Raised, ...]
    handled_one: bool = False
    thread: str = "MainThread"
    ignored: bool = False
    begins: int = 0
    group: bool = False
    ends: int = 0
    process: str = ""


# The line at which the innermost frame stands names the exception, and how its text begins.
_ABOUT_TO = re.compile(
    r"raise (?P<name>[A-Za-z_][\w.]{0,80}(?:Error|Exception|Exit|Died))"
    r"\b(?:\((?:[frb]{0,2}[\"']{1,3})?(?P<said>[^\n]{0,400}?)(?:[\"']{1,3}\)?)?)?$"
)
# Of a traceback that ends at a frame without its source line; fewer tell too little.
LEAST_FRAMES = 3
NAME_CUT_OFF = "an exception whose name is cut off"  # the type of one inside which the text ends


@dataclass
class _Block:
    frames: list[Frame] = field(default_factory=list)
    type: str = ""
    message: list[str] = field(default_factory=list)
    begins: int = 0
    ends: int = 0
    group: bool = False
    member: bool = False


def parse_tracebacks(lines: Sequence[str], depth: int = 0) -> list[Printed]:
    """Return every traceback in the lines of one rank, in order. Text that is none is skipped."""
    found: list[Printed] = []
    chain: list[Raised] = []
    joined_by = ""
    for before, block, after in _blocks(lines, cut_off=not depth):
        raised = unwrap(
            Raised(block.type, "\n".join(block.message).strip(), tuple(block.frames)), depth
        )
        if block.member and found and found[-1].group:
            if len(found[-1].chain) == 1:  # what the group holds is what happened
                found[-1] = replace(found[-1], chain=(raised, *found[-1].chain))
            continue
        chain = [*chain, raised] if joined_by else [raised]
        thread, process = _THREAD.match(before), _PROCESS.match(before)
        earlier = found[-1] if joined_by and found else None
        printed = Printed(
            tuple(chain),
            handled_one=_CONTEXT in (after, joined_by),
            thread=thread.group(1) if thread else earlier.thread if earlier else "MainThread",
            ignored=before.startswith(("Exception ignored", "Error in atexit"))
            or (earlier is not None and earlier.ignored),
            begins=block.begins,
            group=block.group,
            ends=block.ends,
            process=process.group(1) if process else earlier.process if earlier else "",
        )
        if earlier is not None:
            found[-1] = replace(printed, begins=earlier.begins)
        else:
            found.append(printed)
        joined_by = after
    return found


def unwrap(raised: Raised, depth: int = 0) -> Raised:
    """A DataLoader worker's exception is raised again in the parent with the worker's traceback
    as its message: return the worker's own.
    """
    caught = _CAUGHT.match(raised.message)
    if caught is None or depth > 3:
        return replace(raised, message=raised.message[:MESSAGE_CAP])
    inner = parse_tracebacks(
        [line.removeprefix("Original ") for line in raised.message.splitlines()], depth + 1
    )
    name, place, number = caught.groups()
    worker = int(number) if number and place.startswith("DataLoader") else None
    own = inner[-1].chain[-1] if inner else Raised(name, raised.message[:MESSAGE_CAP])
    frames = own.frames or raised.frames
    return Raised(own.type, own.message, frames, worker, caught.group(0).strip())


def _blocks(lines: Sequence[str], *, cut_off: bool) -> Iterator[tuple[str, _Block, str]]:
    """Yield (the line before, the block, the sentence that joins it to the next one or "") for
    each traceback; with `cut_off` also for one inside which the text ends.
    """
    place = 0
    while place < len(lines):
        headless = _FRAME.match(lines[place]) is not None
        if not headless and not _is_header(lines[place]):
            place += 1
            continue
        before = lines[place - 1].strip() if place else ""
        block = _Block(
            begins=place,
            group="Exception Group" in lines[place],
            member=lines[place].lstrip().startswith("|"),
        )
        place = _read_frames(lines, place if headless else place + 1, block)
        if cut_off and not headless and block.frames and not block.type and place == len(lines):
            last = max(at for at in range(place) if lines[at].strip())
            source = block.frames[-1].text
            told = len(block.frames) >= LEAST_FRAMES and _FRAME.match(lines[last])
            own = lines[last].strip()[:400] == source if source else told
            if own or (source and lines[last][:1].isspace()):
                about_to = _ABOUT_TO.match(source)
                block.type = about_to["name"] if about_to else NAME_CUT_OFF
                block.ends = last
                block.message.append((about_to["said"] or "") if about_to else "")
        if not block.type or (headless and not _ERROR_NAME.search(block.type)):
            continue
        block.frames = _once(block.frames)
        place, joined_by = _read_message(lines, place, block)
        yield before, block, joined_by


def _once(frames: list[Frame]) -> list[Frame]:
    """Drop repetitions: if several ranks print the same traceback into one file at once, every
    frame is there several times.
    """
    for times in (8, 4, 2, 3):
        if len(frames) < 2 * times or len(frames) % times:
            continue
        if all(len(set(frames[at : at + times])) == 1 for at in range(0, len(frames), times)):
            kept = frames[::times]
            return kept if len(set(kept)) > 1 else frames
    return frames


def _goes_on(lines: Sequence[str], place: int) -> bool:
    after = next((line for line in lines[place : place + 3] if line.strip()), "")
    return bool(_GOES_ON.match(after)) or after.strip() in (_CAUSE, _CONTEXT)


def _is_header(line: str) -> bool:
    return line.endswith(_HEADER) and _bare(line).removeprefix("Exception Group ") == _HEADER


def _bare(line: str) -> str:
    """Without the bars that Python draws around the members of an exception group."""
    return line.lstrip(" |+-").rstrip() if line.lstrip().startswith(("|", "+")) else line.strip()


def _read_frames(lines: Sequence[str], place: int, block: _Block) -> int:
    strangers = 0
    bare = False
    while place < len(lines) and strangers < 6:
        line = lines[place]
        if _is_header(line):
            return place
        grouped = line.lstrip().startswith(("|", "+"))
        content = line.lstrip(" ")[1:].removeprefix(" ") if grouped else line
        frame = _FRAME.match(content)
        if frame is not None:
            bare = not content[:1].isspace()  # then its source line has lost its blanks as well
            if len(block.frames) < FRAMES_CAP:
                file, number, function = frame.groups()
                block.frames.append(
                    Frame(function or "<module>", file.replace("\\", "/"), int(number))
                )
        elif content[:1].isspace() or not content or (bare and _is_source(content, block)):
            bare = False
            text = content.strip()
            marks = text.startswith(("^", "~", "[Previous line"))
            if text and block.frames and not block.frames[-1].text and not marks:
                block.frames[-1] = replace(block.frames[-1], text=text[:400])
        else:
            raised = _RAISED.match(content.rstrip())
            if raised is not None:
                block.type, first, block.ends = raised.group(1), raised.group(2), place
                block.message.append(first or "")
                return place + 1
            strangers += 1  # another process wrote in between
        place += 1
    return place


def _is_source(content: str, block: _Block) -> bool:
    """Whether the line right below a frame is its source: it raises nothing."""
    raised = _RAISED.match(content.rstrip())
    error = raised is not None and _ERROR_NAME.search(raised.group(1)) is not None
    return bool(block.frames) and not error


def whole_message(lines: Sequence[str], place: int, first: str) -> str:
    """The message of which the line before `place` says `first`, with its further lines."""
    block = _Block(message=[first])
    _read_message(lines, place, block)
    return "\n".join(block.message).strip()[:MESSAGE_CAP]


def _read_message(lines: Sequence[str], place: int, block: _Block) -> tuple[int, str]:
    """Read the further lines of a message. Nothing marks its end: it ends at a chained or another
    traceback, or at another kind of log line.
    """
    began, size = place, len(block.message[0])
    inside_original = False
    while place < len(lines) and place - began < 400:
        line = lines[place]
        bare = line.strip()
        if bare in (_CAUSE, _CONTEXT):
            return place + 1, bare
        inside_original = inside_original or bare.startswith("Original Traceback")
        if _NEXT_LOG.match(line) or line.lstrip().startswith("+-"):
            break
        ended = _is_header(line) or (not bare and not _goes_on(lines, place))
        if ended and not inside_original:
            break
        if size < 20 * MESSAGE_CAP:
            block.message.append(line)
            size += len(line)
        place += 1
    after = next((at for at in range(place, min(place + 3, len(lines))) if lines[at].strip()), None)
    if after is not None and lines[after].strip() in (_CAUSE, _CONTEXT):
        return after + 1, lines[after].strip()
    return place, ""
