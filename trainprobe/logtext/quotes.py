"""A line of a log as a report quotes it: what was said, without when, how loudly and by which
logger; the place in the log and the time stand beside it.
"""

from __future__ import annotations

import re

from trainprobe.logtext.stamps import stamp

_LEVEL = r"(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL|FATAL)"
# WARNING:torch.distributed.run: · torch.distributed.run: [WARNING] · [INFO] ·
# [launch.py:315:sigkill_handler] · | INFO | · mmengine - INFO - · x.py[line:254] - DEBUG: ·
# utils.train:fit:52 - · thread and place of absl and glog: 139863945226048 init.cc:337] ·
# (worker_0) :
_HEADS = re.compile(
    rf"\s{{0,8}}(?:{_LEVEL}: ?[\w.]{{1,100}}:(?! )"
    rf"|[\w.]{{1,100}}\.[\w.]{{1,100}}: \[{_LEVEL}\] |\[{_LEVEL}\][ :]?"
    r"|\[[\w.]{1,60}\.py:\d{1,6}(?::\w{1,60})?\](?: \[\w{1,20}\])?:? "
    rf"|(?:[-|:] ?)?(?:[\w./-]{{1,200}}(?:\[line:\d{{1,6}}\])? ?[-|:] ?)?{_LEVEL} {{0,8}}[-|:] ?"
    rf"|{_LEVEL} \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]{{1,80}}:\d{{1,6}}\] "
    r"|[\w.]{1,100}:[\w<>]{1,60}:\d{1,6} - "
    r"|\d{1,20} [\w./-]{1,80}\.(?:py|cc|cpp|cu):\d{1,6}\] "
    r"|\[rank\d{1,6}\]: ?(?=\[[IWEF]\d{3,4} )"
    r"|(?:\(\w{1,30}[ _-]?\d{1,6}\)|\[\w{1,30}[ _-]\d{1,6}\]) ?: )"
)
_GLOG = re.compile(r"(?: ?[\w./-]{1,80}\.(?:py|cc|cpp|cu):\d{1,6})?\] ")
_MOST = 5  # heads before one line


def quoted(line: str, limit: int = 160) -> str:
    """What the line says, cut to `limit` characters."""
    return cut_at_word(quoted_words(line), limit)


def cut_at_word(words: str, limit: int) -> str:
    """`words`, cut behind a whole word where one ends in the last fifth of `limit` characters."""
    if len(words) <= limit:
        return words
    kept = words[: limit - 1]
    end = kept.rfind(" ")
    if not words[limit - 1].isspace() and end >= limit * 4 // 5:
        kept = kept[:end]
    return f"{kept.rstrip(' ,;:(')}…"


def quoted_words(line: str) -> str:
    """What the line says; the line itself where nothing else is left of it. Never raises."""
    rest = line.strip()
    for _ in range(_MOST):
        when = stamp(rest)
        cut = when.end if when is not None else 0
        if cut and (glog := _GLOG.match(rest[cut:])) is not None:
            cut += glog.end()
        elif not cut and (head := _HEADS.match(rest)) is not None:
            cut = head.end()
        if not cut:
            break
        rest = rest[cut:].lstrip(" ,;|")
    return rest if any(letter.isalpha() for letter in rest) else line.strip()
