"""Every message is recognised by its own pattern, and no cause asks for one that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainprobe.signatures.messages import messages

MESSAGES = messages()
CAUSES = Path(__file__).parents[3] / "trainprobe" / "causes"


@pytest.mark.parametrize("id_", sorted(MESSAGES))
def test_a_message_matches_its_example(id_: str) -> None:
    message = MESSAGES[id_]

    assert re.search(message.pattern, message.example), id_


def test_every_message_is_asked_for_by_a_cause() -> None:
    asked = {
        id_
        for file in CAUSES.rglob("*.py")
        for id_ in re.findall(r'message\(\s*"([^"]+)"', file.read_text(encoding="utf-8"))
    }

    assert asked == set(MESSAGES)
