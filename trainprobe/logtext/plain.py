"""Turns a raw line of a log into plain text: without colours, overwritten progress bars and
invisible characters.
"""

from __future__ import annotations

import functools
import html
import json
import re

from trainprobe.logtext.joined_lines import split_joined

LINE_CAP = 200_000
SHORT = 1000
STATES_CAP = 40
# CSI, OSC, DCS/APC/PM/SOS, the other escapes of ECMA-48, in 7 and 8 bits.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}["
    r" -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]{0,4096}(?:\x1b\\)?|["
    r" -/]{1,4}[0-~]|[0-Z\\`a-z{|}~])"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]|\x9d[^\x07\x9c\n]{0,4096}[\x07\x9c]"
)
# Colours whose escape character was lost in a bug report or written out: `[36m`, `^[[0m`,
# `\x1b[31m`, `\u001b[0m`, `#033[0m`.
_SPELT = re.compile(
    r"(?:\^\[|\\u001[bB]|\\x1[bB]|\\033|\\e|#033|\u241b|\ufffd)\[[0-9;?]{0,20}[A-Za-z]"
    r"|\[(?:0?[0-9]|2[1-9]|3[0-9]|4[0-9]|9[0-7]|10[0-7])(?:;[0-9]{1,3}){0,5}m(?!\]| ?[0-9]{1,2}s)"
)
# Begins with a literal, and so costs a tenth of the pattern above.
_MAYBE_SPELT = re.compile(r"\[[0-9;?]{1,20}[A-Za-z]")
_GONE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_BLANK = re.compile("[\x0b\x0c\x85\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"\d{1,20}")
_BAR = re.compile(
    r"\d%|\bit/s|\bs/it|\d/\d{1,12} \[|\?it|\bETA\b|\d[kKMG]?B/s|[\u2588\u2501\u25a0]"
)
# What a terminal multiplexer draws between two panes, behind the text of the left one. Boxes and
# tables have more than one in a line.
_EDGES = ("\u2502", "\u2503")
_JSON = re.compile(r'"(?:log|message|msg|textPayload|text|event)"\s?:\s?"')


_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#39|#x27|#34);")


def plain(line: str) -> str:
    """Return the line as a reader finally sees it, without the end of line; where a progress bar
    overwrote an error, the error. Never raises; linear in the first 200,000 characters.
    """
    states = plain_states(line)
    if len(states) == 1:
        return states[0]
    return next((state for state in reversed(states) if not _is_bar(state)), states[-1])


def plain_states(line: str) -> list[str]:
    """Return the states of the line before each carriage return, in order; of a progress bar or
    counter the last one only. Joined lines are split. At least one text.
    """
    return _states(line) if len(line) > SHORT else list(_known_states(line))


@functools.lru_cache(maxsize=512)
def _known_states(line: str) -> tuple[str, ...]:
    """Those of a short line: the first lines of a file are asked for several times."""
    return tuple(_states(line))


def _states(line: str) -> list[str]:
    line = line[:LINE_CAP].rstrip("\r\n")
    if line[:1] == "{" and line[-1:] == "}" and _JSON.search(line[:4000]):
        line = _unwrapped(line)
    if "&" in line and ";" in line:  # copied out of the source of a page
        line = _ENTITY.sub(lambda match: html.unescape(match.group(0)).replace("\u00a0", " "), line)
    if line[-1:] in _EDGES and line.count(line[-1]) == 1:
        line = line[:-1].rstrip(" \t")
    if line.isprintable() and not _is_spelt(line):
        return split_joined(line)
    if "\x1b" in line or "\x9b" in line or "\x9d" in line:
        line = _ESCAPES.sub("", line)
    if "\r" not in line:
        return split_joined(_cleaned(line))
    states: list[str] = []
    shapes: list[str] = []
    for state in [each for part in line.split("\r") for each in split_joined(_cleaned(part))]:
        if not state.strip():
            continue
        shape = "" if _is_bar(state) else _NUMBER.sub("#", state[:120])
        if shapes and shape == shapes[-1]:
            states[-1] = state
            continue
        if not shape and "" in shapes:  # one bar, interrupted by a message
            place = shapes.index("")
            del states[place], shapes[place]
        states.append(state)
        shapes.append(shape)
    return states[-STATES_CAP:] or [""]


def _is_spelt(line: str) -> bool:
    """Whether the line has a colour without its escape character."""
    if "[" not in line:
        return False
    marked = "\\" in line or "^[" in line or "#033" in line or not line.isascii()
    return (marked or bool(_MAYBE_SPELT.search(line))) and _SPELT.search(line) is not None


def _is_bar(text: str) -> bool:
    return _BAR.search(text[:2000]) is not None


def _cleaned(text: str) -> str:
    if text.isprintable():
        return _SPELT.sub("", text) if "[" in text else text
    if "\b" in text:
        text = _backspaced(text)
    text = _GONE.sub("", text)
    text = _BLANK.sub(" ", text)
    text = _SURROGATE.sub("\ufffd", text)
    return _SPELT.sub("", text) if "[" in text else text


def _backspaced(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


def _unwrapped(line: str) -> str:
    """The time and text in a line of JSON, as Docker's json-file driver and many clouds write."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(row, dict):
        return line
    texts = {name: value for name, value in row.items() if isinstance(value, str)}
    text = next((texts[name] for name in _TEXT_KEYS if name in texts), None)
    if text is None:
        return line
    times = (texts.get(name, "") for name in _TIME_KEYS)
    when = next((time for time in times if 0 < len(time) < 64), "")
    trace = next((texts[name] for name in _TRACE_KEYS if name in texts), "")
    parts = (part.rstrip("\r\n").replace("\r\n", "\n") for part in (text, trace) if part)
    whole = "\n".join(parts).replace("\n", "\\n")
    return f"{when} {whole}" if when else whole


_TEXT_KEYS = ("log", "message", "msg", "textPayload", "text", "event")
_TIME_KEYS = ("time", "timestamp", "@timestamp", "ts", "asctime")
_TRACE_KEYS = ("exc_info", "exception", "traceback", "stack_trace")
