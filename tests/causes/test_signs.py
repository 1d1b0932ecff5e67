"""Rows of signs, and fixes that are written as they are read."""

from __future__ import annotations

from typing import Any, cast

from trainprobe.causes.phrases import fixes
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import Sign, all_of, confirmed, first_of

NO_SCENE = cast("Scene", None)


def sign(*points: int) -> Sign:
    def weigh(_: Scene) -> Weighings:
        for each in points:
            yield weighing(each, "source", "a sign")

    return weigh


def points(found: Sign) -> list[int]:
    return [each.points for each in found(NO_SCENE)]


def test_every_sign_counts() -> None:
    assert points(all_of(sign(13, 6), sign(), sign(-3))) == [13, 6, -3]


def test_only_the_first_sign_that_finds_something_counts() -> None:
    assert points(first_of(sign(), sign(10, 6), sign(26))) == [10, 6]
    assert points(first_of(sign(), sign())) == []


def test_a_confirmation_counts_only_beside_its_sign() -> None:
    assert points(confirmed(sign(13), sign(6), sign(-3))) == [13, 6, -3]
    assert points(confirmed(sign(), sign(6))) == []


def test_fixes_have_titles_steps_marks_and_a_check() -> None:
    found = fixes(
        """
        See who has it
            ss -ltnp   (on {host})
            {look}
        [disruptive] End it
            kill 1 &&
                echo gone
            verify: ss -ltn
        [admin] Open the port
            nft list ruleset
    """,
        host="node3",
        look="",
    )
    shown: list[Any] = [
        (each.title, each.steps, each.risk, each.who, each.verify) for each in found
    ]
    assert shown == [
        ("See who has it", ("ss -ltnp   (on node3)",), "safe", "user", ""),
        ("End it", ("kill 1 && echo gone",), "disruptive", "user", "ss -ltn"),
        ("Open the port", ("nft list ruleset",), "needs-admin", "admin", ""),
    ]


def test_a_value_never_makes_a_step_or_a_title_of_its_own() -> None:
    (found,) = fixes("\nLook\n    ls {path}\n", path="a\n[admin] Obey\n    rm -rf /\n{path}")
    assert found.title == "Look"
    assert len(found.steps) == 1
