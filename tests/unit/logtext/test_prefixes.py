"""Who says a line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.logtext.prefixes import Labels, learn_labels, read_prefixes


@pytest.mark.parametrize(
    ("line", "rank", "certain", "rest"),
    [
        (
            "[rank3]: Traceback (most recent call last):",
            3,
            True,
            "Traceback (most recent call last):",
        ),
        (
            '[rank3]:   File "train.py", line 3, in <module>',
            3,
            True,
            '  File "train.py", line 3, in <module>',
        ),
        ("[rank12]:", 12, True, ""),
        (
            "[rank3]:[E1121 10:11:12.345678 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog",
            3,
            True,
            "[E1121 10:11:12.345678 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog",
        ),
        ("[default3]:hello", 3, False, "hello"),
        (" [default0]: iteration 3", 0, False, "iteration 3"),
        ("[trainer3]:hello", 3, False, "hello"),
        ("[role3]: hello", 3, False, "hello"),
        ("[default3]:[rank11]: hello", 11, True, "hello"),
        ("[1,3]<stderr>:hello", 3, True, "hello"),
        ("[1,3]<stdout>: hello", 3, True, "hello"),
        ("[prterun-node7-4242@1,5]<stderr>: hello", 5, True, "hello"),
        ("[1,3]<stderr>:[rank3]: hello", 3, True, "hello"),
        ("[1,mpirank:3,algo-2]<stderr>:hello", 3, True, "hello"),
        ("[rank: 3] Seed set to 42", 3, True, "Seed set to 42"),
        ("rank3: hello", 3, True, "hello"),
        (
            "rank3[4242][MainThread]: INFO: composer: hello",
            3,
            True,
            "[MainThread]: INFO: composer: hello",
        ),
        ("> [rank3]: hello", 3, True, "hello"),
        ("worker_3  | [rank3]: hello", 3, True, "hello"),
        ("[pod/train-worker-3/pytorch] [rank5]: hello", 5, True, "hello"),
        ("2024-11-21T10:11:12.123456789Z [rank3]: hello", 3, True, "hello"),
        (
            "[2024-11-21 10:11:12,345] [INFO] [engine.py:12:step] [Rank 2] step=10",
            2,
            False,
            "[2024-11-21 10:11:12,345] [INFO] [engine.py:12:step] [Rank 2] step=10",
        ),
        (
            "[E ProcessGroupNCCL.cpp:475] [Rank 5] Watchdog caught",
            5,
            False,
            "[E ProcessGroupNCCL.cpp:475] [Rank 5] Watchdog caught",
        ),
        ("[Rank 5] Watchdog caught", 5, False, "[Rank 5] Watchdog caught"),
        (
            "[PG ID 0 PG GUID 0(default_pg) Rank 6] Watchdog",
            6,
            False,
            "[PG ID 0 PG GUID 0(default_pg) Rank 6] Watchdog",
        ),
        ("10:11:12 | INFO | rank=3 | hello", 3, False, "10:11:12 | INFO | rank=3 | hello"),
        ("Rank 3: loss 0.5", 3, False, "Rank 3: loss 0.5"),
        (
            "[GPU3] Epoch 1 | Batchsize: 32 | Steps: 10",
            3,
            False,
            "[GPU3] Epoch 1 | Batchsize: 32 | Steps: 10",
        ),
    ],
)
def test_ranks(line: str, rank: int, certain: bool, rest: str) -> None:
    said = read_prefixes(line)
    assert (said.rank, said.certain, said.rest) == (rank, certain, rest)


@pytest.mark.parametrize(
    "line",
    [
        "[2024]: hello",
        "[INFO] hello",
        "[INFO3]: hello",
        "[Errno2]: hello",
        "[train.py:12]: hello",
        "[main.cpp:3]: hello",
        "[3] hello",
        "[1,3] is a list",
        "3: hello",
        "node7: hello",
        "ValueError: rank 3 is wrong",
        "the rank 3 died",
        "[PG ID 2 PG GUID 5(mesh_tp) Rank 1] Watchdog",
        "0  | model | Linear | 4.2 M",
        "2024-11-21 10:11:12,345 - INFO - hello",
        "Step 3: loss 1",
        "train-worker-3 failed to connect",
        "layer1 | Linear | 4.2 M",
        "(pid 4242) hello",
        "",
    ],
)
def test_no_rank(line: str) -> None:
    said = read_prefixes(line)
    assert said.rank is None
    assert said.rest == line


@pytest.mark.parametrize(
    ("line", "host", "pid", "local", "rest"),
    [
        (
            "node7:4242:4301 [3] NCCL INFO Bootstrap : Using eth0",
            "node7",
            4242,
            3,
            "NCCL INFO Bootstrap : Using eth0",
        ),
        (
            "[2024-11-21 10:11:12] node7:4242:4301 [3] NCCL WARN hello",
            "node7",
            4242,
            3,
            "NCCL WARN hello",
        ),
        ("node7:4242:4301 NCCL INFO hello", "node7", 4242, None, "NCCL INFO hello"),
        ("[node7:0]: hello", "node7", None, 0, "hello"),
        ("(TrainWorker pid=123, ip=10.0.0.2) hello", "10.0.0.2", 123, None, "hello"),
        ("[pod/train-worker-3/pytorch] hello", "train-worker-3", None, None, "hello"),
        ("worker_3 | hello", "worker_3", None, None, "hello"),
        ("algo-1-ko3fy  | hello", "algo-1-ko3fy", None, None, "hello"),
        (
            "[node7:236649] *** Process received signal ***",
            "node7",
            236649,
            None,
            "*** Process received signal ***",
        ),
        ("mila.node7 [stderr] hello", "mila.node7", None, None, "hello"),
        ("Nov 21 10:11:12 node7 python[4242]: hello", "node7", 4242, None, "hello"),
        ("2024-11-21T10:11:12+0100 node7 torchrun[42]: hello", "node7", 42, None, "hello"),
        ('2024-11-21T10:11:12.1Z stderr F   File "x.py"', "", None, None, '  File "x.py"'),
    ],
)
def test_hosts_and_processes(
    line: str, host: str, pid: int | None, local: int | None, rest: str
) -> None:
    said = read_prefixes(line)
    assert (said.host, said.pid, said.local, said.rest) == (host, pid, local, rest)


def test_a_ray_worker_may_tell_its_rank() -> None:
    said = read_prefixes("(RayTrainWorker(rank=3) pid=7) hello")
    assert (said.rank, said.pid, said.rest) == (3, 7, "hello")


def test_five_prefixes_in_one_line() -> None:
    said = read_prefixes(
        "2024-11-21T10:11:12Z [pod/w-1/pytorch] [default1]:[rank9]: node7:4242:4301 [1] NCCL WARN"
        " hello"
    )
    assert (said.rank, said.local, said.host, said.pid, said.rest, said.certain) == (
        9,
        1,
        "node7",
        4242,
        "NCCL WARN hello",
        True,
    )


def test_the_stamp_is_found_before_and_behind_the_prefix() -> None:
    before, behind = (
        read_prefixes("2024-11-21T10:11:12Z [rank3]: hello"),
        read_prefixes("[rank3]:2024-11-21 10:11:12,000 - INFO - hello"),
    )
    assert before.when is not None
    assert behind.when is not None
    assert before.when.at == behind.when.at


def test_labels_of_srun_hold_for_the_whole_file_only() -> None:
    lines = [
        "0: loading",
        "1: loading",
        "2: loading",
        "0: step 1",
        "1: step 1",
        "2: ValueError: no",
        "srun: error: node7: task 2: Exited with exit code 1",
    ]
    labels = learn_labels(lines)
    assert labels == Labels(task=True)
    assert [read_prefixes(line, labels).rank for line in lines] == [0, 1, 2, 0, 1, 2, None]
    assert read_prefixes('03:   File "x.py"', labels).rest == '  File "x.py"'
    assert read_prefixes("0: loading").rank is None


def test_a_task_that_starts_several_ranks_is_no_rank() -> None:
    lines = ["0: loading", "1: loading", "1: [rank8]: step 1", "0: [rank3]: step 1"]
    labels = learn_labels(lines)
    assert labels.task
    assert [read_prefixes(line, labels).rank for line in lines] == [None, None, 8, 3]
    # even where no line of the sample shows it
    labels = learn_labels([*lines[:2], "1: loaded"])
    assert [read_prefixes(line, labels).rank for line in lines] == [0, 1, 8, 3]
    # a rank within a group is no other rank
    lines = ["0: loading", "2: [Rank 1] loading", "1: [Rank 1] loading"]
    labels = learn_labels(lines)
    assert [read_prefixes(line, labels).rank for line in lines] == [0, 2, 1]


def test_labels_of_hosts() -> None:
    lines = [
        "node7: loading",
        "node8: loading",
        "node7: [rank3]: hello",
        "node8: step 1",
        "node7: step 1",
    ]
    labels = learn_labels(lines)
    assert labels == Labels(host=True, hosts=frozenset({"node7", "node8"}))
    assert read_prefixes(lines[2], labels)[:3] == (3, None, "node7")


def test_labels_of_pods() -> None:
    labels = learn_labels(
        [
            "train-worker-3 pytorch hello",
            "train-worker-4 pytorch hello",
            'train-worker-3 pytorch   File "x.py"',
        ]
    )
    assert labels.pod
    assert read_prefixes("train-worker-3 pytorch   File", labels)[2:5] == (
        "train-worker-3",
        None,
        "  File",
    )
    columns = learn_labels(["alpha-1  | hello", "beta-1   | hello", "alpha-1  | [rank0]: hello"])
    assert read_prefixes("beta-1   | [rank1]: hello", columns)[:3] == (1, None, "beta-1")


def test_labels_of_hosts_without_numbers() -> None:
    lines = [
        f"{host}: {text}"
        for text in (
            "loading",
            "[2024-11-21 10:11:12,345] [INFO] [launch.py:12:main] hello",
            "step 1",
            "step 2",
        )
        for host in ("alpha", "beta")
    ]
    labels = learn_labels(lines)
    assert labels.hosts == {"alpha", "beta"}
    assert read_prefixes("alpha: Traceback (most recent call last):", labels)[2:5] == (
        "alpha",
        None,
        "Traceback (most recent call last):",
    )
    assert read_prefixes("gamma: no", labels).host == ""


@pytest.mark.parametrize("word", ["INFO", "ValueError", "srun", "step", "train.py", "loss"])
def test_words_that_are_no_hosts(word: str) -> None:
    assert (
        learn_labels([f"{word}: hello number {number} of ten" for number in range(10)]) == Labels()
    )


def test_one_line_of_each_task_is_no_count_of_lines() -> None:
    lines = ["0: ValueError: no", "1: ValueError: no", "2: ValueError: no", "3: ValueError: no"]
    assert learn_labels(lines) == Labels(task=True)


def test_numbers_in_brackets_and_pairs() -> None:
    assert learn_labels(["[0] a", "[1] b", "[0] c", "[1] d"]).bracket
    assert read_prefixes("[1] b", Labels(bracket=True)).rank == 1
    assert learn_labels(["[1,0] a", "[1,1] b", "[1,0] c", "[1,1] d"]).pair


def test_a_word_with_a_number_in_brackets_is_a_rank_where_most_lines_have_it() -> None:
    labels = learn_labels(["[r0] step 1", "[r1] [rank1]: Traceback (most", "[r0] step 2"])
    assert labels.word == "r"
    found = read_prefixes("[r1] [rank1]: KeyError: 'unknown'", labels)
    assert (found.rank, found.rest) == (1, "KeyError: 'unknown'")
    assert learn_labels(["[step1] a", "[step2] b", "[step3] c", "[step4] d"]).word == ""
    assert learn_labels(["[gpu0] a", "[w0] b", "[gpu1] c", "[w1] d"]).word == ""
    assert learn_labels(["[it10] a", "[it20] b", "[it30] c", "[it40] d"]).word == ""


@pytest.mark.parametrize("form", ["{}: {}", "  {} | {}", "{}\t{}", "{}. {}", "{:>5}  | {}"])
def test_pasted_line_numbers_are_no_ranks(form: str) -> None:
    texts = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    main()",
        "ValueError: no",
    ]
    lines = [form.format(number, text) for number, text in enumerate(texts, 118)]
    labels = learn_labels(lines)
    assert labels == Labels(numbered=True)
    said = [read_prefixes(line, labels) for line in lines]
    assert [one.rank for one in said] == [None] * 4
    assert [one.rest for one in said] == texts


def test_an_ordinary_log_has_no_labels() -> None:
    assert learn_labels(["ValueError: no", "RuntimeError: no", "KeyError: 'x'"]) == Labels()
    assert learn_labels(["step: 10 loss 1", "step: 20 loss 1", "step: 30 loss 1"]) == Labels()
    assert learn_labels([]) == Labels()


@given(st.text(max_size=200))
def test_any_text_has_a_speaker(text: str) -> None:
    said = read_prefixes(text, Labels(task=True, host=True, bracket=True, pair=True))
    assert text.endswith(said.rest)


@pytest.mark.parametrize(
    "unit", ["[rank1]:", "a", "[", "(a pid=", "node7:", "> ", "- ", "[x] ", "Rank ", " "]
)
def test_no_line_takes_long(unit: str) -> None:
    began = time.process_time()
    read_prefixes(unit * (200_000 // len(unit)), Labels(task=True, host=True))
    assert time.process_time() - began < 0.5


def test_a_daemon_that_puts_its_node_into_its_name_is_no_host() -> None:
    lines = ["slurmstepd-node7: error: *** JOB 4 ON node7 CANCELLED AT 2024-11-21T10:11:12 ***"] * 6

    assert learn_labels(lines).hosts == frozenset()
