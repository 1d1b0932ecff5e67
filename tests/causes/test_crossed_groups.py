"""On which group a call is, as far as the lines that lead to it say."""

from __future__ import annotations

import pytest

from trainprobe.causes.crossed_groups import _loop_over
from trainprobe.facts import Block, SourceSite


def site(line: int, function: str, text: str, *blocks: tuple[str, str]) -> SourceSite:
    return SourceSite(
        ("E1",),
        "job",
        None,
        "/job/t.py",
        line,
        function,
        text,
        tuple(Block(kind, line - 1, head) for kind, head in blocks),
    )


CALL = site(9, "sync", "dist.all_reduce(x, group=peers)", ("def", "def sync(x, peers=None):"))
METHOD = site(
    9, "Net.sync", "dist.all_reduce(x, group=peers)", ("def", "def sync(self, x, peers):")
)


@pytest.mark.parametrize(
    ("call", "caller", "loops"),
    [
        (CALL, site(20, "main", "sync(x, g)", ("for", "for g in groups:")), True),
        (CALL, site(20, "main", "y = sync(x, peers=g)", ("for", "for _, g in named:")), True),
        (METHOD, site(20, "main", "net.sync(x, g)", ("for", "for g in groups:")), True),
        (CALL, site(20, "main", "sync(x, tensor)", ("for", "for x in values:")), False),
        (CALL, site(20, "main", "other(x, g)", ("for", "for g in groups:")), False),
        (CALL, site(20, "main", "sync(x, first(g))", ("for", "for g in groups:")), False),
    ],
)
def test_a_loop_over_groups_is_followed_through_the_callers_arguments(
    call: SourceSite, caller: SourceSite, *, loops: bool
) -> None:
    assert _loop_over("peers", (call, caller)) == (caller if loops else None)


def test_a_loop_around_the_call_itself() -> None:
    own = site(9, "main", "dist.barrier(group=peers)", ("for", "for peers in mine:"))

    assert _loop_over("peers", (own,)) == own
