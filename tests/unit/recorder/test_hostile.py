"""A hostile, torn or nonsensical dump: no code runs, nothing crashes, and neither time nor memory runs away."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import resource
import time
from pathlib import Path

import pytest

from tests.unit.recorder.dumps import real
from trainprobe.case import Case
from trainprobe.collect import plain_pickle
from trainprobe.collect.flight_reading import NoDumpError, read_dump
from trainprobe.collect.flight_recorder import look_at_flight_recorder


def refused(content: bytes) -> str:
    with pytest.raises(NoDumpError) as told:
        read_dump(content, deadline_s=5.0)
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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("GLOBAL", b"\x80\x02cos\nmkdir\n(Vx\ntR."),
        ("STACK_GLOBAL", b"\x80\x04\x8c\x02os\x8c\x05mkdir\x93."),
        ("INST", b"(Vx\nios\nmkdir\n."),
        ("OBJ", b"(cos\nmkdir\nVx\no."),
        ("NEWOBJ", b"\x80\x02]]\x81."),
        ("NEWOBJ_EX", b"\x80\x04]]]\x92."),
        ("REDUCE", b"\x80\x02]]R."),
        ("BUILD", b"\x80\x02}}b."),
        ("EXT1", b"\x80\x02\x82\x01."),
        ("EXT2", b"\x80\x02\x83\x01\x00."),
        ("EXT4", b"\x80\x02\x84\x01\x00\x00\x00."),
        ("PERSID", b"Px\n."),
        ("BINPERSID", b"\x80\x02Vx\nQ."),
        ("NEXT_BUFFER", b"\x80\x05\x97."),
    ],
)
def test_each_instruction_that_could_run_code_is_refused(name: str, content: bytes) -> None:
    with pytest.raises(plain_pickle.NotPlainError, match="asks for GLOBAL|asks for " + name):
        plain_pickle.loads(content)


MIB = 2**20


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02" + b"]" * (20 * MIB) + b".",
        b"\x80\x02" + b"}" * (20 * MIB) + b".",
        b"\x80\x02N" + b"2" * (20 * MIB) + b".",
        b"\x80\x02" + b"(" * (20 * MIB) + b".",
        b"\x80\x02K\x01" + b"\x85" * (20 * MIB) + b".",
        b"\x80\x02]" + b"".join(b"q%cj%s" % (place % 256, place.to_bytes(4, "little")) for place in range(1000)),
        b"\x80\x02\x8b\xff\xff\xff\x7f" + b"\xff" * MIB,
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x02X\xff\xff\xff\xffabc.",
        b"\x80\x04\x8d" + b"\xff" * 8 + b"abc.",
        b"\x80\x02Nr\xff\xff\xff\x7f.",
        b"I" + b"9" * (5 * MIB) + b"\n.",
        b"L" + b"9" * 4000 + b"L\n.",
        b"\x80\x02F" + b"1" * MIB,
        b"\x80\x02}(]Nu.",
        b"\x80\x02e.",
        b"\x80\x02K\x01K\x02a.",
        b"\x80\x02.",
    ],
    ids=range(18),
)
def test_bombs_end_early(content: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    refused(content)
    assert time.monotonic() - began < 6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024  # KiB


def test_a_thousand_laughs_stay_small() -> None:
    """Lists of lists that share their parts: small in memory, and astronomically large for whoever walks all of it."""
    level: list[object] = ["ha"] * 10
    for _ in range(60):
        level = [level] * 10
    row = {"profiling_name": "nccl:all_reduce", "frames": level, "input_sizes": level, "process_group": level, "collective_seq_id": level}
    began = time.monotonic()
    said = read_dump(pickle.dumps({"entries": [row] * 1000, "pg_config": {"0": {"ranks": level}}, "pg_status": {}}))
    assert time.monotonic() - began < 3
    assert len(said["entries"]) == 1000  # all of them pending


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


def test_bits_turned_over_never_crash() -> None:
    chance = random.Random(7)
    for kind in ("pairing", "missing-json"):
        whole = bytearray(real(kind)[0])
        for _ in range(1500):
            broken = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            with contextlib.suppress(NoDumpError):
                said = read_dump(bytes(broken), deadline_s=2.0)
                assert said["format"] in ("pickle", "json")


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
    assert [(record.subject.rank, record.outcome) for record in found] == [(rank, "unavailable") for rank in range(5)] + [(5, "ok")]
    assert all(record.reason for record in found[:5])
    assert len(found[5].data["entries"]) == 4
