"""When does a rank work? By two small files of /proc, made up here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainprobe.supervise import activity
from trainprobe.supervise.activity import FILES_BYTES, RankActivity

MS = 1_000_000


class Files:
    """The files of a rank, which a test moves on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ran, self.waited, self.moved = folder, MS, MS, 0
        self.go()

    def go(self, *, ran_ms: float = 0.0, waited_ms: float = 0.0, moved: int = 0) -> None:
        self.ran += int(ran_ms * MS)
        self.waited += int(waited_ms * MS)
        self.moved += moved
        (self.folder / "schedstat").write_text(f"{self.ran} {self.waited} 7\n")
        (self.folder / "io").write_text(f"rchar: {self.moved}\nwchar: 0\n")


@pytest.fixture
def rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Files, RankActivity]:
    """A rank that has worked half of its time for a minute."""
    files = Files(tmp_path)
    monkeypatch.setattr(
        activity, "_open", lambda path: os.open(tmp_path / os.path.basename(path), os.O_RDONLY)
    )
    one = RankActivity(4711, 1)
    for place in range(120):
        files.go(ran_ms=250)
        assert one.sample(one._at + 0.5) is not None, place
    return files, one


def works(rank: RankActivity, *, looked_at: bool = False) -> bool:
    sample = rank.sample(rank._at + 0.5, looked_at=looked_at)
    assert sample is not None
    return sample.works


def test_a_rank_that_waits_for_a_processor_works(rank: tuple[Files, RankActivity]) -> None:
    files, one = rank
    files.go(ran_ms=1, waited_ms=400)
    assert works(one)
    assert not works(one)


def test_a_look_wakes_a_rank_which_is_no_work(rank: tuple[Files, RankActivity]) -> None:
    files, one = rank
    files.go(ran_ms=2, waited_ms=400)
    assert not works(one, looked_at=True)
    files.go(ran_ms=100, waited_ms=400)
    assert works(one, looked_at=True)


def test_files_that_move_are_work_whoever_looks(rank: tuple[Files, RankActivity]) -> None:
    files, one = rank
    for looked_at in (False, True):
        files.go(moved=FILES_BYTES)
        assert works(one, looked_at=looked_at)
