"""Knobs: how each is applied to a command, and which of them cannot matter."""

from __future__ import annotations

import pytest

from trainprobe.ladder.knobs import OURS, Turn, turns, users

ARGV = (
    "train.py",
    "--batch-size",
    "8",
    "--max_seq_length=512",
    "--fp16",
    "--rows",
    "{rows}",
    "data.workers=4",
)


def by_label(
    argv: tuple[str, ...] = ARGV,
    given: tuple[tuple[str, str], ...] = (),
    *,
    gpus: int = 0,
    witness: bool = True,
    **environ: str,
) -> dict[str, Turn]:
    return {turn.label: turn for turn in turns(argv, given, environ, gpus=gpus, witness=witness)}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "batch_size",
            "4",
            (
                "train.py",
                "--batch-size",
                "4",
                "--max_seq_length=512",
                "--fp16",
                "--rows",
                "{rows}",
                "data.workers=4",
            ),
        ),
        (
            "max-seq-length",
            "64",
            (
                "train.py",
                "--batch-size",
                "8",
                "--max_seq_length=64",
                "--fp16",
                "--rows",
                "{rows}",
                "data.workers=4",
            ),
        ),
        (
            "fp16",
            "false",
            (
                "train.py",
                "--batch-size",
                "8",
                "--max_seq_length=512",
                "--rows",
                "{rows}",
                "data.workers=4",
            ),
        ),
        (
            "fp16",
            "auto",
            (
                "train.py",
                "--batch-size",
                "8",
                "--max_seq_length=512",
                "--fp16",
                "auto",
                "--rows",
                "{rows}",
                "data.workers=4",
            ),
        ),
        (
            "data.workers",
            "0",
            (
                "train.py",
                "--batch-size",
                "8",
                "--max_seq_length=512",
                "--fp16",
                "--rows",
                "{rows}",
                "data.workers=0",
            ),
        ),
        ("attn", "eager", (*ARGV, "--attn", "eager")),
    ],
)
def test_the_users_knob_replaces_its_option_or_is_added(
    name: str, value: str, words: tuple[str, ...]
) -> None:
    change = users(ARGV, name, value)

    assert (change.argv, change.how) == (words, "option")
    assert not change.env


def test_an_upper_case_name_is_a_variable() -> None:
    change = users(ARGV, "NCCL_P2P_DISABLE", "1")

    assert (change.env, change.argv, change.how) == ({"NCCL_P2P_DISABLE": "1"}, (), "environment")


def test_the_users_knobs_come_first_and_take_the_place_of_ours() -> None:
    found = turns(ARGV, (("lr", "0"), ("workers", "0")), {}, gpus=0, witness=True)

    assert [turn.label for turn in found][:2] == ["lr=0", "workers=0"]
    assert [turn.label for turn in found].count("workers=0") == 1
    assert len(found) == len(OURS) + 1


def test_halves_are_taken_of_options_that_stand_in_the_command() -> None:
    found = by_label()
    batch, length = found["batch=half"].change, found["length=half"].change

    assert batch is not None
    assert (batch.how, batch.argv[2]) == ("option", "4")
    assert length is not None
    assert length.argv[3] == "--max_seq_length=256"


def test_what_cannot_matter_says_why() -> None:
    found = by_label(("train.py", "--batch_size", "1"), witness=False)

    assert found["batch=half"].because == "--batch_size is 1 already"
    assert "none of its usual options" in found["length=half"].because
    assert (
        found["workers=0"].because
        == "it is applied from inside the ranks, and the settings leave the witness out"
    )
    assert found["device=cpu"].because == found["gpus=one"].because == "no GPU is visible here"
    assert all(turn.change is None for label, turn in found.items() if label != "threads=1")


def test_with_gpus_they_are_hidden_or_reduced_to_the_first_that_is_visible() -> None:
    found = by_label(gpus=2, CUDA_VISIBLE_DEVICES="3,1")
    one, none = found["gpus=one"].change, found["device=cpu"].change

    assert one is not None
    assert one.env == {"CUDA_VISIBLE_DEVICES": "3"}
    assert none is not None
    assert none.env == {"CUDA_VISIBLE_DEVICES": ""}
    assert by_label(gpus=1)["gpus=one"].because == "only one GPU is visible here"


def test_what_no_option_reaches_is_a_word_to_the_witness() -> None:
    change = by_label(("train.py",))["batch=half"].change

    assert change is not None
    assert (change.how, change.env) == ("witness", {"TRAINPROBE_KNOB": "batch=half"})
