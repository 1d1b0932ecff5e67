"""The same job told in other dresses gives the same answer: prefixes, colours, stamps, packing,
splitting, noise, order.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.waits.logs_by_hand import C10D, CLOSED, traceback, watchdog
from trainprobe.facts import LogFailure, read
from trainprobe.model.diagnosis import Report
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain
from trainprobe.saved_case import read_case

BOUNDED = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
Spoken = tuple[int, str]
STEPS: list[Spoken] = [
    (rank, f"step {step}/500 loss {2.0 / step:.4f}") for step in range(1, 4) for rank in range(4)
]


def lines(rank: int, text: str) -> list[Spoken]:
    return [(rank, line) for line in text.rstrip("\n").split("\n")]


def gone() -> str:
    return traceback("RuntimeError", CLOSED, line=28, leaf=C10D)


class Job(NamedTuple):
    """What four ranks said, in order; the cause and the ranks that are right."""

    name: str
    said: list[Spoken]
    cause: str
    ranks: list[int]


JOBS = (
    Job(
        "user",
        [
            *STEPS,
            *lines(2, traceback("KeyError", "'labels'")),
            *(said for rank in (0, 1, 3) for said in lines(rank, gone())),
        ],
        "user-exception",
        [2],
    ),
    Job(
        "memory",
        [
            *STEPS,
            *lines(
                1,
                traceback(
                    "torch.OutOfMemoryError",
                    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity "
                    "of 79.10 GiB of which 1.10 GiB is free.",
                ),
            ),
            *lines(0, gone()),
            *lines(3, gone()),
        ],
        "cuda-oom",
        [1],
    ),
    Job(
        "import",
        lines(3, traceback("ModuleNotFoundError", "No module named 'flashy'")),
        "import-failure",
        [3],
    ),
)
NOISE = (
    "INFO loader: shard 17 of 64 is open",
    "wrote 12 scalars",
    "UserWarning: the given array is not writable",
    "throughput 812.3 samples per second, memory 31.2 GiB",
    "",
    "checkpoint is kept in /data/run-7",
)


class Answer(NamedTuple):
    verdict: str
    cause: str
    ranks: list[int]


def answer(report: Report) -> Answer:
    return Answer(
        report.verdict,
        report.causes[0].id if report.causes else "",
        list(report.suspects[0].ranks) if report.suspects else [],
    )


def told(files: dict[str, bytes], *, reverse: bool = False) -> Report:
    """Write the files and judge them, named one by one on the command line."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, content in files.items():
            path = Path(folder) / name
            path.write_bytes(content)
            paths.append(str(path))
        return explain(ExplainRequest(paths=tuple(paths[::-1] if reverse else paths), argv=()))


def right(job: Job) -> Answer:
    return Answer("crashed", job.cause, job.ranks)


PREFIXES: dict[str, Callable[[int], str]] = {
    "torch": lambda rank: f"[rank{rank}]: ",
    "torchrun": lambda rank: f"[default{rank}]:",
    "srun": lambda rank: f"{rank}: ",
}


def one_file(said: Sequence[Spoken], prefix: str = "torch") -> str:
    return "".join(f"{PREFIXES[prefix](rank)}{text}\n" for rank, text in said)


def by_rank(said: Sequence[Spoken]) -> dict[str, bytes]:
    ranks = sorted({rank for rank, _ in said})
    return {
        f"rank{rank}.log": "".join(f"{text}\n" for one, text in said if one == rank).encode()
        for rank in ranks
    }


def stamped(text: str) -> str:
    """As `kubectl logs --timestamps` writes them: before everything else on the line."""
    return "".join(
        f"2026-11-21T10:{number // 60:02d}:{number % 60:02d}.123456789Z {line}\n"
        for number, line in enumerate(text.splitlines())
    )


def coloured(text: str) -> str:
    return "".join(
        f"\x1b[36m{line[:5]}\x1b[0m\x1b[1m{line[5:]}\x1b[0m\n" for line in text.splitlines()
    )


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
@pytest.mark.parametrize("prefix", sorted(PREFIXES))
def test_the_prefix_changes_nothing(job: Job, prefix: str) -> None:
    assert answer(told({"job.log": one_file(job.said, prefix).encode()})) == right(job)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
@pytest.mark.parametrize(
    "dress",
    [
        coloured,
        stamped,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: stamped(coloured(text)).replace("\n", "\r\n"),
        lambda text: "".join(
            f"{number:6d}\t{line}\n" for number, line in enumerate(text.splitlines(), 1)
        ),
        lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    ],
    ids=["colours", "stamps", "crlf", "mark", "no-last-newline", "all", "numbered", "quoted"],
)
def test_the_dress_changes_nothing(job: Job, dress: Callable[[str], str]) -> None:
    assert answer(told({"job.log": dress(one_file(job.said)).encode()})) == right(job)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lzma.compress,
        bz2.compress,
        zstandard.compress,
        lambda content: content.decode().encode("utf-16"),
        lambda content: content.decode().encode("utf-32"),
    ],
    ids=["gzip", "xz", "bzip2", "zstd", "utf-16", "utf-32"],
)
def test_the_packing_changes_nothing(job: Job, pack: Callable[[bytes], bytes]) -> None:
    assert answer(told({"job.log": pack(one_file(job.said).encode())})) == right(job)


@pytest.mark.parametrize(
    "job",
    [job for job in JOBS if len({rank for rank, _ in job.said}) > 1],
    ids=lambda job: job.name,
)
def test_one_file_for_each_rank_says_the_same_in_any_order(job: Job) -> None:
    files = by_rank(job.said)
    reports = [told(files), told(files, reverse=True)]
    assert [answer(report) for report in reports] == [right(job)] * 2


@BOUNDED
@given(
    job=st.sampled_from(JOBS),
    draws=st.lists(
        st.tuples(st.integers(0, 200), st.integers(0, 3), st.sampled_from(NOISE)), max_size=40
    ),
)
def test_noise_of_other_ranks_changes_nothing(job: Job, draws: list[tuple[int, int, str]]) -> None:
    said = list(job.said)
    for place, rank, text in draws:
        if rank not in job.ranks:
            said.insert(place % (len(said) + 1), (rank, text))
    assert answer(told({"job.log": one_file(said).encode()})) == right(job)


@BOUNDED
@given(job=st.sampled_from(JOBS), seed=st.randoms(use_true_random=False))
def test_ranks_interleaved_otherwise_say_the_same(job: Job, seed: object) -> None:
    """Each rank's own order stays; the first to fail still speaks of it before the others'
    echoes.
    """
    rest = {
        rank: [text for one, text in job.said if one == rank]
        for rank in sorted({rank for rank, _ in job.said})
    }
    origin = job.ranks[0]
    said: list[Spoken] = []
    while any(rest.values()):
        open_ranks = [
            rank
            for rank, texts in rest.items()
            if texts and (rank == origin or not rest[origin] or texts[0].startswith("step"))
        ]
        rank = seed.choice(open_ranks)  # type: ignore[attr-defined] # a random.Random
        said.append((rank, rest[rank].pop(0)))
    assert answer(told({"job.log": one_file(said).encode()})) == right(job)


@BOUNDED
@given(ranks=st.sets(st.integers(0, 7), min_size=1, max_size=6), before=st.booleans())
def test_an_echo_is_never_the_first_failure(ranks: set[int], before: bool) -> None:
    """Whether they stand before or behind the failure that they repeat."""
    said = [said for rank in sorted(ranks) for said in lines(rank, gone())]
    crash = lines(9, traceback("ValueError", "no such split"))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "job.log").write_text(
            one_file([*said, *crash] if before else [*crash, *said])
        )
        report = explain(
            ExplainRequest(paths=(f"{folder}/job.log",), case=f"{folder}/case", argv=())
        )
        failures = sorted(
            read(read_case(f"{folder}/case").evidence).of(LogFailure), key=lambda one: one.order
        )
    assert answer(report) == Answer("crashed", "user-exception", [9])
    assert [one.rank for one in failures if not one.echo] == [9]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_kept_case_says_the_same_again(job: Job, tmp_path: Path) -> None:
    files = {**by_rank(job.said), "more.txt": watchdog(0, 7).encode()}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    first = explain(
        ExplainRequest(
            paths=tuple(str(tmp_path / name) for name in files),
            case=str(tmp_path / "case"),
            argv=(),
        )
    )
    again = explain(str(tmp_path / "case"))
    assert again == first
    assert json.loads((tmp_path / "case" / "diagnosis.json").read_text())["says"] == first.says


@BOUNDED
@given(
    content=st.one_of(
        st.binary(max_size=3000),
        st.text(max_size=1500).map(lambda text: text.encode("utf-8", "surrogatepass")),
    ),
    tail=st.booleans(),
)
def test_whatever_surrounds_it_a_failure_is_found_or_the_file_is_refused(
    content: bytes, tail: bool
) -> None:
    """Nothing that bytes can hold raises; words of our own before and after random ones are
    still read.
    """
    crash = one_file(JOBS[0].said).encode()
    report = told(
        {"job.log": b"\n" * 3 + crash + (b"\n" + content.replace(b"\0", b"") if tail else b"")}
    )
    assert report.verdict in ("crashed", "undetermined", "hung")
