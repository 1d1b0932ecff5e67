"""The environment of a launch."""

from __future__ import annotations

import socket

from trainprobe.targets.launch import (
    Part,
    clean,
    easier_to_read,
    free_port,
    of_torchrun,
    one_rank,
    whole,
)


def test_an_earlier_launch_does_not_leak_in() -> None:
    left = clean(
        {
            "RANK": "3",
            "WORLD_SIZE": "8",
            "MASTER_ADDR": "x",
            "TORCHELASTIC_RUN_ID": "y",
            "TRAINPROBE_EVENTS": "z",
            "HOME": "/h",
            "NCCL_DEBUG": "INFO",
        }
    )

    assert left == {"HOME": "/h", "NCCL_DEBUG": "INFO"}
    assert clean({"TRAINPROBE_IMPORT_TIMEOUT_S": "5"}) == {"TRAINPROBE_IMPORT_TIMEOUT_S": "5"}


def test_a_rank_gets_what_torchrun_would_give_it() -> None:
    env = one_rank(1, Part(4, 4, 29400), "id", {})

    assert (
        env["RANK"],
        env["WORLD_SIZE"],
        env["LOCAL_RANK"],
        env["LOCAL_WORLD_SIZE"],
        env["GROUP_RANK"],
    ) == ("1", "4", "1", "4", "0")
    assert (
        env["MASTER_ADDR"],
        env["MASTER_PORT"],
        env["TORCHELASTIC_RUN_ID"],
        env["OMP_NUM_THREADS"],
    ) == ("127.0.0.1", "29400", "id", "1")
    assert "OMP_NUM_THREADS" not in one_rank(0, whole(4), "id", {"OMP_NUM_THREADS": "8"})
    assert "OMP_NUM_THREADS" not in one_rank(0, whole(1), "id", {})


def test_what_the_user_has_set_is_left_alone_in_both_spellings() -> None:
    on = easier_to_read(
        {"PYTHONFAULTHANDLER": "", "TORCH_NCCL_TRACE_BUFFER_SIZE": "0", "PYTHONPATH": "/mine"},
        "/cell/dumps",
        "/w",
        "/cell/witness",
    )

    assert set(on.left) == {"PYTHONFAULTHANDLER", "TORCH_NCCL_TRACE_BUFFER_SIZE"}
    assert not {"PYTHONFAULTHANDLER", "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"} & set(
        on.env
    )
    assert (
        on.env["TORCH_FR_DUMP_TEMP_FILE"]
        == on.env["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
        == "/cell/dumps/rank_"
    )
    assert (on.env["PYTHONPATH"], on.env["TRAINPROBE_WITNESS_DIR"], on.env["PYTHONUNBUFFERED"]) == (
        "/w:/mine",
        "/cell/witness",
        "1",
    )
    assert "PYTHONPATH" not in easier_to_read({}, "/d", "", "").env


def test_torchrun_writes_a_file_per_rank_unless_the_user_redirects() -> None:
    assert of_torchrun({}, "/logs").env == {"PET_LOG_DIR": "/logs", "PET_TEE": "3"}
    assert of_torchrun({"PET_REDIRECTS": "1"}, "/logs").env == {"PET_LOG_DIR": "/logs"}
    assert of_torchrun({"PET_TEE": "1", "PET_LOG_DIR": "/mine"}, "/logs").env == {}


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port()))
