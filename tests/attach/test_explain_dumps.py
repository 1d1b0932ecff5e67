"""`trainprobe explain` of what somebody saved: dumps and stack dumps alone, under any name, in
files or folders.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.recorder.dumps import entry, nccl, real
from tests.unit.recorder.stacks import ELSEWHERE, FORMS, IN_ALL_REDUCE, py_spy
from trainprobe.cli import run
from trainprobe.errors import UsageError
from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain

NAMES = (
    "nccl_trace_rank_{}",
    "node-{}/_dump",
    "run_dump_{}",
    "rank{}.pkl",
    "20261121T1010_rank_{}_of_3.pickle",
)


def save(folder: Path, dumps: dict[int, bytes], name: str = "trace_rank_{}") -> str:
    for rank, content in dumps.items():
        path = folder / name.format(rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(folder)


def blamed(report: Report) -> list[int]:
    return sorted({rank for suspect in report.suspects for rank in suspect.ranks})


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_rank_is_named_whatever_the_files_are_called(name: str, tmp_path: Path) -> None:
    report = explain([save(tmp_path / "dumps", real("missing"), name)])
    assert (report.verdict, blamed(report)) == ("hung", [1])
    assert "did not join all_reduce [4] Float at train.py:22" in report.suspects[0].says
    assert report.world.size == 3


@pytest.mark.parametrize(
    ("kind", "ranks", "cause", "words"),
    [
        ("type", [1], "rank-conditional-collective", "broadcast [4] Float at train.py:43"),
        ("pairing", [0], "rank-conditional-collective", "collective #4"),
        ("site", [0], "rank-conditional-collective", "barrier at train.py:26"),
        ("groups", [0, 1], "collective-order-mismatch", "group 1 (tensor)"),
        ("type-json", [1], "rank-conditional-collective", "broadcast"),
    ],
)
def test_where_the_ranks_part_is_named(
    kind: str, ranks: list[int], cause: str, words: str, tmp_path: Path
) -> None:
    report = explain([save(tmp_path, real(kind))])
    assert (report.verdict, blamed(report)) == ("hung", ranks)
    assert words in report.suspects[0].says
    assert report.causes[0].id == cause


def test_a_wedge_in_which_nobody_is_behind_blames_nobody_in_particular(tmp_path: Path) -> None:
    dumps = {
        rank: nccl([entry(1), entry(2, state="started")], {"0": [0, 1, 2]}) for rank in range(3)
    }
    report = explain([save(tmp_path, dumps)])
    assert (report.verdict, report.suspects[0].how) == ("hung", "stuck-inside")
    assert "the network or a GPU" in report.suspects[0].says
    assert not any(cause.named for cause in report.causes)


def test_dumps_in_which_nothing_is_pending_decide_nothing(tmp_path: Path) -> None:
    report = explain([save(tmp_path, real("done"))])
    assert (report.verdict, report.conclusive, report.causes) == ("undetermined", False, ())


def test_a_rank_without_a_dump_is_a_suspect(tmp_path: Path) -> None:
    report = explain(
        [save(tmp_path, {rank: content for rank, content in real("missing").items() if rank != 1})]
    )
    assert (report.verdict, blamed(report), report.suspects[0].how) == ("hung", [1], "not-visible")
    assert "Rank 1 left no dump" in report.suspects[0].says


@pytest.mark.parametrize("form", FORMS)
def test_stack_dumps_alone_locate_the_rank_that_is_elsewhere(form: str, tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"stack_rank_{rank}.txt").write_text(
            FORMS[form](500 + rank, ELSEWHERE if rank == 2 else IN_ALL_REDUCE)
        )
    report = explain([str(tmp_path)])
    assert (report.verdict, blamed(report)) == ("hung", [2])


def test_stacks_say_where_the_rank_stands_that_the_dumps_lack(tmp_path: Path) -> None:
    dumps = save(tmp_path / "dumps", real("missing"))
    stacks = []
    for rank in range(3):
        stacks.append(str(tmp_path / f"r{rank}.txt"))
        Path(stacks[-1]).write_text(py_spy(500 + rank, ELSEWHERE if rank == 1 else IN_ALL_REDUCE))
    report = explain([dumps, *stacks])
    assert (report.verdict, blamed(report)) == ("hung", [1])
    assert "data.py:40 in load_next" in report.suspects[0].says
    assert [row.pid for row in report.world.ranks] == [500, 501, 502]


def test_files_without_ranks_in_their_names_are_counted_in_order(tmp_path: Path) -> None:
    for place, name in enumerate(("alpha", "beta", "gamma")):
        (tmp_path / name).write_text(
            py_spy(700 + place, ELSEWHERE if name == "gamma" else IN_ALL_REDUCE)
        )
    assert blamed(explain([str(tmp_path)])) == [2]


def ranks_of(row: dict[str, Any]) -> list[int]:
    """The ranks for which a record of dumps stands."""
    return [one[0] for one in row["data"].get("dumps", [])] or [row["data"]["rank"]]


def test_a_case_is_kept_on_request_and_judged_the_same_again(tmp_path: Path) -> None:
    folder = save(tmp_path / "dumps", real("pairing"))
    kept = str(tmp_path / "kept")
    first = explain([folder], kept)
    rows = [json.loads(line) for line in Path(kept, "evidence.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["job"] + ["flight_recorder"] * 2
    assert sorted(ranks_of(row) for row in rows[1:]) == [[0], [1, 2]]  # two end alike
    assert (rows[0]["data"]["launcher"]["kind"], rows[0]["data"]["world_size"]) == ("unknown", 3)
    shutil.rmtree(folder)
    again = explain([kept])
    assert (again.verdict, again.suspects, again.causes) == (
        first.verdict,
        first.suspects,
        first.causes,
    )
    assert again.command == "explain"


def test_both_forms_of_one_rank_count_once_and_the_one_with_frames_is_read(tmp_path: Path) -> None:
    save(tmp_path, real("missing"), "rank_{}")
    save(tmp_path, real("missing-json"), "rank_{}.json")
    kept = tmp_path / "kept"
    assert blamed(
        explain(
            [
                str(tmp_path / f"rank_{rank}{ending}")
                for rank in range(3)
                for ending in (".json", "")
            ],
            str(kept),
        )
    ) == [1]
    rows = [json.loads(line) for line in (kept / "evidence.jsonl").read_text().splitlines()][1:]
    found = [(rank, row["outcome"]) for row in rows for rank in ranks_of(row)]
    assert sorted(found) == sorted(
        (rank, how) for rank in range(3) for how in ("ok", "unavailable")
    )
    assert {row["data"].get("format", "") for row in rows if row["outcome"] == "ok"} == {"pickle"}


def test_hostile_and_broken_files_among_good_ones_are_evidence_with_a_reason(
    tmp_path: Path,
) -> None:
    save(tmp_path, real("missing"))
    touched = tmp_path / "touched"
    (tmp_path / "evil_rank_7").write_bytes(
        b"\x80\x02cos\nmkdir\n(V" + str(touched).encode() + b"\ntR."
    )
    (tmp_path / "torn_rank_2").write_bytes(real("missing")[2][:700])
    (tmp_path / "train.log").write_text("step 1\n\x1b[31mstep 2\n")
    os.mkfifo(tmp_path / "pipe_rank_3")
    kept = tmp_path.parent / f"{tmp_path.name}-case"
    report = explain([str(tmp_path)], str(kept))
    assert not touched.exists()
    assert report.verdict == "hung"
    assert 1 in blamed(report)
    reasons = [
        row["reason"]
        for row in map(json.loads, (kept / "evidence.jsonl").read_text().splitlines())
        if row["outcome"] != "ok"
    ]
    assert any("asks for os.mkdir" in reason for reason in reasons)


def test_a_folder_of_traps_is_read_around(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "dumps"
    save(folder, real("missing"))
    os.mkfifo(folder / "rank_8")
    for name, to in (("rank_9", "/dev/zero"), ("rank_10", "rank_10"), ("again", "..")):
        (folder / name).symlink_to(to)
    (folder / "\x1b]0;evil\x07\nrank_11").write_text("no dump")
    (folder / "rank_12").touch()
    os.truncate(folder / "rank_12", 5 * 2**30)  # takes no room on the disk
    (folder / "rank_13").write_bytes(b"(" * 2**22)
    (folder / "rank_14.json").write_text("[" * 2**20)
    (folder / "rank_15.json").write_text('{"a":' * 2**18)
    (folder / "logs").mkdir()
    for number in range(6000):
        (folder / "logs" / f"{number}.out").touch()
    before = sorted(os.listdir(folder))
    assert run(["explain", str(folder), "--case", str(tmp_path / "case")]) == 1
    said = capsys.readouterr()
    assert [letter for letter in said.out + said.err if ord(letter) < 32 and letter != "\n"] == []
    assert "HUNG" in said.out
    assert (sorted(os.listdir(folder)), sorted(os.listdir(tmp_path))) == (before, ["case", "dumps"])


def test_nothing_to_judge_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(range(256)) * 9)
    with pytest.raises(UsageError, match=r"model\.bin"):
        explain([str(tmp_path)])
    with pytest.raises(UsageError, match="There is no file or folder"):
        explain([str(tmp_path / "nowhere")])


def test_the_command_prints_the_report_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save(tmp_path / "dumps", real("missing"))
    monkeypatch.chdir(tmp_path)
    assert run(["explain", "dumps", "--no-color", "--json", "report.json"]) == 1
    out = capsys.readouterr().out
    assert "HUNG." in out
    assert "Rank 1" in out
    assert json.loads(Path("report.json").read_text())["verdict"] == "hung"
    assert sorted(os.listdir()) == ["dumps", "report.json"]
    assert len(os.listdir(folder)) == 3
