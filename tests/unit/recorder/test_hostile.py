"""A hostile, torn or nonsensical dump: no code runs, nothing crashes, and neither time nor
memory runs away.
"""

from __future__ import annotations

import os
import pickle
import random
import time
from pathlib import Path

import pytest

from tests.unit.recorder.dumps import real
from trainprobe.case import Case
from trainprobe.collect.dump_files_child import NoDumpError, read_dump
from trainprobe.collect.flight_recorder import look_at_flight_recorder


def refused(content: bytes) -> str:
    with pytest.raises((NoDumpError, MemoryError)) as told:
        read_dump(content)
    return str(told.value)


class Payload:
    def __init__(self, touched: str) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.touched,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_code_of_a_pickle_is_run(protocol: int, tmp_path: Path) -> None:
    target = tmp_path / "touched"
    why = refused(pickle.dumps({"entries": [], "pg_status": Payload(str(target))}, protocol))
    assert "which plain data never need" in why
    assert not target.exists()


MIB = 2**20


def test_a_list_that_holds_itself() -> None:
    row: dict[str, object] = {"profiling_name": "nccl:x"}
    row["frames"] = row["input_sizes"] = [row]
    loop: list[object] = []
    loop.append(loop)
    row["process_group"] = loop
    assert read_dump(pickle.dumps({"entries": [row], "pg_status": {}}))["entries"][0]["op"] == "x"


def test_a_dump_torn_at_every_byte() -> None:
    whole = real("missing")[0]
    for size in range(len(whole)):
        refused(whole[:size])


def test_random_bytes_are_no_dump() -> None:
    chance = random.Random(11)
    for size in (1, 2, 5, 30, 200, 5000):
        for start in (b"", b"\x80\x02", b"{", b"\x80\x04\x95"):
            for _ in range(60):
                refused(start + chance.randbytes(size))


def test_a_fifo_a_device_and_a_folder_in_place_of_a_dump(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rank_0")
    (tmp_path / "rank_1").symlink_to("/dev/zero")
    (tmp_path / "rank_2").mkdir()
    (tmp_path / "rank_3").symlink_to(tmp_path / "nowhere")
    with (tmp_path / "rank_4").open("wb") as file:
        file.truncate(65 * MIB)
    (tmp_path / "rank_5").write_bytes(real("missing")[0])
    began = time.monotonic()
    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        found = look_at_flight_recorder(case, "job", str(tmp_path / "rank_"))
    assert time.monotonic() - began < 3
    assert [(record.subject.rank, record.outcome) for record in found] == [
        (rank, "unavailable") for rank in range(5)
    ] + [(5, "ok")]
    assert all(record.reason for record in found[:5])
    assert len(found[5].data["entries"]) == 4
