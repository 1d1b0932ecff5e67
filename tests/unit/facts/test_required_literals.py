"""The literal texts that a regular expression asks for."""

from __future__ import annotations

import re

import pytest

from tests.unit.logtext.test_phases import EXCERPTS
from trainprobe.logtext.phases import _data, read_phase
from trainprobe.signatures import all_signatures
from trainprobe.signatures.required_literals import required_literals, small_literals


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


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"(?i)\bWaiting (?:for )?\w+", ("waiting ",)),
        (r"(?:Load|Sav)ed it", ("ed it",)),
        (r"^(?:Validating|Evaluating)\b", ("validating", "evaluating")),
        (r"(?:saved|done)?x{0,3}yes", ("yes",)),
        (r"a{2}[bc]late(?!r)", ("late",)),
        (r"\d+|in words", ()),
    ],
)
def test_texts_in_small_letters_that_a_pattern_needs(pattern: str, texts: tuple[str, ...]) -> None:
    assert small_literals(pattern) == texts


def test_no_phase_is_missed_for_its_texts() -> None:
    """Each form, also alone, on every example of a wording and every excerpt that has a phase."""
    lines = [signature.example for signature in all_signatures()]
    lines += [line for _, rows in EXCERPTS.items() for text, _ in rows for line in text.split("\n")]
    forms = [form for row in _data()["phases"].values() for form in row["forms"]]
    met = 0
    for form in forms:
        texts, pattern = small_literals(form), re.compile(form)
        for line in lines:
            if pattern.search(line[:400]) is not None:
                met += 1
                assert any(text in line.lower() for text in texts), (form, line)
    assert met > len(forms)
    assert read_phase("NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>") is not None
