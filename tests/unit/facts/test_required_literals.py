"""The literal text that a regular expression asks for."""

from __future__ import annotations

import pytest

from trainprobe.signatures import all_signatures
from trainprobe.signatures.required_literals import required_literal


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"Address already in use", "Address already in use"),
        (r"[Aa]ddress already in use", "ddress already in use"),
        (r"Watchdog caught (?P<what>\w{1,9}) timeout", "Watchdog caught"),
        (r"names? of hosts", "of hosts"),
        (r"cuda{2}x{0,3}late", "late"),
        (r"\[Errno 98\]: taken", "Errno 98]: taken"),
        (r"(?:only inside)", ""),
        (r"one way|or another", ""),
        (r"(?i)any case", ""),
    ],
)
def test_the_longest_text_outside_of_parentheses(pattern: str, literal: str) -> None:
    assert required_literal(pattern) == literal


def test_each_example_holds_the_literal_of_its_signature() -> None:
    for signature in all_signatures():
        literal = required_literal(signature.regex.pattern)
        match = signature.regex.search(signature.example)
        assert match is None or literal in match[0], signature.id
