"""No line can drive a signature's pattern into backtracking without end: each is fed the worst
that its own shape suggests.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from trainprobe.signatures import LINE_CAP, Signature, all_signatures

parser: Any = pytest.importorskip("re._parser" if hasattr(re, "_parser") else "sre_parse")
# One look at a line takes microseconds; what backtracks without end takes minutes. A slow machine
# does not get from one to the other.
MOST_S = 0.15


def sample(tree: Any, groups: dict[int, str]) -> str:
    """A short text that the parsed pattern matches, or nearly so."""
    return "".join(piece(operation, argument, groups) for operation, argument in tree)


def piece(operation: Any, argument: Any, groups: dict[int, str]) -> str:
    name = str(operation)
    if name == "LITERAL":
        return chr(int(argument))
    if name == "NOT_LITERAL":
        return "a" if chr(argument) != "a" else "b"
    if name == "ANY":
        return "a"
    if name == "IN":
        return member(argument)
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, _, inner = argument
        return sample(inner, groups) * max(1, min(int(least), 3))
    if name in ("SUBPATTERN", "ATOMIC_GROUP"):
        number, inner = (argument[0], argument[-1]) if name == "SUBPATTERN" else (None, argument)
        text = sample(inner, groups)
        if number is not None:
            groups[number] = text
        return text
    if name == "BRANCH":
        return sample(argument[1][0], groups)
    if name == "GROUPREF":
        return groups.get(int(argument), "")
    return ""


def member(items: Any) -> str:
    """One character of a class."""
    negated = str(items[0][0]) == "NEGATE"
    for candidate in "a0 -_./:xX1Z,[]()\"'=+*|{}<>%@#\t~":
        if any(holds(item, candidate) for item in items if str(item[0]) != "NEGATE") != negated:
            return candidate
    return "a"


def holds(item: tuple[Any, Any], candidate: str) -> bool:
    name, argument = str(item[0]), item[1]
    if name == "LITERAL":
        return chr(argument) == candidate
    if name == "RANGE":
        return bool(argument[0] <= ord(candidate) <= argument[1])
    kinds = {
        "DIGIT": r"\d",
        "NOT_DIGIT": r"\D",
        "SPACE": r"\s",
        "NOT_SPACE": r"\S",
        "WORD": r"\w",
        "NOT_WORD": r"\W",
    }
    return re.match(kinds[str(argument).removeprefix("CATEGORY_")], candidate) is not None


def pumped(tree: Any, before: str = "") -> Iterator[str]:
    """What leads up to each repetition, then as much of what is repeated as a line may hold."""
    groups: dict[int, str] = {}
    for operation, argument in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            unit = sample(argument[2], groups) or "a"
            yield before + unit * (LINE_CAP // len(unit) + 1)
            yield from pumped(argument[2], before)
        elif name == "SUBPATTERN":
            yield from pumped(argument[-1], before)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from pumped(branch, before)
        before += piece(operation, argument, groups)


def worst(signature: Signature) -> Iterator[str]:
    """Lines at least as long as a pattern gets to see: pumped, ended by a near miss, and begun
    over and over again.
    """
    tree = parser.parse(signature.regex.pattern, signature.regex.flags & ~re.UNICODE)
    whole = sample(tree, {})
    for text in pumped(tree):
        yield text[:LINE_CAP]
        yield text[: LINE_CAP - 1] + "\x01"
    for text in {whole, whole[:-1], *signature.has, signature.example}:
        if text:
            yield (text * (LINE_CAP // len(text) + 1))[:LINE_CAP]
    for filler in (" ", "a", "0", ":", "[", "(", "a ", "1.", "a1"):
        begin = signature.has[0] + whole[: len(whole) // 2]
        yield (begin + filler * LINE_CAP)[:LINE_CAP]
        yield (filler * LINE_CAP)[: LINE_CAP // 2] + begin + (filler * LINE_CAP)[: LINE_CAP // 2]


def took_s(pattern: re.Pattern[str], text: str) -> float:
    """CPU time of this thread, the better of several where the first is high: other work only
    ever adds to it.
    """
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        pattern.search(text)
        best = min(best, time.thread_time() - began)
        if best < MOST_S:
            break
    return best


@pytest.mark.parametrize("signature", all_signatures(), ids=lambda signature: signature.id)
def test_no_line_takes_long(signature: Signature) -> None:
    slow = {
        text: spent
        for text in worst(signature)
        if (spent := took_s(signature.regex, text)) >= MOST_S
    }
    assert not slow, [(round(spent, 3), text[:120]) for text, spent in slow.items()]


def test_what_backtracks_is_caught() -> None:
    evil = Signature("evil", ("abcdef",), r"abcdef (?:\w{1,40}\s?){1,40}$", "evil")
    assert any(took_within(evil.regex, text, 25) is None for text in worst_short(evil))


def worst_short(signature: Signature) -> Iterator[str]:
    """The same shapes, short enough that even the evil pattern comes to an end."""
    tree = parser.parse(signature.regex.pattern)
    for text in pumped(tree):
        yield text[:26] + "\x01"


def took_within(pattern: re.Pattern[str], text: str, growth: int) -> bool | None:
    """None where the time grows with the text like a power of two rather than of its length."""
    short, long = min(took_s(pattern, text[:18] + "\x01") for _ in range(3)), took_s(pattern, text)
    return None if long > growth * max(short, 1e-6) else True
