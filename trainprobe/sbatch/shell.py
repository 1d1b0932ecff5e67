"""Shell text as commands: read, never run. What cannot be known without running it stays as it is
written.

Only the parts of the shell that batch scripts are made of: quotes, variables, continued lines,
here-documents, lists, loops and conditions as brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_CHARS = 400_000
MOST_COMMANDS = 4_000
MOST_WORDS = 400
DEEPEST = 40
ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
_OPENING = {"if", "while", "until", "for", "case", "select", "{", "("}
_CLOSING = {"fi", "done", "esac", "}", ")"}
_SKIPPED = {"then", "else", "elif", "do", "!", "time", "in"}
_LOOPS = {"while", "until", "for", "select"}
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_REDIRECT = re.compile(r"(?:\d*|&)(?:>>|>\||>&|<&|<<<|<>|>|<)")


@dataclass(frozen=True)
class Command:
    """One simple command as written. `line` and `last` count from 1; `words` keep their quotes;
    `after` is what ends it: ; & | && || or a newline.

    `loop` is true inside a loop or a function's body that may run several times, `nested` inside
    any bracket at all.
    """

    line: int
    last: int
    words: tuple[str, ...]
    after: str = "\n"
    loop: bool = False
    nested: bool = False
    guarded: bool = False


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


def commands(text: str, first_line: int = 1) -> Iterator[Command]:
    """Yield the simple commands of a script, at most MOST_COMMANDS; brackets such as `if` and
    `do` are noted and left out.
    """
    reader = _Reader(text[:MOST_CHARS].replace("\\\n", "\\\n"), line=first_line)
    words: list[str] = []
    began = reader.line
    open_words: list[str] = []
    count = 0
    after_guard = False
    while reader.at < len(reader.text) and count < MOST_COMMANDS:
        piece, at_line = _token(reader)
        if piece is None:
            break
        if piece in ("\n", ";", "&", "|", "&&", "||", ";;", "(", ")"):
            if words:
                made, open_words = _made(words, began, at_line, piece, open_words)
                if made is not None:
                    count += 1
                    yield Command(
                        made.line,
                        made.last,
                        made.words,
                        made.after,
                        made.loop,
                        made.nested,
                        after_guard,
                    )
                after_guard = piece in ("&&", "||")
            if piece in ("(", ")"):
                open_words = [*open_words, "("] if piece == "(" else _closed(open_words, "(")
            words = []
        else:
            if not words:
                began = at_line
            if len(words) < MOST_WORDS:
                words.append(piece)
    if words:
        made, _ = _made(words, began, reader.line, "\n", open_words)
        if made is not None:
            yield made


def _made(
    words: list[str], began: int, ended: int, after: str, open_words: list[str]
) -> tuple[Command | None, list[str]]:
    """Take brackets and keywords off the front; what is left is a command."""
    brackets = list(open_words)
    rest = words
    while rest:
        first = rest[0]
        if first in _OPENING and first not in ("{", "(") and len(brackets) < DEEPEST:
            brackets.append(first)
            if first in ("for", "case", "select"):
                rest = []
                break
            rest = rest[1:]
        elif first == "{" and len(brackets) < DEEPEST:
            brackets.append(first)
            rest = rest[1:]
        elif first in _CLOSING:
            brackets = _closed(brackets, first)
            rest = rest[1:]
            if rest and not _REDIRECT.match(rest[0]):
                continue
            rest = []
        elif first in _SKIPPED:
            rest = rest[1:]
        elif first == "function":
            rest = rest[2:]
        else:
            break
    if not rest:
        return None, brackets
    last = began + max(0, ended - began)
    return (
        Command(
            began, last, tuple(rest), after, any(one in _LOOPS for one in brackets), bool(brackets)
        ),
        brackets,
    )


def _closed(brackets: list[str], closing: str) -> list[str]:
    opened = {"fi": {"if"}, "done": _LOOPS, "esac": {"case"}, "}": {"{"}}.get(closing, {"("})
    for place in range(len(brackets) - 1, -1, -1):
        if brackets[place] in opened:
            return brackets[:place]
    return brackets


def _token(reader: _Reader) -> tuple[str | None, int]:
    """The next word or operator, with the line on which it begins; redirections are words of
    their own with their target.
    """
    while reader.at < len(reader.text):
        if reader.peek(2) == "\\\n":
            reader.step(2)
        elif reader.peek() in (" ", "\t", "\r"):
            reader.step()
        elif reader.peek() == "#":
            end = reader.text.find("\n", reader.at)
            reader.step((len(reader.text) if end < 0 else end) - reader.at)
        else:
            break
    line = reader.line
    if reader.at >= len(reader.text):
        return None, line
    if reader.peek() == "\n":
        reader.step()
        _skip_heredocs(reader)
        return "\n", line
    for operator in ("&&", "||", ";;"):
        if reader.peek(2) == operator:
            return reader.step(2), line
    if reader.peek(2) == "((":
        return _arithmetic(reader), line
    if reader.peek() in (";", "|", "(", ")") or (reader.peek() == "&" and reader.peek(2) != "&>"):
        return reader.step(), line
    found = _HEREDOC.match(reader.text, reader.at)
    if found and reader.peek(3) != "<<<":
        reader.pending.append((found[2], found[0].startswith("<<-")))
        return reader.step(len(found[0])), line
    return _word(reader), line


def _arithmetic(reader: _Reader) -> str:
    end = reader.text.find("))", reader.at)
    return reader.step((len(reader.text) if end < 0 else end + 2) - reader.at)


def _skip_heredocs(reader: _Reader) -> None:
    for name, tabs in reader.pending:
        while reader.at < len(reader.text):
            end = reader.text.find("\n", reader.at)
            end = len(reader.text) if end < 0 else end
            text = reader.text[reader.at : end]
            reader.step(end - reader.at + 1)
            if (text.lstrip("\t") if tabs else text) == name:
                break
    reader.pending = []


def _word(reader: _Reader) -> str:
    began = reader.at
    redirect = _REDIRECT.match(reader.text, reader.at)
    if redirect:
        reader.step(len(redirect[0]))
        while reader.peek() in (" ", "\t") and reader.at < len(reader.text):
            reader.step()
    while reader.at < len(reader.text):
        char = reader.peek()
        if reader.peek(2) == "\\\n":
            reader.step(2)
        elif char in " \t\r\n;|&()" or (char in "<>" and reader.at > began and not redirect):
            break
        else:
            skip(reader.text, reader, char)
    if reader.at == began:
        reader.step()  # whatever it is, go on
    return reader.text[began : reader.at].replace("\\\n", "")


def skip(text: str, reader: _Reader, char: str) -> None:
    """Step over one part of a word: a quoted text, a substitution, an escaped character, or one
    that stands for itself.
    """
    if char == "\\":
        reader.step(2)
    elif char in "'\"`":
        reader.step(end_of_quote(text, reader.at) - reader.at)
    elif char == "$" and text[reader.at + 1 : reader.at + 2] in ("(", "{", "'"):
        reader.step(end_of_substitution(text, reader.at) - reader.at)
    else:
        reader.step()


def end_of_quote(text: str, at: int, depth: int = 0) -> int:
    """Where the quoted text that begins at `at` ends, behind its closing mark; the end of the
    text where it is open.
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


def end_of_substitution(text: str, at: int, depth: int = 0) -> int:
    """Where `$(…)`, `${…}`, `$((…))` or `$'…'` ends that begins at `at`."""
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
