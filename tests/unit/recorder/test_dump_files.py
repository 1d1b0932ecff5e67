"""Dumps in files, read by CPython's unpickler in a child: nothing hostile gets out of it, and
what is left out of the evidence decides nothing.
"""

from __future__ import annotations

import copyreg
import json
import pickle
import random
import resource
import time
from pathlib import Path

import pytest

from tests.unit.recorder.dumps import CELL, entry, facts_of, in_group, nccl, real
from tests.unit.recorder.test_hostile import Payload
from trainprobe.collect import dump_files
from trainprobe.collect.dump_files import read_dump_files
from trainprobe.collect.inputs import find_saved
from trainprobe.facts import CollectiveCall, read
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.waits.divergence import earliest_divergence

MIB = 2**20
GOOD = nccl([entry(1)], {"0": [0]})
# Each level is a tuple of two references to the level before; its hash takes 2**200 steps.
HASH_BOMB = b"\x80\x02)q\x00" + b"h\x00h\x00\x86q\x00" * 200 + b"}h\x00Ns."
LAUGHS: list[object] = ["ha"] * 10
for _ in range(60):
    LAUGHS = [LAUGHS] * 10
BOMBS = {
    "a key that is hashed for ever": HASH_BOMB,
    "a memo of 16 GB": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "lists": b"\x80\x02" + b"]" * (20 * MIB) + b".",
    "dictionaries": b"\x80\x02" + b"}" * (20 * MIB) + b".",
    "the same again": b"\x80\x02N" + b"2" * (20 * MIB) + b".",
    "marks": b"\x80\x02" + b"(" * (20 * MIB) + b".",
    "tuples 200,000 deep": b"\x80\x02K\x01" + b"\x85" * 200_000 + b".",
    "a number of 2 GB": b"\x80\x02\x8b\xff\xff\xff\x7f" + b"\xff" * MIB,
    "a text of 2 GB": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "bytes of 2**63": b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7fabc.",
    "a byte array of 2**62": b"\x80\x05\x96" + b"\xff" * 7 + b"\x3fabc.",
    "a frame that lies": b"\x80\x04\x95" + b"\xff" * 7 + b"\x7f}.",
    "digits": b"L" + b"9" * (4 * MIB) + b"L\n.",
    "an extension": b"\x80\x02\x82\x01.",
    "a persistent object": b"\x80\x02Vx\nQ.",
    "a buffer": b"\x80\x05\x97.",
    "a class": b"\x80\x02cos\nmkdir\n(Vx\ntR.",
    "a class by name": b"\x80\x04\x8c\x02os\x8c\x05mkdir\x93.",
    "an instance": b"(Vx\nios\nmkdir\n.",
    "a new object": b"\x80\x02]]\x81.",
    "a call": b"\x80\x02]]R.",
    "a state": b"\x80\x02}}b.",
    "a persistent text": b"Px\n.",
    "a float of 1 MB": b"\x80\x02F" + b"1" * MIB,
    "a key that is a list": b"\x80\x02}(]Nu.",
    "nothing to append to": b"\x80\x02e.",
    "nothing": b"\x80\x02.",
}


def put(folder: Path, files: dict[str, bytes]) -> list[str]:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [str(folder / name) for name in files]


@pytest.mark.parametrize("shorten", [False, True])
@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_dump_costs_neither_us_nor_the_others(
    name: str, shorten: bool, tmp_path: Path
) -> None:
    paths = put(tmp_path, {"rank_0": GOOD, "rank_1": BOMBS[name], "rank_2": GOOD})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    found = read_dump_files(paths, time.monotonic() + 60, shorten=shorten)
    assert [bool(found[path].broken) for path in paths] == [False, True, False]
    assert len(found[paths[2]].dump["entries"]) == 1
    assert time.monotonic() - began < 55
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB


@pytest.mark.parametrize("shorten", [False, True])
def test_sizes_that_are_for_ever_nested_cost_at_most_their_dump(
    shorten: bool, tmp_path: Path
) -> None:
    """Lists of lists that share their parts: small in memory, and astronomically large for whoever
    walks or compares all of it.
    """
    row = entry(1, input_sizes=LAUGHS, frames=LAUGHS, process_group=LAUGHS)
    laughs = pickle.dumps({"entries": [row] * 100, "pg_status": {}})
    paths = put(tmp_path, {"rank_0": GOOD, "rank_1": laughs, "rank_2": laughs, "rank_3": GOOD})
    began = time.monotonic()
    found = read_dump_files(paths, time.monotonic() + 60, shorten=shorten)
    assert not found[paths[0]].broken
    assert not found[paths[3]].broken
    assert time.monotonic() - began < 55


@pytest.mark.parametrize("shorten", [False, True])
def test_bits_turned_over_never_crash(shorten: bool, tmp_path: Path) -> None:
    chance = random.Random(7)
    files = {}
    for kind in ("pairing", "missing-json"):
        whole = real(kind)[0]
        for number in range(300):
            broken = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            files[f"{kind}_{number}"] = bytes(broken)
    paths = put(tmp_path, files)
    found = read_dump_files(paths, time.monotonic() + 120, shorten=shorten)
    read = [one.dump["format"] for one in found.values() if not one.broken]
    assert set(read) == {"pickle", "json"}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_code_of_a_pickle_is_run(protocol: int, tmp_path: Path) -> None:
    copyreg.add_extension("os", "mkdir", 0xF0)
    try:
        content = pickle.dumps(
            {"entries": [], "pg_status": Payload(str(tmp_path / "touched"))}, protocol
        )
    finally:
        copyreg.remove_extension("os", "mkdir", 0xF0)
    (path,) = put(tmp_path, {"rank_0": content})
    assert read_dump_files([path], time.monotonic() + 30)[path].broken
    assert not (tmp_path / "touched").exists()


def parted(last_of_0: int, odd_at: int | None = None, count: int = 300) -> dict[str, bytes]:
    """Three ranks of a group; rank 0 ends early, or calls another operation in the middle."""
    dumps = {}
    for rank in range(3):
        rows = []
        for number in range(1, (last_of_0 if rank == 0 else count) + 1):
            odd = rank == 0 and number == odd_at
            done = number < last_of_0 or rank == 0
            more = {"time_created_ns": 10**18 + number * 10**6 + rank, **in_group("0", 0)}
            operation, state = (
                "broadcast" if odd else "all_reduce",
                ("completed" if done else "scheduled"),
            )
            rows.append(entry(number, operation, state=state, **more))
        dumps[f"nccl_trace_rank_{rank}"] = nccl(rows, {"0": [0, 1, 2]})
    return dumps


@pytest.mark.parametrize(
    "dumps", [parted(299), parted(200), parted(300, 40), parted(20), parted(250, 240)]
)
def test_what_is_left_out_decides_nothing(dumps: dict[str, bytes], tmp_path: Path) -> None:
    paths = put(tmp_path, dumps)
    found = read_dump_files(paths, time.monotonic() + 60, shorten=True)
    shortened = read(
        Evidence(
            f"E{rank}",
            "flight_recorder",
            Subject("rank", rank=rank),
            CELL,
            data={"rank": rank, "path": path, **found[path].dump},
        )
        for rank, path in enumerate(paths)
    )
    whole = facts_of(dict(enumerate(dumps.values())))
    parting = [
        earliest_divergence(
            facts.of(CollectiveCall, cell=CELL), range(3), hung=True, dumped=range(3)
        )
        for facts in (whole, shortened)
    ]
    assert parting[0] is not None
    assert parting[0] == parting[1]


def test_ranks_that_stand_elsewhere_in_their_last_common_call_are_read_whole(
    tmp_path: Path,
) -> None:
    """Rank 0 saves a checkpoint at call 40; its calls pair with others of the ranks from there."""
    dumps = {}
    for rank in range(3):
        lines = [10 if rank or number < 40 else 77 for number in range(1, 301)]
        rows = [
            entry(number, line=line) for number, line in enumerate(lines[: 300 - (rank == 0)], 1)
        ]
        dumps[f"rank_{rank}"] = nccl(rows, {"0": [0, 1, 2]})
    paths = put(tmp_path, dumps)
    found = read_dump_files(paths, time.monotonic() + 60, shorten=True)
    assert [len(one.dump["entries"]) for one in found.values()] == [299, 300, 300]


def test_of_what_all_did_alike_only_the_end_is_kept(tmp_path: Path) -> None:
    paths = put(tmp_path, parted(299))
    found = read_dump_files(paths, time.monotonic() + 60, shorten=True)
    assert max(len(one.dump["entries"]) for one in found.values()) <= dump_files.KEPT + 2


def test_json_and_pickles_are_told_from_logs(tmp_path: Path) -> None:
    files = {
        "a_rank_0": GOOD,
        "b.json": json.dumps({"pg_status": {}, "entries": []}).encode(),
        "c.log": b'{"loss": 1}\n{"loss": 2}\n',
        "d.log": b"hello\n",
    }
    saved = find_saved(put(tmp_path, files))
    assert [Path(dump.path).name for dump in saved.dumps] == ["a_rank_0", "b.json"]
    assert [Path(path).name for path in saved.rest] == ["c.log", "d.log"]
