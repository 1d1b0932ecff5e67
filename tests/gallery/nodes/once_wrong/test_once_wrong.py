"""The scoring of situations, and that each has been made and looked at."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gallery.nodes.once_wrong import EVERY, RESULTS
from tests.gallery.nodes.once_wrong.__main__ import read
from tests.gallery.nodes.once_wrong.situation import Seen, Wrongs, ends, leaves_out, names

LOCKED = names(("file-lock-held",), ("node2",), (1,), never=("world complete",))


def seen(exit_code: int | None = 1, said: str = "", exclude: tuple[str, ...] = ()) -> Seen:
    report: dict[str, Any] = {
        "verdict": "hung",
        "causes": [{"id": "file-lock-held", "hosts": ["node2"], "ranks": [1]}],
        "readiness": {"exclude": list(exclude)},
    }
    return Seen(exit_code, report, said, 1.0)


@pytest.mark.parametrize(
    ("wrongs", "found", "words"),
    [
        (LOCKED, seen(), []),
        (LOCKED, seen(None), ["it did not end"]),
        (LOCKED, Seen(2, {}, "", 1.0), ["no report, exit 2"]),
        (LOCKED, seen(said="world complete"), ["it says “world complete”"]),
        (names(("disk-full",), ("node2",)), seen(), ["first cause file-lock-held"]),
        (names(("file-lock-held",), ("node3",)), seen(), ["hosts node2"]),
        (names(("file-lock-held",), ("node2",), (0,)), seen(), ["ranks 1"]),
        (leaves_out("node3"), seen(10, exclude=("node3",)), []),
        (leaves_out("node3"), seen(3), ["exit 3", "left out: none"]),
        (ends(1, words=("fs.system",)), seen(1, "fs.system\nis full"), []),
        (ends(1), seen(0, "Traceback"), ["exit 0", "it says “Traceback”"]),
    ],
)
def test_the_score_tells_right_from_wrong(wrongs: Wrongs, found: Seen, words: list[str]) -> None:
    assert wrongs(found) == words


def test_each_situation_has_a_row() -> None:
    assert [one["situation"] for one in read(RESULTS)] == [one.name for one in EVERY]
