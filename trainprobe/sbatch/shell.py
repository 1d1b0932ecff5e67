"""Shell text as commands: read, never run. What only running it would show stays as written.

Covers what batch scripts use: quotes, variables, continued lines, here-documents, lists, and loops
and conditions as brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MOST_CHARS = 400_000
MOST_COMMANDS = 4_000
MOST_WORDS = 400
DEEPEST = 40
ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_SEPARATORS = ("\n", ";", "&", "|", "&&", "||", ";;", "(", ")")
_OPENING = {"if", "while", "until", "{"}
_CLOSING = {"fi", "done", "esac", "}", ")"}
_SKIPPED = {"then", "else", "elif", "do", "!", "time", "in"}
_LOOPS = {"while", "until", "for", "select"}
HEREDOC = re.compile(r"(?<!<)<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_REDIRECT = re.compile(r"(?:\d*|&)(?:>>|>\||>&|<&|<<<|<>|>|<)")


@dataclass(frozen=True)
class Command:
    """One simple command as written. `line` and `last` count from 1; `words` keep their quotes;
    `after` is what ends it: ; & && | || or a newline.

    `loop` is true inside a loop, `nested` inside any bracket, `conditional` inside a condition,
    `guarded` after && or ||.
    """

    line: int
    last: int
    words: tuple[str, ...]
    after: str = "\n"
    loop: bool = False
    nested: bool = False
    guarded: bool = False
    conditional: bool = False


@dataclass
class _Reader:
    text: str
    at: int = 0
    line: int = 1
    pending: list[tuple[str, bool]] = field(default_factory=list)

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def step(self, count: int = 1) -> str:
        taken = self.text[self.at : self.at + count]
        self.line += taken.count("\n")
        self.at += count
        return taken

    def step_to(self, end: int) -> str:
        return self.step(end - self.at)

    def line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end


def commands(text: str, first_line: int = 1) -> Iterator[Command]:
    """Yield the simple commands of a script, at most MOST_COMMANDS. Keywords such as `if` and `do`
    are left out; they only open and close brackets.
    """
    reader = _Reader(text[:MOST_CHARS], line=first_line)
    words: list[str] = []
    brackets: list[str] = []
    start, count, guarded = first_line, 0, False
    while count < MOST_COMMANDS:
        piece, line = _token(reader)
        if piece is not None and piece not in _SEPARATORS:
            start = start if words else line
            if len(words) < MOST_WORDS:
                words.append(piece)
            continue
        if words:
            rest, brackets = _without_keywords(words, brackets)
            if rest:
                count += 1
                loop = any(bracket in _LOOPS for bracket in brackets)
                last, after = max(start, line), piece or "\n"
                choice = any(bracket in ("if", "case") for bracket in brackets)
                nested = bool(brackets)
                yield Command(start, last, tuple(rest), after, loop, nested, guarded, choice)
            guarded = piece in ("&&", "||")
        if piece is None:
            return
        if piece == "(":
            brackets = [*brackets, "("]
        elif piece == ")":
            brackets = _closed(brackets, "(")
        words = []


def _without_keywords(words: list[str], brackets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take brackets and keywords off the front. Return the command and the open brackets."""
    opened, rest = list(brackets), words
    while rest:
        first = rest[0]
        if first in ("for", "case", "select") and len(opened) < DEEPEST:
            return [], [*opened, first]
        if first in _OPENING and len(opened) < DEEPEST:
            opened.append(first)
            rest = rest[1:]
        elif first in _CLOSING:
            opened, rest = _closed(opened, first), rest[1:]
            if rest and _REDIRECT.match(rest[0]):
                return [], opened
        elif first in _SKIPPED:
            rest = rest[1:]
        elif first == "function":
            rest = rest[2:]
        else:
            break
    return rest, opened


def _closed(brackets: Sequence[str], closing: str) -> list[str]:
    opening = {"fi": {"if"}, "done": _LOOPS, "esac": {"case"}, "}": {"{"}}.get(closing, {"("})
    for place in range(len(brackets) - 1, -1, -1):
        if brackets[place] in opening:
            return list(brackets[:place])
    return list(brackets)


def _token(reader: _Reader) -> tuple[str | None, int]:
    """The next word or operator, with the line on which it begins. A redirection is a word of its
    own with its target.
    """
    while reader.at < len(reader.text):
        if reader.peek(2) == "\\\n":
            reader.step(2)
        elif reader.peek() in (" ", "\t", "\r"):
            reader.step()
        elif reader.peek() == "#":
            reader.step_to(reader.line_end())
        else:
            break
    line = reader.line
    if reader.at >= len(reader.text):
        return None, line
    if reader.peek() == "\n":
        reader.step()
        _skip_heredocs(reader)
        return "\n", line
    if reader.peek(2) in ("&&", "||", ";;"):
        return reader.step(2), line
    if reader.peek(2) == "((":
        end = reader.text.find("))", reader.at)
        return reader.step_to(len(reader.text) if end < 0 else end + 2), line
    if reader.peek() in (";", "|", "(", ")") or (reader.peek() == "&" and reader.peek(2) != "&>"):
        return reader.step(), line
    heredoc = HEREDOC.match(reader.text, reader.at)
    if heredoc and reader.peek(3) != "<<<":
        reader.pending.append((heredoc[2], heredoc[0].startswith("<<-")))
        return reader.step(len(heredoc[0])), line
    return _word(reader), line


def _skip_heredocs(reader: _Reader) -> None:
    for name, tabs in reader.pending:
        while reader.at < len(reader.text):
            text = reader.step_to(reader.line_end())
            reader.step()
            if (text.lstrip("\t") if tabs else text) == name:
                break
    reader.pending = []


def _word(reader: _Reader) -> str:
    start, text = reader.at, reader.text
    redirect = _REDIRECT.match(text, start)
    if redirect:
        reader.step(len(redirect[0]))
        while reader.peek() in (" ", "\t") and reader.at < len(text):
            reader.step()
    while reader.at < len(text):
        char, pair = reader.peek(), reader.peek(2)
        if char == "(" and ARRAY.fullmatch(text[start : reader.at]):
            reader.step_to(end_of_array(text, reader.at))
            continue
        if pair != "\\\n" and (
            char in " \t\r\n;|&()" or (char in "<>" and reader.at > start and not redirect)
        ):
            break
        if char == "\\":
            reader.step(2)
        elif char in "'\"`":
            reader.step_to(end_of_quote(text, reader.at))
        elif pair in ("$(", "${", "$'"):
            reader.step_to(end_of_substitution(text, reader.at))
        else:
            reader.step()
    if reader.at == start:
        reader.step()  # skip a character that fits nothing
    return text[start : reader.at].replace("\\\n", "")


def end_of_quote(text: str, at: int, depth: int = 0) -> int:
    """Return the end of the quoted text that begins at `at`, behind its closing mark; the end of
    `text` where none closes it.
    """
    mark, at = text[at], at + 1
    while at < len(text):
        if text[at] == mark:
            return at + 1
        if text[at] == "\\" and mark != "'":
            at += 2
        elif mark == '"' and text[at] == "$" and text[at + 1 : at + 2] in ("(", "{"):
            at = end_of_substitution(text, at, depth + 1)
        else:
            at += 1
    return len(text)


def end_of_array(text: str, at: int) -> int:
    """Return the end of the `(…)` of an array that begins at `at`; comments in it count for
    nothing.
    """
    at += 1
    while at < len(text):
        char = text[at]
        if char == ")":
            return at + 1
        if char == "#" and text[at - 1] in " \t\n(":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif char == "\\":
            at += 2
        elif char in "\"'`":
            at = end_of_quote(text, at)
        elif char == "$" and text[at + 1 : at + 2] in ("(", "{", "'"):
            at = end_of_substitution(text, at)
        else:
            at += 1
    return len(text)


def end_of_substitution(text: str, at: int, depth: int = 0) -> int:
    """Return the end of the `$(…)`, `${…}`, `$((…))` or `$'…'` that begins at `at`."""
    opening = text[at + 1]
    if opening == "'" or depth > DEEPEST:
        return end_of_quote(text, at + 1, depth) if opening == "'" else len(text)
    closing = ")" if opening == "(" else "}"
    level, at = 1, at + 2
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char in "'\"`" and not (char == "'" and opening == "{"):
            at = end_of_quote(text, at, depth + 1)
            continue
        level += (char == opening) - (char == closing)
        at += 1
        if level == 0:
            return at
    return len(text)
