"""The names whose values tell how ranks parted."""

from __future__ import annotations

import pytest

from trainprobe.stacks.frames import Frame
from trainprobe.stacks.parting_names import (
    arguments_of_calls,
    counts,
    first_of,
    names_of_header,
    names_that_tell,
    targets_of,
)

C10D = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
FIT = ("/job/train.py", "fit")


def stack(line: int, *below: Frame) -> tuple[Frame, ...]:
    return (Frame("<module>", "/job/train.py", 90), Frame("fit", "/job/train.py", line), *below)


@pytest.mark.parametrize(
    ("header", "names", "counted", "targets"),
    [
        ("for i, x in enumerate(rows):", ("i", "x", "rows"), ("i",), ("i", "x")),
        ("for step in range(first, last):", ("step", "first", "last"), ("step",), ("step",)),
        ("for name in self.touched:", ("name",), (), ("name",)),
        ("while step < last and not stop:", ("step", "last", "stop"), ("step",), ()),
        ("if done or loss.isnan():", ("done", "loss"), (), ()),
        ("elif left == 0:", ("left",), (), ()),
        ("with lock:", (), (), ()),
        ("for x in [", (), (), ()),
    ],
)
def test_a_header_tells_its_names(
    header: str, names: tuple[str, ...], counted: tuple[str, ...], targets: tuple[str, ...]
) -> None:
    assert set(names_of_header(header)) == set(names)
    assert counts(header) == counted
    assert targets_of(header) == targets


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("for step in range(start + 1, last):", ("start",)),
        ("for step in range(last):", ()),
        ("for i, step in enumerate(trange(first, last)):", ("first",)),
        ("while start < last:", ()),
    ],
)
def test_where_a_range_begins(header: str, names: tuple[str, ...]) -> None:
    assert first_of(header) == names


def test_only_functions_in_which_several_ranks_stand_are_asked() -> None:
    loop = {"blocks": [{"kind": "for", "text": "for i, x in enumerate(rows):"}]}
    alone = {"blocks": [{"kind": "for", "text": "for row in rows:"}]}
    sites = {("/job/train.py", 40): loop, ("/job/evaluate.py", 7): alone}
    stacks = [stack(40), stack(52, Frame("evaluate", "/job/evaluate.py", 7))]

    assert names_that_tell(stacks, sites) == {FIT: ("i", "x", "rows")}
    assert names_that_tell(stacks[:1], sites) == {}


def test_torchs_own_arguments_name_the_other_end() -> None:
    sends = stack(4, Frame("send", C10D, 2750))
    gives = stack(5, Frame("broadcast", C10D, 3151))
    reduces = stack(6, Frame("all_reduce", C10D, 3252))

    asked = arguments_of_calls([sends, gives, reduces])
    assert asked == {(C10D, "send"): ("dst",), (C10D, "broadcast"): ("src",)}
