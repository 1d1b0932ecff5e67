"""Does a thread go round without getting anywhere? Its own lines over the looks decide, with the
loop around them in the source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from trainprobe.facts import Block, SourceSite
from trainprobe.stacks import places
from trainprobe.stacks.frames import Frame

Sites = Mapping[tuple[str, int], SourceSite]
LINES_OF_A_POLL = 3
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
_TRIES_AGAIN = re.compile(r"\b(?:attempt|retr|tries|backoff)", re.IGNORECASE)
_WAITS_FOR_A_CONDITION = re.compile(
    r"^while\s+(?:not\b|.*\bis None\b|.*(?:==|!=)|(?!.*\bnext\().*\w\()"
)
_COUNTS = re.compile(r"^while\s+(?!not\b|True\b|1\b).*(?:<|>)=?\s*[\w.(\[]")
# Libraries that do bounded work in one long call of C: a rank that stands there works.
_BOUNDED = (
    "/pickle.py",
    "/json/",
    "/copy.py",
    "/zipfile",
    "/tarfile.py",
    "/gzip.py",
    "/hashlib.py",
    "/shutil.py",
    "/csv.py",
)
_BOUNDED_CALL = re.compile(
    r"\b(?:c?pickle|marshal|json|orjson|ujson|msgpack|yaml|zlib|gzip|bz2|lzma|zstd\w*|lz4\w*"
    r"|snappy|hashlib|xxhash|base64|struct|csv|np|numpy|pd|pandas|torch|pa|pyarrow)\."
    r"|\bgc\.collect\(|\b(?:sorted|sum|min|max|list|tuple|dict|set|frozenset|Counter|len|bytes"
    r"|bytearray|hash|deepcopy)\("
    r"|\.(?:sort|join|split|splitlines|decode|encode|encode_batch|tokenize|batch_encode\w*"
    r"|translate|replace|lower|upper|strip|count|update|extend|copy|tolist|hexdigest|dumps?"
    r"|loads?)\("
)
_OF_A_TRAINER = re.compile(
    r"/(?:lightning|pytorch_lightning|transformers|trl|ignite|composer|fastai|mmengine|ultralytics)/"
)
# Of these one call may never return: they go back and try again.
_MATCHES = re.compile(r"\b(?:re|regex)\.|\.(?:match|search|fullmatch|findall|finditer|sub)\(")


def own_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The stack down to the user's innermost frame, that one included."""
    last = max((place for place, frame in enumerate(frames) if places.is_user(frame)), default=-1)
    return tuple(frames[: last + 1])


def in_library(frames: Sequence[Frame]) -> bool:
    """Does the stack end inside a library that the user's code called, torch above all? What
    waits for other ranks or for Python itself is left out.
    """
    below = frames[len(own_frames(frames)) :]
    return any(
        (
            places.is_library(frame)
            and not frame.base.startswith(("popen_", "filelock"))
            and "torch/distributed/" not in frame.file
            and "/filelock/" not in frame.file
        )
        or any(part in frame.file for part in _BOUNDED)
        for frame in below
    )


def around(looks: Sequence[Sequence[Frame]]) -> tuple[Frame, ...]:
    """The innermost function of the user that all looks share, as its frame in each look; empty
    where they share none.
    """
    stacks = [own_frames(frames) for frames in looks if frames]
    if not stacks or not all(stacks):
        return ()
    depth = 0
    while (
        all(len(stack) > depth for stack in stacks)
        and len({_place(stack[depth]) for stack in stacks}) == 1
    ):
        depth += 1
    here = [stack[depth] for stack in stacks if len(stack) > depth]
    if len(here) == len(stacks) and len({(frame.file, frame.name) for frame in here}) == 1:
        return tuple(here)
    return tuple(stack[depth - 1] for stack in stacks) if depth else ()


def loop_of(frame: Frame, sites: Sites) -> Block | None:
    """The innermost loop around a frame's line in its source, None where there is none or the
    source was not read.
    """
    site = sites.get((frame.file, frame.line))
    if (
        frame.name in COMPREHENSIONS
    ):  # a loop over things in one line, whatever loop stands around that
        return Block("for", frame.line, site.text if site is not None else "")
    loops = (
        [
            block
            for block in site.blocks
            if block.kind in ("for", "while") and block.branch == "body"
        ]
        if site is not None
        else []
    )
    if site is not None and not loops and site.text.startswith("while "):
        return Block("while", site.line, site.text)
    return loops[-1] if loops else None


def loops_of(looks: Sequence[Sequence[Frame]], sites: Sites) -> tuple[Block, ...]:
    """The loops that hold the thread: around the shared function's lines, and around those
    further in.
    """
    shared = around(looks)
    if not shared:
        return ()
    first = own_frames(next(frames for frames in looks if frames))
    place = next(
        (
            number
            for number, frame in enumerate(first)
            if (frame.file, frame.name) == (shared[0].file, shared[0].name)
        ),
        0,
    )
    inner = [frame for frames in looks for frame in own_frames(frames)[place:]]
    found = [
        loop for frame in (*reversed(inner), *shared) if (loop := loop_of(frame, sites)) is not None
    ]
    return tuple(dict.fromkeys(found))


def polls(looks: Sequence[Sequence[Frame]], sites: Sites) -> bool:
    """Is it a loop that asks and waits: one function of the user, few lines of it, `while`
    around them, and no library's work below?
    """
    shared = around(looks)
    if (
        not shared
        or any(in_library(frames) for frames in looks)
        or len({frame.line for frame in shared}) > LINES_OF_A_POLL
    ):
        return False
    loops = loops_of(looks, sites)
    if not loops:
        return False
    return loops[0].kind == "while" or bool(_TRIES_AGAIN.search(loops[0].text))


def waits_for_a_condition(looks: Sequence[Sequence[Frame]], sites: Sites) -> bool:
    """Is the loop's own head the question, as in `while not os.path.exists(path):`?"""
    return any(_WAITS_FOR_A_CONDITION.search(loop.text) for loop in loops_of(looks, sites)[:1])


def counts_up(looks: Sequence[Sequence[Frame]], sites: Sites) -> bool:
    """Is the loop's head a count towards an end, as in `while len(rows) < size:`?"""
    return any(
        loop.kind == "while" and _COUNTS.search(loop.text) for loop in loops_of(looks, sites)[:1]
    )


def in_for_loop(looks: Sequence[Sequence[Frame]], sites: Sites) -> bool:
    """Is the innermost loop one over things, which has an end?"""
    loops = loops_of(looks, sites)
    return bool(loops) and loops[0].kind == "for" and not _TRIES_AGAIN.search(loops[0].text)


def called_for_each(looks: Sequence[Sequence[Frame]], sites: Sites) -> bool:
    """Is there no loop in the function in which it stands, and the innermost one around the call of
    it goes over things, as the loops of a trainer's library do?
    """
    if loops_of(looks, sites):
        return False
    stacks = [own_frames(frames) for frames in looks if frames]
    above = [frames[:-1] for frames in stacks]
    shared = [frame for frame in (above[0] if above else ()) if all(frame in one for one in above)]
    for frame in reversed(shared):
        if places.is_library(frame) and _OF_A_TRAINER.search(frame.file):
            return True
        if (nearest := loop_of(frame, sites)) is not None:
            return nearest.kind == "for" and not _TRIES_AGAIN.search(nearest.text)
    return False


def bounded_work(frames: Sequence[Frame], sites: Sites) -> bool:
    """Does it end in a call of the standard library that works through a lot and then returns?
    Its C functions show by the source line alone.
    """
    if any(any(part in frame.file for part in _BOUNDED) for frame in frames[-3:]):
        return True
    site = sites.get((frames[-1].file, frames[-1].line)) if frames else None
    text = site.text if site is not None else frames[-1].text if frames else ""
    return bool(_BOUNDED_CALL.search(text)) and not _MATCHES.search(text)


def _place(frame: Frame) -> tuple[str, str, int]:
    return (frame.file, frame.name, frame.line)
