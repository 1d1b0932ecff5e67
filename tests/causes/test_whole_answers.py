"""Answers as they are read: nothing untrue, nothing twice, and commands that fit what was seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.causes.test_components import FRAMES, judged
from trainprobe.report.text import text_of


def said(lines: list[str], folder: Path) -> str:
    return " ".join(text_of(judged(lines, folder)).split())


def watchdog(op: str = "BROADCAST") -> str:
    return (
        f"[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum=97, OpType={op}, Timeout(ms)=1800000) ran for 1800768 milliseconds before"
        " timing out."
    )


def test_the_headline_is_not_said_again_below_it(tmp_path: Path) -> None:
    text = said(["RuntimeError: NCCL communicator in a state that is quite new"], tmp_path)
    below = text.partition("timeline")[0]
    assert below.count("in a state that is quite new") == 1
    assert below.count("The trouble shows in NCCL") == 1


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (
            "wandb: ERROR Error communicating with wandb process",
            "curl -sSI -m 5 https://api.wandb.ai",
        ),
        ("wandb: ERROR Error communicating with wandb process", "export WANDB_MODE=offline verify"),
    ],
)
def test_the_service_that_is_named_is_the_one_to_ask(
    line: str, command: str, tmp_path: Path
) -> None:
    text = said([f"2031-02-17 22:40:24,365 (worker_7) : {line}"], tmp_path)
    assert command.removesuffix(" verify") in text
    assert "MLFLOW" not in text
    assert "22:40:24,365" not in text


ECC = ["RuntimeError: CUDA error: uncorrectable ECC error encountered"]


def test_commands_of_slurm_are_for_jobs_under_slurm(tmp_path: Path) -> None:
    assert "scontrol" not in said(ECC, tmp_path)
    assert "scontrol" in said(["srun: error: node7: task 3: Exited with code 1", *ECC], tmp_path)


def test_nobody_gave_up_where_the_log_only_stops(tmp_path: Path) -> None:
    text = said(["Building extension module fused_rope...", "Allowing ninja to set"], tmp_path)
    assert "was compiling when the log stops" in text
    assert "gave up" not in text


@pytest.mark.parametrize(
    ("work", "title"),
    [
        ("Evaluating bbox...", "Evaluate on all ranks"),
        ("Retrieving optimizer state dict...", "Save on all ranks"),
        (
            "Map (num_proc=14):  70%|███████   | 65238/93197 [29:57<12:50, 36.3 examples/s]",
            "Do it before",
        ),
    ],
)
def test_a_long_task_is_mended_by_what_it_is(work: str, title: str, tmp_path: Path) -> None:
    text = said([work, watchdog()], tmp_path)
    assert f"do 1. {title}" in text, text


def test_a_launcher_that_was_hung_up_says_so(tmp_path: Path) -> None:
    lines = [
        "step 800 loss 1.0",
        "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down",
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 27 closing signal SIGHUP",
    ]
    text = said(lines, tmp_path)
    assert "The launcher said: Sending process 27 closing signal SIGHUP" in text
    assert "it was sent that signal itself" in text
    assert "A rank said" not in text


def test_names_that_were_printed_are_not_asked_for(tmp_path: Path) -> None:
    error = (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a"
        " new one. This error indicates that your module has parameters that were not used"
    )
    told = "Parameters which did not receive grad for rank 3: mask.update.bias, mask.update.weight"
    text = said([error, told], tmp_path)
    assert "Let the names be printed" not in text
    number = "Parameter indices which did not receive grad for rank 0: 1"
    assert "the loss does not use (parameter 1)" in said([error, number], tmp_path)


def test_the_lock_that_was_asked_for_is_named(tmp_path: Path) -> None:
    line = (
        "2031-02-27 15:56:22,424 - /env/filelock/_api.py[line:254] - DEBUG: Attempting to acquire"
        " lock 1401 on /home/u/.triton/tune.lock"
    )
    text = said([line], tmp_path)
    assert "waits for the lock on /home/u/.triton/tune.lock" in text
    assert "fuser -v /home/u/.triton/tune.lock" in text


def test_a_place_stands_behind_a_message_without_its_full_stop(tmp_path: Path) -> None:
    text = said([*FRAMES, "RuntimeError: File a.pt cannot be opened."], tmp_path)
    assert "cannot be opened at train.py:40" in text


def test_a_file_without_a_place_is_not_read_anywhere(tmp_path: Path) -> None:
    line = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
    text = said([line], tmp_path)
    assert "A file of weights is cut short" in text


def test_the_object_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    (tmp_path / "child.log").write_text("EOFError: Ran out of input\n", encoding="utf-8")
    lines = [
        "Traceback (most recent call last):",
        '  File "/env/lib/python3.11/multiprocessing/popen_spawn_posix.py", line 47, in _launch',
        "    reduction.dump(process_obj, fp)",
        "AttributeError: Can't pickle local object 'make.<locals>.row'",
    ]
    assert "Can't pickle local object 'make.<locals>.row'" in said(lines, tmp_path)


def test_a_traceback_that_is_there_is_not_asked_for(tmp_path: Path) -> None:
    text = said([*FRAMES, "KeyError: 'label'"], tmp_path)
    assert "Mend train.py:40" in text
    assert "@record" not in text


def test_a_shortened_path_into_torch_is_no_place_of_the_program(tmp_path: Path) -> None:
    lines = [
        *FRAMES,
        '  File ".../torch/serialization.py", line 965, in save',
        "    _save(obj, opened_zipfile)",
        "RuntimeError: PytorchStreamWriter failed writing file data/305: file write failed",
    ]
    assert "at train.py:40 in main" in said(lines, tmp_path)


def test_a_gloo_that_fails_is_given_no_setting_that_only_nccl_knows(tmp_path: Path) -> None:
    mesh = (
        "ERROR 02-11 21:40:13 base.py:574] RuntimeError: Gloo connectFullMesh failed with"
        " [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"
    )
    text = said([mesh], tmp_path)
    assert "GLOO_SOCKET_IFNAME=eth0" in text
    assert "^lo" not in text
    assert "base.py:574" not in text


def test_versions_are_named_where_there_are_some(tmp_path: Path) -> None:
    text = said(["RuntimeError: Numpy is not available"], tmp_path)
    assert "themselves name the versions" not in text
    assert "pip install 'numpy<2'" in text
