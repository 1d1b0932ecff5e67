"""What the maker must keep to, without starting a job."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.gallery.live.generated import DEVELOPMENT, REPORTING, maker, scores
from tests.gallery.live.generated.fault import ALL
from tests.gallery.live.generated.launchers import LAUNCHERS
from tests.gallery.live.generated.maker import Job, job_of
from trainprobe import causes

HERE = Path(__file__).resolve().parent
SEEDS = range(150)
# Words that would say in a job's sources what is wrong with it.
LABELS = re.compile(
    r"trainprobe|hang|\bhung\b|stuck|deadlock|dead_|\bfault|victim|culprit|straggl|broken|forever|never"
    r"|nobody|mismatch|conditional|divergent|oversubscribed|starv|uneven|silent|infinite|\bbad_|\bill\b",
    re.IGNORECASE,
)
JUDGING = {"judge.py", "scores.py", "test_maker.py"}


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    return [job_of(seed) for seed in SEEDS]


def with_ports(text: str) -> str:
    return re.sub(r"@\w+@", "29500", text)


def test_a_seed_makes_the_same_job_each_time(jobs: list[Job]) -> None:
    assert [job_of(seed) for seed in SEEDS[::10]] == jobs[::10]
    assert len({tuple(sorted(job.files.items())) for job in jobs}) == len(jobs)


def test_every_program_compiles_and_no_mark_is_left(jobs: list[Job]) -> None:
    for job in jobs:
        for name, text in job.files.items():
            assert "#: " not in text, (job.seed, name)
            assert "#@" not in text, (job.seed, name)
            if name.endswith(".py"):
                compile(with_ports(text), f"{job.seed}/{name}", "exec")


def test_no_word_of_a_job_says_what_is_wrong_with_it(jobs: list[Job]) -> None:
    ids = re.compile("|".join(sorted(cause.id for cause in causes.built())))
    for job in jobs:
        for name, text in job.files.items():
            for words in (name, text):
                found = LABELS.search(words) or ids.search(words)
                assert found is None, (job.seed, name, found)


def test_truths_are_ids_of_the_catalogue_and_ranks_of_the_world(jobs: list[Job]) -> None:
    ids = {"none", *(cause.id for cause in causes.built())}
    for job in jobs:
        truth = job.truth
        assert {truth.cause, *truth.also} <= ids, truth
        assert truth.cause not in truth.also, truth
        assert all(0 <= rank <= truth.world for ranks in truth.ranks for rank in ranks), truth
        assert truth.cause == "none" or job.settled != "advancing", truth
        if truth.line:
            name, _, number = truth.line.rpartition(":")
            assert 0 < int(number) <= job.files[name].count("\n") + 1, truth


def test_the_draws_reach_every_mechanism_framework_and_launcher(jobs: list[Job]) -> None:
    drawn = [maker.mechanism_of(seed) for seed in range(3000)]
    assert {kind.name for kind in drawn} == set(ALL)
    assert {job.truth.framework for job in jobs} == set(maker.FRAMEWORKS)
    assert {job.truth.launcher for job in jobs} >= set(LAUNCHERS)
    healthy = sum(kind.family == "healthy" for kind in drawn) / len(drawn)
    assert 0.2 <= healthy <= 0.3


def test_the_maker_and_the_judge_do_not_know_each_other() -> None:
    for path in sorted(HERE.rglob("*.py")):
        if path.name in JUDGING:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            for module in modules:
                assert not module.startswith("trainprobe"), path
                assert not module.startswith("tests.") or module.startswith(
                    "tests.gallery.live.generated"
                ), path
                assert module.rpartition(".")[2] not in ("judge", "scores"), path


def test_only_reporting_seeds_are_recorded() -> None:
    assert not set(DEVELOPMENT) & set(REPORTING)
    assert all(row["seed"] in REPORTING for row in scores.results())


def test_an_answer_is_right_with_a_true_cause_and_a_true_set_of_ranks() -> None:
    truth = {
        "cause": "file-lock-held", "also": ["data-worker-stuck"], "ranks": [[1], [0, 1]],
        "verdicts": ["hung"],
    }  # fmt: skip

    def of(cause: str, ranks: list[int], verdict: str = "hung") -> scores.Row:
        said = {"id": cause, "ranks": ranks, "confidence": 0.9, "named": True}
        answer = {"verdict": verdict, "causes": [said]}
        return {**answer, **scores.judged(truth, answer)}

    assert scores.right(of("data-worker-stuck", [1, 0]))
    assert not scores.right(of("file-lock-held", [0]))
    assert not of("straggler-rank", [1])["class_right"]
    assert of("unknown", [1])["class_right"]
    rows = [of("file-lock-held", [1]), of("unknown", [1], "slow")]
    shares = {name: share for name, share, _ in scores.in_short(rows)}
    assert shares["broken: cause and ranks right"] == "1 of 2"
    assert "| mechanism |" not in scores.by([], "framework")
