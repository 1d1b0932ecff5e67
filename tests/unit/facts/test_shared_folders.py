"""Folders that are another disk on some nodes, by files that pairs of nodes wrote for each other."""

from __future__ import annotations

import pytest

from trainprobe.facts import Difference, read
from trainprobe.model.evidence import Evidence


def differences(*tries: tuple[str, str, bool]) -> list[tuple[tuple[str, ...], str, bool]]:
    """The nodes that differ, how much it matters, and whether nobody is in the wrong."""
    records = [
        Evidence(
            f"E{place}",
            "pair",
            cell="pairs",
            data={
                "arm": "tcp",
                "outcome": "passed",
                "members": [a, b],
                "files": [{"a": a, "b": b, "folder": "/data", "seen": seen}],
            },
        )
        for place, (a, b, seen) in enumerate(tries, 1)
    ]
    found = read(records).of(Difference)
    assert all(one.name == "fs.shared./data" and one.check == "fs.same" for one in found)
    return [(one.hosts, one.severity, one.tie) for one in found]


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        ((("1", "2", True), ("2", "3", True)), []),
        (
            (("1", "2", True), ("1", "3", False), ("2", "3", False)),
            [(("3",), "blocker", False)],
        ),
        (
            (("1", "2", True), ("3", "4", True), ("1", "3", False)),
            [(("1", "2", "3", "4"), "blocker", True)],
        ),
        # two that were not tried with each other may share it
        ((("1", "2", True), ("3", "4", True)), []),
        ((("1", "2", False),), [(("1", "2"), "warning", True)]),
        ((("1", "3", False), ("2", "4", False)), [(("1", "3"), "warning", True)]),
    ],
)
def test_who_has_another_disk(
    tries: tuple[tuple[str, str, bool], ...],
    expected: list[tuple[tuple[str, ...], str, bool]],
) -> None:
    assert differences(*tries) == expected


def test_files_of_strangers_say_nothing() -> None:
    data = {
        "arm": "tcp",
        "outcome": "passed",
        "members": ["1", "2"],
        "files": [
            {"a": "1", "b": "9", "folder": "/data", "seen": False},
            {"a": "1", "b": "2", "folder": "/data", "seen": "no"},
            {"a": "1", "b": "1", "folder": "/data", "seen": False},
            "nonsense",
        ],
    }
    assert read([Evidence("E1", "pair", cell="pairs", data=data)]).of(Difference) == ()
