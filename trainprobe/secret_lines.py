"""Secrets that no line shows by itself: private keys line by line, a value below its name, a token
that a terminal or a backslash broke in two.

A log puts a stamp or a rank before each line, so that lines belong together where what stands
before them is alike but for its digits. Only lines of one writer belong here, in their order.
"""

from __future__ import annotations

import re
from typing import Callable, List, Sequence

from trainprobe.secret_names import looks_secret, mixed, tells_nothing

KEY = "<hidden:private-key>"
MOST_LINES = 200
SHORT = 200
_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"[\s'\"|>]{0,64}[A-Za-z0-9+/]{8,4096}={0,2}[\s'\",|\\]{0,64}")
_LAST_WORD = re.compile(r"(?:(?<=[\s'\"|])|^)([A-Za-z0-9+/]{1,80}={0,2})\\{0,7}['\"]?[\s,|]{0,64}$")
# OpenSSL, OpenSSH and MIME break lines at these widths: such a line belongs to a key or a
# certificate even where its beginning was not kept.
_WIDTHS = (64, 70, 76)
# One line of a key as a source line or JSON writes it, up to the end of what is searched.
_WRITTEN_LINE = re.compile(r"(?:(?<=\\n)|(?<![A-Za-z0-9+/\\]))[A-Za-z0-9+/]{1,80}={0,2}\\{1,7}n\Z")
_OPEN = re.compile(
    r"([A-Za-z_][\w.-]{0,63})[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
    r"(\|[+-]?\d?|>[+-]?\d?|\\{1,7})?[ \t]{0,4}$"
)
_OPEN_OPTION = re.compile(r"(?:^|[ \t])--?([A-Za-z][\w-]{0,63})[ \t]{1,4}\\$")
_ONE_WORD = re.compile(r"[\"']?([^\s\"']{4,4096})[\"']?,?[ \t\\]{0,4}")
# A text in quotes that goes on in the next line.
_OPEN_QUOTE = re.compile(
    r"([A-Za-z_][\w.-]{0,63})[\"']?[ \t]{0,4}[:=][ \t]{0,4}([\"'])[^\s\"']{4,190}$"
)
_NAMED = re.compile(
    r"(?:^|[\s{,\"'-])(?:name|key)[\"']?[:=] ?[\"']?([A-Za-z_][\w.-]{0,63})[\"']?,?$"
)
_VALUE_OF_IT = re.compile(r".{0,100}?\bvalue[\"']?[:=] ?[\"']?([^\s\"',]{4,4096})")
_FIRST_WORD = re.compile(r"[ \t]{0,64}[\"']?([^\s\"'\\;|&]{1,2048})")
# A terminal of 80 columns breaks where the line is full; a narrower one is rare.
_FULL = 72
_GOES_ON = re.compile(r"[\w+/.~%=-]{3,2048}")
_NUMBERS = re.compile(r"[0-9TZ:.,/+-]+")
_DIGITS = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,9}\.[0-9]{1,20}(?:[eE][+-]?[0-9]{1,3})?")
Hide = Callable[[str], str]


def hide_over_lines(lines: Sequence[str], hide: Hide) -> List[str]:
    """Return as many lines, without what belongs to a secret of several lines.

    `hide` hides what a single text shows: it judges a broken token once its parts are together.
    """
    shown = list(lines)
    _keys(lines, shown)
    for place, line in enumerate(lines[:-1]):
        end = line[-1:]
        if end and end in ":|>-+=\\ ":
            _below(lines, shown, place)
        if ("name" in line or "key" in line) and (named := _NAMED.search(line[-SHORT:])):
            _hide_named(lines, shown, place, named[1])
        elif line.count('"') % 2 or line.count("'") % 2:
            _open_quote(lines, shown, place)
        full = len(line) >= _FULL and end.isalnum()
        if (full or end == "\\") and shown[place + 1] is lines[place + 1]:
            _broken(lines, shown, place, hide)
    return shown


def _alike(before: str, line: str) -> bool:
    """Say whether `line` begins as `before`, but for digits."""
    return line.startswith(before) or _DIGITS.sub("0", line[: len(before)]) == _DIGITS.sub(
        "0", before
    )


def _keys(lines: Sequence[str], shown: List[str]) -> None:
    left, before = 0, ""
    for place, line in enumerate(lines):
        framed = "PRIVATE KEY" in line
        if not framed and not left and len(line) < _WIDTHS[0]:
            continue
        begins = _BEGINS.search(line) if framed else None
        ends = _ENDS.search(line) if framed else None
        if begins is not None and ends is None:
            left, before = MOST_LINES, line[: begins.start()]
            shown[place] = before + KEY
        elif ends is not None and begins is None:
            if not left:
                _backwards(lines, shown, place, line[: ends.start()])
            left = 0
            shown[place] = line[: _written_before(line, ends.start())] + KEY
        elif left and _BODY.fullmatch(line):
            shown[place] = KEY
        elif (left and before and (start := _behind(before, line)) > 0) or (
            len(line) >= _WIDTHS[0] and (start := _key_line(line)) >= 0
        ):
            shown[place] = line[:start] + KEY
        left = max(0, left - 1)


def _behind(before: str, line: str) -> int:
    """Return where a line of a key begins behind what ends `before` but for digits, or -1."""
    found = _LAST_WORD.search(line[-SHORT:])
    start = max(0, len(line) - SHORT) + found.start(1) if found is not None else 0
    if not start or start > len(before):
        return -1
    return start if _alike(before[-start:], line) else -1


def _key_line(line: str) -> int:
    """Return where a last word begins that is base64 as wide as the lines of a key, or -1."""
    bare = line[-SHORT:].rstrip(" \t,|'\"\\")
    word = bare[max(map(bare.rfind, " \t'\"|")) + 1 :]
    if len(word) not in _WIDTHS or word[0] == "/" or not _BODY.fullmatch(word):
        return -1
    kinds = (str.isupper, str.islower, str.isdecimal)
    drawn = all(any(test(sign) for sign in word) for test in kinds)
    return max(0, len(line) - SHORT) + len(bare) - len(word) if drawn else -1


def _written_before(line: str, end: int) -> int:
    """Return where the lines of a key begin that stand in one line before its end."""
    while (found := _WRITTEN_LINE.search(line, max(0, end - 100), end)) is not None:
        end = found.start()
    return end


def _backwards(lines: Sequence[str], shown: List[str], end: int, before: str) -> None:
    """Hide the last lines of a key whose beginning was not kept."""
    for place in range(end - 1, max(-1, end - MOST_LINES), -1):
        line = lines[place]
        rest = line[len(before) :] if before and _alike(before, line) else line
        found = _LAST_WORD.search(rest[-SHORT:])
        if found is None:
            return
        shown[place] = line[: len(line) - len(rest[-SHORT:]) + found.start(1)] + KEY


def _below(lines: Sequence[str], shown: List[str], place: int) -> None:
    """Hide the value that stands below its name, as in YAML, or behind a broken command line."""
    line = lines[place]
    option = _OPEN_OPTION.search(line[-SHORT:]) if line.endswith("\\") else None
    if option is not None:
        if looks_secret(option[1]):
            _hide_word(lines, shown, place + 1, option[1])
        return
    tail = line[-SHORT:]
    found = _OPEN.search(tail)
    if found is None or not looks_secret(found[1]):
        return
    before = line[: len(line) - len(tail) + found.start(1)]
    indent, before = len(before), before.rstrip("\"' \t")
    if not before or not _alike(before, lines[place + 1]):
        indent, before = len(line) - len(line.lstrip()), ""
    block = found[2] or ""
    for number, following in enumerate(lines[place + 1 : place + 1 + MOST_LINES], place + 1):
        value = following[len(before) :].lstrip()
        room = len(following) - len(value)
        if not _alike(before, following) or not value or (room <= indent and block[:1] != "\\"):
            return
        word = _ONE_WORD.fullmatch(value)
        several = block[:1] in ("|", ">") and block != ""
        if not several and (word is None or not _is_value(word[1], block)):
            return
        shown[number] = f"{following[:room]}<hidden:{found[1]}>"
        if not several:
            return


def _is_value(word: str, block: str) -> bool:
    return (mixed(word) or block[:1] == "\\") and not word.endswith(":") and "(" not in word


def _hide_word(lines: Sequence[str], shown: List[str], place: int, name: str) -> None:
    found = _FIRST_WORD.match(lines[place])
    if found is not None and not found[1].startswith("-"):
        line = lines[place]
        shown[place] = f"{line[: found.start(1)]}<hidden:{name}>{line[found.end(1) :]}"


def _hide_named(lines: Sequence[str], shown: List[str], place: int, name: str) -> None:
    """Hide the value below `name: DB_PASSWORD`, as variables of a container are written."""
    if not looks_secret(name):
        return
    following = lines[place + 1]
    found = _VALUE_OF_IT.match(following)
    if found is not None and not tells_nothing(name, found[1]):
        start, end = found.span(1)
        shown[place + 1] = f"{following[:start]}<hidden:{name}>{following[end:]}"


def _open_quote(lines: Sequence[str], shown: List[str], place: int) -> None:
    """Hide the second half of a text in quotes that somebody broke: password="abc, def"."""
    found = _OPEN_QUOTE.search(lines[place][-SHORT:])
    if found is None or not looks_secret(found[1]):
        return
    following = lines[place + 1]
    end = following.find(found[2])
    start = following.rfind(" ", 0, end) + 1
    if end - start >= 4:
        shown[place + 1] = f"{following[:start]}<hidden:{found[1]}>{following[end:]}"


def _broken(lines: Sequence[str], shown: List[str], place: int, hide: Hide) -> None:
    """Hide a token whose second part stands at the beginning of the next line."""
    line, following = lines[place], lines[place + 1]
    bare = line.rstrip("\\")
    first = bare[-SHORT:]
    last_word = first.rpartition(" ")[2].rpartition("=")[2]
    if len(last_word) < 4 or not (mixed(last_word) or len(bare) < len(line)):
        return
    if _DECIMAL.fullmatch(last_word):
        return  # 1.0e-4 ends a line of values, and no token's first part is a decimal
    head = _head(line, following)
    starts = _GOES_ON.match(following, head)
    if starts is None or _NUMBERS.fullmatch(starts[0]):
        return
    second = starts[0]
    if not mixed(second) and len(bare) == len(line):
        return
    whole = hide(first + second)
    if whole == first + second or whole.endswith(second[-3:]):
        return
    name = whole.rpartition("<hidden:")[2].partition(">")[0]
    shown[place] = bare[: len(bare) - len(first)] + whole
    shown[place + 1] = f"{following[:head]}<hidden:{name}>{following[starts.end() :]}"


def _head(line: str, following: str) -> int:
    """Return how long both begin alike but for digits, up to a blank: a stamp, a rank."""
    end = 0
    for at, (one, other) in enumerate(zip(line, following), 1):
        if one != other and not (one.isdecimal() and other.isdecimal()):
            break
        if one.isspace():
            end = at
    return end
