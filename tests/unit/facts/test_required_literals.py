"""The literal texts that a regular expression asks for."""

from __future__ import annotations

import pytest

from trainprobe.signatures import all_signatures
from trainprobe.signatures.required_literals import required_literals


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"Address already in use", ("Address already in use",)),
        (r"[Aa]ddress already in use", ("ddress already in use",)),
        (r"Watchdog caught (?P<what>\w{1,9}) timeout", ("Watchdog caught",)),
        (r"names? of hosts", ("of hosts",)),
        (r"cuda{2}x{0,3}late", ("late",)),
        (r"\[Errno 98\]: taken", ("Errno 98]: taken",)),
        (r"(?:only inside)", ()),
        (r"one way|or another", ("one way", "or another")),
        (r"one way|(?:or another)", ()),
        (r"(?i)any case", ()),
    ],
)
def test_the_longest_text_outside_of_parentheses(pattern: str, literals: tuple[str, ...]) -> None:
    assert required_literals(pattern) == literals


def test_each_example_holds_a_literal_of_its_signature() -> None:
    for signature in all_signatures():
        literals = required_literals(signature.regex.pattern)
        match = signature.regex.search(signature.example)
        if literals and match is not None:
            assert any(literal in match[0] for literal in literals), signature.id
