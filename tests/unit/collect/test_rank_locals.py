"""Numbers of ranks in the locals that py-spy prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainprobe.collect.rank_locals import RankLocals, parse

SPAWN = "/envs/lib/python3.11/site-packages/torch/multiprocessing/spawn.py"
PEFT = "/envs/lib/python3.11/site-packages/peft/tuners/lora.py"


def frame(name: str, file: str, **values: str) -> dict[str, Any]:
    return {
        "name": name,
        "filename": file,
        "line": 3,
        "locals": [{"name": key, "repr": value} for key, value in values.items()],
    }


def dump(*outermost_first: dict[str, Any], pid: int = 77) -> bytes:
    other = {"os_thread_id": 5, "frames": [frame("run", "/job/train.py", rank="6")]}
    return json.dumps(
        [other, {"os_thread_id": pid, "frames": list(reversed(outermost_first))}]
    ).encode()


def test_mp_spawn_and_the_script() -> None:
    said = parse(
        dump(
            frame("_wrap", SPAWN, i="1", args="(4,)"),
            frame("worker", "/job/train.py", rank="5", world_size="8", local_rank="1"),
        ),
        77,
    )
    assert said == RankLocals(rank=5, local_rank=1, world_size=8, spawned=1)


def test_a_process_of_its_own_beside_those_of_mp_spawn_is_told() -> None:
    process = "/usr/lib/python3.11/multiprocessing/process.py"
    run = frame("BaseProcess.run", process)

    assert parse(dump(run, frame("archive", "/job/archiver.py")), 77) == RankLocals(beside=True)
    assert not parse(dump(run, frame("_wrap", SPAWN, i="2")), 77).beside
    assert not parse(dump(frame("_bootstrap", process)), 77).beside, "it comes to its end"


def test_the_outermost_frame_counts_and_libraries_do_not() -> None:
    said = parse(
        dump(
            frame("main", "/job/train.py", rank="2"),
            frame("inner", "/job/lora.py", rank="16"),
            frame("update", PEFT, world_size="3"),
        ),
        77,
    )
    assert said == RankLocals(rank=2)


def test_global_rank_is_the_better_name() -> None:
    assert parse(dump(frame("main", "/job/train.py", rank="0", global_rank="4")), 77).rank == 4


@pytest.mark.parametrize("value", ["-1", "True", "'3'", "3.0", "99999999", "<Tensor 3>", "٣"])
def test_what_is_no_small_whole_number_is_not_taken(value: str) -> None:
    assert parse(dump(frame("main", "/job/train.py", rank=value)), 77) == RankLocals()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"{}",
        b"[1]",
        b'[{"frames": 3}]',
        b'[{"os_thread_id": 77, "frames": [{"locals": {"rank": 1}}]}]',
        b"[" * 100000,
    ],
)
def test_nonsense_says_nothing(content: bytes) -> None:
    assert parse(content, 77) == RankLocals()
