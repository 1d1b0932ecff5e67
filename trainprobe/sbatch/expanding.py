"""Shell expansion of the words of a script, with the variables that are known. Nothing is run: a
command substitution stays as written.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from trainprobe.sbatch.shell import end_of_quote, end_of_substitution

OWN_OF_TASK = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_TASK_PID")
"""Variables of a task. The batch shell has them too, each with the value 0."""
FROZEN = "\u27ea{}\u27eb"
ELEMENT_END = "\0"
_ARRAY = re.compile(r"(\"?)\$\{([A-Za-z_][A-Za-z0-9_]*)\[[@*]\]\}\1")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9?#@*$!]")
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-=])(.*))?", re.DOTALL)
MOST_TEXT = 20_000
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
}


def elements_of(name: str) -> str:
    """The key of an array's elements among the values."""
    return f"{name}[@]"


class Part(NamedTuple):
    text: str
    splits: bool = False


def frozen(name: str) -> str:
    """Mark a task variable that the batch shell has already replaced by its own value."""
    return FROZEN.format(name)


def expand(word: str, values: Mapping[str, str], depth: int = 0) -> tuple[str, ...]:
    """Return the words that `word` expands to; an unquoted variable with blanks expands to
    several. An unknown variable stays as `${NAME}`. An array has its elements in
    `values[elements_of(name)]`, with ELEMENT_END behind each.
    """
    whole_array = _ARRAY.fullmatch(word)
    if whole_array and (elements := values.get(elements_of(whole_array[2]))) is not None:
        return tuple(elements.split(ELEMENT_END)[:-1])
    fields: list[str] = []
    current, has = "", False
    for part in _parts(word, values, depth):
        if not part.splits or not re.search(r"\s", part.text):
            current, has = current + part.text, has or bool(part.text) or not part.splits
            continue
        pieces = _split(part.text)
        for place, piece in enumerate(pieces):
            if place:
                fields += [current] if has else []
                current, has = "", False
            current, has = current + piece, has or bool(piece)
    if has:
        fields.append(current)
    return tuple(text[:MOST_TEXT] for text in fields)


def _split(text: str) -> list[str]:
    """Split at blanks, but not inside a substitution, whose output is unknown."""
    pieces, at, begun = [], 0, 0
    while at < len(text):
        if text[at] == "$" and text[at + 1 : at + 2] in ("(", "{"):
            at = end_of_substitution(text, at)
        elif text[at].isspace():
            pieces.append(text[begun:at])
            while at < len(text) and text[at].isspace():
                at += 1
            begun = at
        else:
            at += 1
    return [*pieces, text[begun:]]


def expanded(word: str, values: Mapping[str, str], depth: int = 0) -> str:
    """Expand without splitting, as in an assignment."""
    return "".join(part.text for part in _parts(word, values, depth))[:MOST_TEXT]


def _parts(word: str, values: Mapping[str, str], depth: int) -> list[Part]:
    found: list[Part] = []
    at = grown = 0
    while at < len(word) and grown <= MOST_TEXT:  # repeated variables multiply the text
        char = word[at]
        if char == "'":
            end = end_of_quote(word, at)
            found.append(Part(word[at + 1 : end].removesuffix("'")))
        elif char == '"':
            end = end_of_quote(word, at)
            found.append(Part(_in_quotes(word[at + 1 : end].removesuffix('"'), values, depth)))
        elif char == "\\":
            end = at + 2
            found.append(Part(word[at + 1 : end]))
        elif char == "`":
            end = end_of_quote(word, at)
            found.append(Part(f"$({word[at + 1 : end].removesuffix('`')})"))
        elif char == "$":
            text, end, splits = _dollar(word, at, values, depth)
            found.append(Part(text, splits))
        elif char == "~" and at == 0 and word[1:2] in ("", "/"):
            end = at + 1
            found.append(Part(values.get("HOME", "~")))
        else:
            end = at + 1
            found.append(Part(char))
        grown += len(found[-1].text)
        at = end
    return found


def _in_quotes(text: str, values: Mapping[str, str], depth: int) -> str:
    found, at = "", 0
    while at < len(text) and len(found) <= MOST_TEXT:
        if text[at] == "\\" and text[at + 1 : at + 2] in ("$", '"', "\\", "`", "\n"):
            found, at = found + text[at + 1], at + 2
        elif text[at] == "`":
            end = end_of_quote(text, at)
            found, at = found + f"$({text[at + 1 : end].removesuffix('`')})", end
        elif text[at] == "$":
            piece, at, _ = _dollar(text, at, values, depth)
            found += piece
        else:
            found, at = found + text[at], at + 1
    return found


def _dollar(text: str, at: int, values: Mapping[str, str], depth: int) -> tuple[str, int, bool]:
    """Return the value of `$…` at `at`, its end, and whether blanks in it split words."""
    after = text[at + 1 : at + 2]
    if after in ("(", "{", "'"):
        end = end_of_substitution(text, at)
        inner = text[at + 2 : end - 1]
        if after == "'":
            return inner, end, False
        if after == "{":
            return _parameter(inner, values, depth), end, True
        if inner.startswith("("):
            number = arithmetic(inner[1:].removesuffix(")"), values)
            return (str(number) if number is not None else text[at:end]), end, False
        return text[at:end], end, False  # how a command's output splits is unknown
    name = _NAME.match(text, at + 1)
    if name is None:
        return "$", at + 1, False
    return values.get(name[0], f"${{{name[0]}}}"), name.end(), True


def _parameter(inner: str, values: Mapping[str, str], depth: int) -> str:
    array, bracket, index = inner.partition("[")
    if bracket and (elements := values.get(elements_of(array))) is not None:
        items = elements.split(ELEMENT_END)[:-1]
        place = index.removesuffix("]")
        if place in ("@", "*"):
            return " ".join(items)
        if place.isdecimal() and int(place) < len(items) and "$" not in elements:
            return items[int(place)]
    found = _PARAMETER.fullmatch(inner)
    if found is None or depth > 8:
        return f"${{{inner}}}"
    name, form, default = found.groups()
    known = values.get(name)
    if known or (known is not None and form in (None, "-", "=")):
        return known
    may_be_set_by_slurm = known is None and name.startswith("SLURM")
    if form is None or may_be_set_by_slurm:
        return f"${{{name}}}"
    return expanded(default, values, depth + 1)


def arithmetic(text: str, values: Mapping[str, str]) -> int | None:
    """Return the value of an arithmetic expression of known integers, None where it is unknown."""
    names = re.sub(
        r"\$?\{?\b([A-Za-z_][A-Za-z0-9_]*)\b\}?",
        lambda found: values.get(found[1], found[1]),
        text[:400],
    )
    try:
        return _value(ast.parse(names.replace("/", "//").strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError, OverflowError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) < 10**15:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        found = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
        if abs(found) < 10**15:
            return found
    raise ValueError("not an integer")
