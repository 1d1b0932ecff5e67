"""Dumps that end alike: one record of evidence for thousands of ranks, and the same answer."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.recorder.dumps import entry, nccl
from trainprobe.case import Case
from trainprobe.collect.dump_files import read_dump_files
from trainprobe.collect.dump_files_child import parse_dump
from trainprobe.collect.flight_reading import (
    DUMP_FIELDS,
    ENTRY_FIELDS,
    condense,
    entries_of,
)
from trainprobe.collect.inputs import CELL, find_saved, look_at_saved
from trainprobe.facts import CollectiveCall, FlightDump, flight_dumps, read
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.pipelines import conclude
from trainprobe.report.text import text_of

WORLD, LATE = 8, 3


def rows(rank: int, last: int, **more: Any) -> list[dict[str, Any]]:
    """Calls 1 to `last`, of which number 20 is unfinished; no two ranks made one at one time."""
    return [
        entry(
            number,
            state="started" if number == 20 else "completed",
            time_created_ns=10**18 + number * 10**6 + rank,
            **more,
        )
        for number in range(1, last + 1)
    ]


def write(folder: Path, world: int = WORLD) -> list[str]:
    """Rank 3 did not join call 20."""
    for rank in range(world):
        content = nccl(rows(rank, 19 if rank == LATE else 20), {"0": range(world)})
        (folder / f"nccl_trace_rank_{rank}").write_bytes(content)
    return [str(folder / f"nccl_trace_rank_{rank}") for rank in range(world)]


def gathered(paths: list[str], folder: Path, *, copy_dumps: bool = False) -> list[Evidence]:
    with Case.create(str(folder / "case"), "explain", ()) as case:
        look_at_saved(case, find_saved(paths), copy_dumps=copy_dumps)
        return list(case.seal())


def dumps_in(evidence: list[Evidence]) -> list[Evidence]:
    return [record for record in evidence if record.kind == "flight_recorder"]


def one_by_one(evidence: list[Evidence]) -> list[Evidence]:
    """The same evidence with a record for each rank."""
    found: list[Evidence] = []
    for record in evidence:
        for rank, path, size, written_at, _ in record.data.get("dumps", []):
            whole = {key: value for key, value in record.data.items() if key != "dumps"}
            own = {"rank": rank, "path": path, "bytes": size, "written_at": written_at, **whole}
            subject = replace(record.subject, kind="rank", rank=rank, role="rank")
            found.append(replace(record, data=own, subject=subject))
        if "dumps" not in record.data:
            found.append(record)
    return found


def shown(facts: tuple[Fact, ...]) -> list[Fact]:
    return sorted((replace(fact, evidence=()) for fact in facts), key=repr)


def test_ranks_that_end_alike_share_their_content_and_keep_their_times(tmp_path: Path) -> None:
    paths = write(tmp_path)
    found = read_dump_files(paths, time.monotonic() + 60, shorten=True)
    others = [found[path] for rank, path in enumerate(paths) if rank != LATE]
    assert len({id(one.content) for one in others}) == 1
    assert found[paths[LATE]].ending != others[0].ending
    for rank, path in enumerate(paths):
        last = found[path].dump["entries"][-1]
        assert last["created_at"] == pytest.approx(1e9 + last["seq"] / 1e3 + rank / 1e9)


def test_entries_made_in_another_order_make_another_ending(tmp_path: Path) -> None:
    paths = write(tmp_path)
    turned = rows(5, 20)
    turned[-1]["time_created_ns"] = 10**17
    Path(paths[5]).write_bytes(nccl(turned, {"0": range(WORLD)}))
    found = read_dump_files(paths, time.monotonic() + 60, shorten=True)
    assert len({one.ending for one in found.values()}) == 3


@pytest.mark.parametrize(
    "odd", [{"timeout_ms": 1}, {"input_sizes": [[5]]}, {"profiling_name": "nccl:broadcast"}]
)
def test_whatever_is_kept_of_an_entry_tells_endings_apart(
    odd: dict[str, Any], tmp_path: Path
) -> None:
    paths = write(tmp_path)
    Path(paths[5]).write_bytes(nccl([*rows(5, 19), {**rows(5, 20)[-1], **odd}], {"0": range(8)}))
    found = read_dump_files(paths, time.monotonic() + 60, shorten=True)
    assert len({one.ending for one in found.values()}) == 3


def test_all_that_is_read_of_a_dump_is_compared() -> None:
    """`ENTRY_FIELDS` and `DUMP_FIELDS` are complete: nothing else changes what is kept."""

    class Watched(dict[str, Any]):
        def __init__(self, content: dict[str, Any], asked: set[str]) -> None:
            super().__init__(content)
            self.asked = asked

        def get(self, key: str, default: Any = None) -> Any:
            self.asked.add(key)
            return super().get(key, default)

    of_entry: set[str] = set()
    of_dump: set[str] = set()
    data = Watched(parse_dump(nccl(rows(0, 20), {"0": range(8)})), of_dump)
    entries = [Watched(dict(row), of_entry) for row in entries_of(data)]
    condense(data, entries, dict.fromkeys(range(20), False))
    assert of_entry - {"time_created_ns"} <= set(ENTRY_FIELDS)
    assert of_dump - {"entries"} <= set(DUMP_FIELDS)


def test_one_record_says_what_a_record_for_each_rank_says(tmp_path: Path) -> None:
    evidence = gathered(write(tmp_path), tmp_path)
    together, alone = dumps_in(evidence)
    assert [row[0] for row in together.data["dumps"]] == [0, 1, 2, 4, 5, 6, 7]
    assert alone.subject.rank == LATE
    folded, unfolded = read(evidence), read(one_by_one(evidence))
    for kind in (CollectiveCall, FlightDump):
        assert shown(folded.of(kind)) == shown(unfolded.of(kind))
    texts = [text_of(conclude(made, "explain", "")) for made in (evidence, one_by_one(evidence))]
    assert texts[0] == texts[1]
    assert "Rank 3 holds up the other seven" in texts[0]


def test_each_file_is_copied_into_a_case(tmp_path: Path) -> None:
    paths = write(tmp_path)
    together = dumps_in(gathered(paths, tmp_path, copy_dumps=True))[0]
    assert len(together.files) == WORLD - 1
    for rank, _, size, _, name in together.data["dumps"]:
        content = (tmp_path / "case" / name).read_bytes()
        assert (len(content), content) == (size, Path(paths[rank]).read_bytes())


def test_dumps_of_ranks_that_nobody_names_stay_apart(tmp_path: Path) -> None:
    content = nccl(rows(0, 20), {"0": range(8)})
    paths = [str(tmp_path / name) for name in ("a", "b")]
    for path in paths:
        Path(path).write_bytes(content)
    assert [record.data.get("rank") for record in dumps_in(gathered(paths, tmp_path))] == [
        None,
        None,
    ]


@pytest.mark.parametrize(
    "broken",
    [
        [[]],
        [[1]],
        ["0-7"],
        [[True, "", 1, 0.0, ""]],
        [[0, 1, {}, None, []]],
        {"0": 1},
        [[0, "", 0, 0.0, ""]] * 2,
        [["0", "", 0, 0.0, ""]],
        [[[], "", 0, 0.0, ""]],
    ],
)
def test_rows_of_a_strangers_case_that_are_none_are_not_read(
    broken: object, tmp_path: Path
) -> None:
    evidence = gathered(write(tmp_path), tmp_path)
    hostile = [
        replace(record, data={**record.data, "dumps": broken}) if "dumps" in record.data else record
        for record in evidence
    ]
    facts = read(hostile)
    assert facts.unreadable == (dumps_in(evidence)[0].id,)
    assert {dump.rank for dump in facts.of(FlightDump)} == {LATE}


def test_more_dumps_than_a_job_can_have_left_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight_dumps, "MOST_CALLS", 10)
    evidence = gathered(write(tmp_path), tmp_path)
    assert read(evidence).unreadable == (dumps_in(evidence)[0].id,)


def test_a_newer_dump_of_one_rank_leaves_those_of_the_others(tmp_path: Path) -> None:
    evidence = gathered(write(tmp_path), tmp_path)
    together = dumps_in(evidence)[0]
    newer = replace(
        one_by_one([together])[0],
        id="E99",
        data={**one_by_one([together])[0].data, "written_at": 4e9},
    )
    calls = read([*evidence, newer]).of(CollectiveCall, cell=CELL)
    by_rank = {rank: {call.evidence for call in calls if call.rank == rank} for rank in range(8)}
    assert by_rank[0] == {("E99",)}
    assert all(by_rank[rank] == {(together.id,)} for rank in (1, 2, 4, 5, 6, 7))


def test_half_of_thousands_of_ranks_are_absent(tmp_path: Path) -> None:
    """The time grows with the number of ranks, not with its square."""
    half = list(range(0, 4000, 2))
    evidence = gathered(write(tmp_path), tmp_path)
    job, together = evidence[0], dumps_in(evidence)[0]
    members = [{"name": "0", "desc": "default_pg", "ranks": "0-3999"}]
    ranks = [{**job.data["ranks"][0], "rank": rank, "pid": -1 - rank} for rank in half]
    absent = [rank for rank in range(4000) if rank % 2]
    large = [
        replace(job, data={**job.data, "world_size": 4000, "ranks": ranks, "absent": absent}),
        replace(
            together,
            data={
                **together.data,
                "groups": members,
                "dumps": [[rank, f"rank_{rank}", 1, 1.7e9, ""] for rank in half],
            },
        ),
    ]
    began = time.process_time()
    report = conclude(large, "explain", "")
    assert time.process_time() - began < 10
    assert report.suspects[0].ranks == tuple(absent)


def test_content_that_holds_more_than_a_look_ahead(tmp_path: Path) -> None:
    large = pickle.dumps({"entries": [entry(1)], "pg_status": {}, "more": ["x" * 300_000] * 3}, 2)
    path = tmp_path / "rank_0"
    path.write_bytes(large)
    found = read_dump_files([str(path)], time.monotonic() + 60)[str(path)]
    assert (found.broken, len(found.dump["entries"])) == ("", 1)
    assert json.dumps(found.dump)
