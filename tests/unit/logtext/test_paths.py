"""Ranks and hosts in names of files."""

from __future__ import annotations

import pytest

from trainprobe.logtext.paths import host_of_path, rank_of_path, ranks_of_paths


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("logs/none_q1w2/attempt_0/3/stderr.log", 3),
        ("logs/none_q1w2/attempt_0/3/error.json", 3),
        ("3/stdout.log", 3),
        ("rank_3.log", 3),
        ("rank3.err", 3),
        ("out/rank-12.txt.gz", 12),
        ("exp3/rank1/out.txt", 1),
        ("run_5/node7_rank_3_2024-11-21.log", 3),
        ("log.3", 3),
        ("stderr.0", 0),
        ("slurm-12345-3.out", 3),
        ("train-3.out", 3),
        ("worker-3.log", 3),
        ("gpu3.log", 3),
        ("trainer_2.err", 2),
    ],
)
def test_ranks(path: str, rank: int) -> None:
    assert rank_of_path(path) == rank


@pytest.mark.parametrize(
    "path",
    [
        "slurm-12345.out",
        "slurm-12345_3.out",
        "12345.out",
        "3.log",
        "2024-11-21.log",
        "train_2024-11-21_10-00-00.log",
        "20241121.txt",
        "run-3.out",
        "exp3/log.txt",
        "issue-123.txt",
        "case_12.log",
        "version_3/metrics.txt",
        "epoch-4.out",
        "torch2.log",
        "train_proc_4242.log",
        "dataloader_worker_3.log",
        "job-12345_node7.out",
        "slurm-12345-node7.out",
        "node7.log",
        "train.log",
        "",
        "/",
    ],
)
def test_no_rank(path: str) -> None:
    assert rank_of_path(path) is None


def test_files_that_differ_in_one_running_number() -> None:
    assert ranks_of_paths(["o/0.log", "o/1.log", "o/2.log"]) == {
        "o/0.log": 0,
        "o/1.log": 1,
        "o/2.log": 2,
    }
    assert ranks_of_paths(["o/out_0.txt", "o/out_1.txt"]) == {"o/out_0.txt": 0, "o/out_1.txt": 1}
    assert ranks_of_paths(["o/run_0.log", "o/run_1.log"]) == {}
    assert ranks_of_paths(["o/5.log", "o/9.log"]) == {}
    assert ranks_of_paths(["o/7.log"]) == {}
    assert ranks_of_paths(["rank_4.log", "rank_9.log"]) == {"rank_4.log": 4, "rank_9.log": 9}


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("slurm-12345-node7.out", "node7"),
        ("logs/gpu-node-03/rank_3.log", "gpu-node-03"),
        ("ip-10-0-0-2/train.log", "ip-10-0-0-2"),
        ("nccl_debug.node7.4242.log", "node7"),
        ("train-worker-3.txt", "train-worker-3"),
        ("train.log", ""),
        ("gpu3.log", ""),
        ("h100-run.log", ""),
        ("slurm-12345.out", ""),
        *((f"{name}/rank_0.log", "") for name in ("run1", "train1", "log1", "qwen25", "gcn12")),
    ],
)
def test_hosts(path: str, host: str) -> None:
    assert host_of_path(path) == host


def test_a_name_of_a_hosts_shape_is_a_host_where_lines_say_so() -> None:
    assert host_of_path("gcn12/rank_0.log", {"gcn12"}) == "gcn12"
    assert host_of_path("slurm-7-r1i0n5.out", {"r1i0n5"}) == "r1i0n5"
    assert host_of_path("run1/rank_0.log", {"gcn12"}) == ""


def test_a_lone_number_behind_a_log_is_no_rank_and_a_full_row_of_them_is() -> None:
    assert rank_of_path("log_0412.txt") is None
    assert rank_of_path("run/log-7.log") is None
    assert rank_of_path("log.0412") is None
    assert ranks_of_paths(["log_0412.txt"]) == {}
    assert ranks_of_paths(["h3.log"]) == {}
    assert ranks_of_paths(["log_0.txt", "log_1.txt", "log_2.txt"]) == {
        "log_0.txt": 0,
        "log_1.txt": 1,
        "log_2.txt": 2,
    }
    assert rank_of_path("err.3") == 3
