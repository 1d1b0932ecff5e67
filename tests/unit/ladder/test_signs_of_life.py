"""Signs of life, from files that grow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainprobe.ladder.signs_of_life import Growing, Signs


def say(path: Path, *rows: dict[str, object], torn: str = "") -> None:
    with path.open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows) + torn)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "witness").mkdir()
    return tmp_path


def test_a_growing_file_gives_each_byte_once_and_survives_being_cut_back(tmp_path: Path) -> None:
    path = tmp_path / "out"
    growing = Growing(str(path))
    assert growing.new() == b""

    path.write_bytes(b"one")
    assert (growing.new(), growing.new()) == (b"one", b"")
    path.write_bytes(b"onetwo")
    assert growing.new() == b"two"
    path.write_bytes(b"cut")  # shorter than before: its beginning is all there is to read
    assert growing.new() == b"cut"


def test_the_witness_counts_steps_per_rank_and_a_torn_line_waits_for_its_rest(folder: Path) -> None:
    signs = Signs(str(folder / "witness"))
    path = folder / "witness" / "rank1.77.jsonl"
    say(
        path,
        {"event": "note", "name": "start"},
        {"event": "note", "name": "step", "optimizer_steps": 2},
        torn='{"event":"note","name":"st',
    )
    signs.read()
    assert (signs.steps(1, alone=False), signs.by_pid[77].rank) == (2, 1)

    say(path, torn='ep","optimizer_steps":3}\nnonsense\n[1]\n')
    signs.read()
    assert signs.steps(1, alone=False) == 3
    assert signs.steps(0, alone=False) == 0


def test_the_start_of_the_interpreter_is_no_progress(folder: Path) -> None:
    signs = Signs(str(folder / "witness"))
    say(folder / "witness" / "rank0.5.jsonl", {"event": "note", "name": "start"})
    signs.read()
    assert (signs.last_at(), signs.sign_at(0)) == (0.0, 0.0)

    say(folder / "witness" / "rank0.5.jsonl", {"event": "note", "name": "loader.first_batch"})
    signs.read()
    assert signs.sign_at(0) == signs.last_at() > 0


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("step 0 loss 1.2\nstep 10 loss 1.1\n", 2),
        ("Epoch 1 | Step: 5/100 | loss 3\n", 1),
        ("iter=3\niteration 4\nglobal_step=5\n", 3),
        (" 12%|#  | 12/100 [00:01<00:09]\r 13%|#  | 13/100 [00:01<00:09]", 2),
        ("step by step guide\nbatch size 32\nloading 3/4 files\n", 0),
        ("Steps completed: none\n", 0),
    ],
)
def test_step_numbers_in_output(folder: Path, text: str, count: int) -> None:
    out = folder / "rank0.out"
    signs = Signs("", [(0, str(out))])
    out.write_text(text)
    signs.read()

    assert signs.steps(0, alone=True) == count


def test_a_stream_that_all_share_counts_for_a_rank_without_a_witness_only(folder: Path) -> None:
    out = folder / "launcher.out"
    signs = Signs(str(folder / "witness"), [(None, str(out))])
    out.write_text("step 1\nstep 2\nstep 3\n")
    say(folder / "witness" / "rank0.5.jsonl", {"event": "note", "name": "start"})
    signs.read()

    assert signs.steps(1, alone=False) == 3
    assert signs.steps(0, alone=False) == 0  # its witness would have told


def test_a_journal_beats_when_it_changes(folder: Path) -> None:
    signs = Signs(str(folder / "witness"))
    ring = folder / "witness" / "rank0.5.ring"
    ring.write_bytes(bytes(1024))
    assert not signs.beat()

    ring.write_bytes(b"\1" + b'{"op":"all_reduce"}' + bytes(1000))
    assert signs.beat()
    assert not signs.beat()
    assert signs.any_collective


def test_an_empty_loader_and_uncounted_steps_are_kept(folder: Path) -> None:
    signs = Signs(str(folder / "witness"))
    say(
        folder / "witness" / "norank.9.jsonl",
        {"event": "note", "name": "loader.empty", "dataset_len": 0},
        {
            "event": "note",
            "name": "exit",
            "optimizer_steps": None,
            "torch_imported": True,
            "batches": 0,
            "backward_calls": None,
        },
    )
    signs.read()
    one = signs.by_pid[9]

    assert (one.rank, one.loader_empty, one.exited, one.steps_uncounted, one.torch_imported) == (
        None,
        True,
        True,
        True,
        True,
    )


def test_a_process_that_sets_its_rank_in_python_is_that_rank_from_then_on(folder: Path) -> None:
    signs = Signs(str(folder / "witness"))
    say(folder / "witness" / "norank.9.jsonl", {"event": "note", "name": "start"})
    signs.read()
    before = signs.by_pid[9].rank

    say(
        folder / "witness" / "rank1.9.jsonl",
        {"event": "note", "name": "step", "optimizer_steps": 4},
    )
    signs._listed_at = 0.0  # the folder is listed ten times a second at most
    signs.read()
    after = signs.by_pid[9].rank
    assert (before, after, signs.steps(1, alone=False)) == (None, 1, 4)
