"""Several lines that were written as one: a message behind a progress bar, two ranks in one line,
a traceback without line breaks.
"""

from __future__ import annotations

import re

from trainprobe.logtext.prefixes import read_prefixes

PARTS_CAP = 400
TRACEBACK = "Traceback (most recent call last):"
# The end of a tqdm bar; another writer wrote whatever follows it.
_BAR_END = re.compile(
    r"\d{1,3}%[^\d%]{0,3}\|[^|]{0,400}\|[^\[\]"
    r"|]{0,40}\[[\d:?]{1,12}<[\d:?]{1,14},[^\[\]]{0,400}\](?=\s{0,3}[^\s\r\n\]])"
)
# torch begins its lines like this; in the middle of a line it is another process's line. The
# bracket comes before the looks behind it: a search for one character skips the rest of the line.
_RANK = re.compile(
    r"\[(?:(?<=[^\s\]:>|(\"'\[,=]\[)rank\d{1,7}\]:|(?<=\S\[)[EFW]\d{3,4} \d\d:\d\d:\d\d\.\d{3,9}"
    r" |(?<=[^\s:>|]\[)[EFW] [A-Z]\w{2,40}\.cpp:\d{1,5}\] )"
)
_SLURM = re.compile(
    r"(?<=[^\s:>|\]\"'(])(?=slurmstepd(?:-[\w.-]{1,80})?: error: |srun: error: |srun: Job step"
    r" aborted|Traceback \(most recent call last\):$|Fatal Python error: |terminate called after"
    r" throwing )"
)
_FRAME = re.compile(r"\s{0,8}File \"([^\"]{1,1000})\", line (\d{1,9}), in (\S{1,200})")
_ENDING = re.compile(
    r" (?=(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Timeout"
    r"|Refused|Exhausted|Failure)(?::"
    r" |$|\())"
)
_BETWEEN = re.compile(
    r"\s{1,4}(?=During handling of the above exception|The above exception was the direct cause)"
)
_ESCAPED = re.compile(r"\\\\?n")


def split_joined(text: str) -> list[str]:
    """Split a plain line into the lines that it consists of, in order. Linear in the line."""
    places: set[int] = set()
    if "%" in text and "]" in text:
        places.update(match.end() for match in _BAR_END.finditer(text))
    if text.find("[rank", 1) > 0 or text.find(".cpp:", 1) > 0:
        places.update(match.start() for match in _RANK.finditer(text))
    # Plain searches first: most lines hold none of these words, and the look-behind costs twenty
    # times as much.
    if (
        "slurmstepd" in text
        or "srun: " in text
        or TRACEBACK in text
        or "Fatal Python error: " in text
        or "terminate called after" in text
    ):
        places.update(match.start() for match in _SLURM.finditer(text))
    parts = (
        _cut(text, sorted(place for place in places if 0 < place < len(text))) if places else [text]
    )
    if TRACEBACK in text:
        return [line for part in parts for line in _with_prefixes(part)][:PARTS_CAP]
    return parts


def _cut(text: str, places: list[int]) -> list[str]:
    found: list[str] = []
    begin = 0
    for place in places[:PARTS_CAP]:
        if not _is_prefix(text[begin:place]):
            found.append(text[begin:place])
            begin = place
    return [*found, text[begin:]]


def _is_prefix(before: str) -> bool:
    """`[rank3]:` before `[E1121 …`, a pod's name before `[rank3]:`: no line of its own."""
    return (
        len(before) < 120
        and re.fullmatch(r"\s{0,8}(?:\[[^\]]{1,80}\](?:<\w{1,10}>)?:?\s{0,2}){1,4}", before)
        is not None
    )


def _with_prefixes(text: str) -> list[str]:
    """The lines of a traceback that stood in one line, each with the prefixes of that line."""
    rest = read_prefixes(text).rest
    before = text[: len(text) - len(rest)]
    return [before + line for line in _traceback(rest)]


def _traceback(text: str) -> list[str]:
    """A traceback in one line, as a web form or a JSON logger writes it."""
    at = text.find(TRACEBACK)
    behind = text[at + len(TRACEBACK) :]
    if at < 0 or not behind.strip():
        return [text]
    if _ESCAPED.match(behind):
        return [
            line
            for line in _ESCAPED.split(text.replace('\\\\"', '"').replace('\\"', '"'))
            if line.strip()
        ][:PARTS_CAP]
    if not _FRAME.match(behind):
        return [text]
    found = [text[:at].rstrip(), TRACEBACK] if text[:at].strip() else [text[: at + len(TRACEBACK)]]
    frames = list(_FRAME.finditer(behind))
    for place, frame in enumerate(frames[:PARTS_CAP]):
        stop = frames[place + 1].start() if place + 1 < len(frames) else len(behind)
        code = behind[frame.end() : stop].strip()
        found.append(f'  File "{frame.group(1)}", line {frame.group(2)}, in {frame.group(3)}')
        between = _BETWEEN.split(code, maxsplit=1)
        ending = _ENDING.split(f" {between[0]}", maxsplit=1)
        if ending[0].strip():
            found.append(f"    {ending[0].strip()}")
        if len(ending) > 1:
            rest = ending[1].split(f" {TRACEBACK}", 1)
            found += [rest[0].strip(), *([TRACEBACK] if len(rest) > 1 else [])]
        if len(between) > 1:
            found += [
                "",
                between[1].replace(TRACEBACK, "").strip(),
                "",
                *([TRACEBACK] if TRACEBACK in between[1] else []),
            ]
    return found
