"""Many stacks as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.model.ranks import fold_ranks, unfold_ranks
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.tree import classes, prefix_tree

MAIN, STEP, SAVE = (
    Frame("main", "/a/train.py", 9),
    Frame("step", "/a/train.py", 5),
    Frame("save", "/a/save.py", 2),
)


def test_ranks_in_short() -> None:
    assert fold_ranks([3, 0, 2]) == "0,2-3"
    assert fold_ranks([]) == ""
    assert fold_ranks(range(8)) == "0-7"


@given(st.sets(st.integers(0, 3000), max_size=50))
def test_folding_and_unfolding(ranks: set[int]) -> None:
    assert unfold_ranks(fold_ranks(ranks)) == tuple(sorted(ranks))


@pytest.mark.parametrize("text", ["x", "3-1", "0-99999999999", "1,,2"])
def test_nonsense_is_no_set_of_ranks(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        unfold_ranks(text)


def test_equal_stacks_are_one_class_wherever_the_code_lies() -> None:
    moved = tuple(
        Frame(frame.name, frame.file.replace("/a/", "/other/"), frame.line)
        for frame in (MAIN, STEP)
    )
    found = classes({0: (MAIN, STEP), 1: (MAIN, SAVE), 2: moved})
    assert [ranks for ranks, _ in found] == [(0, 2), (1,)]


def test_the_tree_carries_the_ranks() -> None:
    (root,) = prefix_tree({0: (MAIN, STEP), 1: (MAIN, SAVE), 2: (MAIN, STEP)})
    assert root.ranks == [0, 1, 2]
    assert [(branch.frame.name, branch.ranks) for branch in root.next] == [
        ("step", [0, 2]),
        ("save", [1]),
    ]
