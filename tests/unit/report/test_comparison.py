"""What changed between two runs: the same sentences in text, Markdown, JSON and on the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.cases.expectation import CASES
from tests.unit.report import handmade
from tests.unit.report.page.dom import Page
from tests.unit.report.page.pages import large, since
from trainprobe.facts import Facts, Given, Job, JobRank, LogProgress
from trainprobe.facts.run_values import RunValues, run_values
from trainprobe.model.diagnosis import LadderRow, RankRow, Report, Tool, World
from trainprobe.model.facts import Fact
from trainprobe.report.comparison import Comparison, compared
from trainprobe.report.comparison_section import against_of
from trainprobe.report.format import Layout
from trainprobe.report.formats import choose
from trainprobe.report.formats.markdown import LINES_CAP
from trainprobe.report.json_report import read_report, report_text
from trainprobe.report.page.document import page_of
from trainprobe.report.stand_ins import for_strangers
from trainprobe.report.text import text_of

NOTHING = RunValues({})


def ran(*facts: Fact) -> RunValues:
    return run_values(Facts(facts))


def conditions(before: RunValues, after: RunValues) -> Comparison:
    return compared(handmade.HEALTHY, handmade.HEALTHY, before, after)


def test_the_verdict_comes_first_and_then_what_came_and_went() -> None:
    hung = large(16, stuck=5)
    found = compared(hung, handmade.HEALTHY, NOTHING, NOTHING)
    assert found.sentences[0] == "It was hung and is healthy now."
    assert any("file-lock-held" in one and "not found any more" in one for one in found.sentences)
    back = compared(handmade.HEALTHY, hung, NOTHING, NOTHING)
    assert back.sentences[0] == "It was healthy and is hung now."
    assert any("file-lock-held" in one and one.endswith("is new.") for one in back.sentences)


def test_nothing_is_made_of_two_equal_runs() -> None:
    hung = large(16, stuck=5)
    found = compared(hung, hung, NOTHING, NOTHING)
    assert found.sentences == (
        "It was hung and still is.",
        "file-lock-held is the cause in both.",
        "Ranks 0-15 stand where they stood.",
    )
    assert not any(row.is_changed for row in found.rows)


def places(before: RankRow, after: RankRow, verdict: str = "hung") -> tuple[str, ...]:
    old = replace(handmade.HEALTHY, world=World(1, (before,)))
    new = replace(handmade.HUNG, causes=(), ladder=(), world=World(1, (after,)))
    if verdict == "healthy":
        new = replace(old, world=World(1, (after,)))
    return compared(old, new, NOTHING, NOTHING).sentences[1:]


def test_ranks_are_told_by_their_state_and_place() -> None:
    computing = RankRow(0, state="computing", where="train.py:5 in main")
    waiting = RankRow(0, state="waiting", where="train.py:9 in main")
    assert places(computing, waiting) == (
        "Rank 0 was computing at train.py:5 in main and is waiting at train.py:9 in main now.",
    )
    assert places(waiting, RankRow(0, state="exited")) == (
        "Rank 0 was waiting at train.py:9 in main and has exited now.",
    )
    assert places(waiting, RankRow(0)) == (
        "Rank 0 was waiting at train.py:9 in main and is not seen now.",
    )
    assert places(RankRow(0), waiting) == ()


def test_a_healthy_rank_stands_elsewhere_in_each_look() -> None:
    here, there = (RankRow(0, state="computing", where=f"train.py:{line}") for line in (5, 9))
    assert places(here, there, verdict="healthy") == ()
    assert places(here, replace(there, state="waiting"), verdict="healthy") != ()


def job(command: str, **variables: str) -> tuple[Fact, ...]:
    environment = {"0": {"RANK": "0", "MASTER_PORT": str(len(command)), **variables}}
    return (Job(environment=environment), JobRank(rank=0, cmdline=command))


def test_settings_that_differ_are_named() -> None:
    before = ran(*job("python train.py --lr 1e-4 --fast", NCCL_DEBUG="INFO"))
    after = ran(*job("python train.py --lr 3e-4", NCCL_DEBUG="WARN", OMP_NUM_THREADS="1"))
    assert conditions(before, after).sentences[1:] == (
        "The command had --lr 1e-4 --fast and has --lr 3e-4 now.",
        "NCCL_DEBUG was INFO and is WARN now.",
        "OMP_NUM_THREADS was not set and is 1 now.",
    )


def test_what_is_another_in_each_run_is_no_difference() -> None:
    first = ran(*job("python train.py", SLURM_JOB_ID="1", TORCHELASTIC_RUN_ID="a"))
    second = ran(*job("python train.py", SLURM_JOB_ID="2", TORCHELASTIC_RUN_ID="b"))
    (said,) = conditions(first, second).sentences[1:]
    assert said.startswith("Nothing else differs that both tell of")
    assert conditions(NOTHING, NOTHING).sentences[1:] == ()


def test_what_one_run_does_not_tell_is_no_difference() -> None:
    told = ran(Given(name="env.NCCL_DEBUG", value="INFO", source="log"))
    whole = ran(*job("python train.py", OMP_NUM_THREADS="1"))
    assert conditions(whole, told).sentences[1:] == (
        "Only one of the two tells its launch: not compared.",
    )
    versions = ran(Given(name="version.torch", value="2.4", source="log"))
    assert conditions(versions, NOTHING).sentences[1:] == (
        "Only one of the two tells the versions: not compared.",
    )


def test_a_variable_is_unset_only_where_both_were_read_by_one_list() -> None:
    job_ = ran(*job("python train.py", NCCL_DEBUG="INFO"))
    given = ran(Given(name="env.PYTORCH_CUDA_ALLOC_CONF", value="x", source="collect-env"))
    dump = ran(Given(name="env.PYTHONPATH", value="/x", source="env-file"))
    other = ran(Given(name="env.NCCL_DEBUG", value="INFO", source="env-file"))
    for before, after in ((job_, given), (given, job_), (dump, other), (job_, dump)):
        assert not any("not set" in one for one in conditions(before, after).sentences)
    old = replace(handmade.HEALTHY, tool=Tool("trainprobe", "0.0.1"))
    bare = ran(*job("python train.py"))
    assert "not set" in str(conditions(bare, job_).sentences)
    assert "not set" not in str(compared(old, handmade.HEALTHY, bare, job_).sentences)


def test_ranks_that_differ_among_themselves_are_told_apart() -> None:
    one = Job(environment={str(rank): {"NCCL_IB_HCA": f"mlx5_{rank // 3}"} for rank in range(4)})
    both = Job(environment={str(rank): {"NCCL_IB_HCA": "mlx5_0"} for rank in range(4)})
    assert conditions(ran(both), ran(one)).sentences[1:] == (
        "NCCL_IB_HCA was mlx5_0 and is mlx5_0 (ranks 0-2); mlx5_1 (rank 3) now.",
    )


def test_amounts_that_hardly_differ_are_the_same() -> None:
    def memory(amount: float) -> RunValues:
        name = "memory.total_bytes"
        return ran(Given(name=name, value=f"{amount:g}", number=amount, source="env-file"))

    assert "Nothing else differs" in conditions(memory(100e9), memory(99e9)).sentences[1]
    assert "memory.total_bytes was" in conditions(memory(100e9), memory(50e9)).sentences[1]


def test_slower_steps_are_told_with_their_factor() -> None:
    def log(step_s: float, last: int) -> RunValues:
        at = 100.0 + step_s * last
        return ran(LogProgress(rank=0, step=last, at=at, first_step=0, first_at=100.0))

    assert conditions(log(0.5, 900), log(1.5, 40)).sentences[1:] == (
        "The last step that it told was 900 and is 40 now.",
        "A step takes 1.5 s and took 0.5 s: 3.0 times as long as then.",
    )
    assert conditions(log(0.5, 900), log(0.55, 900)).sentences[1:] == ()


def test_rungs_and_checks_that_came_out_otherwise() -> None:
    def one(outcome: str, state: str) -> Report:
        row = {"id": "gpu.ecc", "state": state, "hosts": ["node3"]}
        return replace(
            handmade.HEALTHY,
            ladder=(LadderRow(1, "host", "passed" if outcome == "passed" else "timed_out"),),
            extra={"readiness": {"checks": [row]}},
        )

    says = compared(one("passed", "ok"), one("", "fail"), NOTHING, NOTHING).sentences[1:]
    assert says == ("Check gpu.ecc on node3: fail, was ok.", "host: timed out, was passed.")


def test_every_format_says_the_same() -> None:
    report = since("attach-rank-0-evaluates", "attach-conditional-collective")
    found = against_of(report)
    assert found is not None
    assert found.since == "./attach-rank-0-evaluates (healthy)"
    assert found.sentences[0] == "It was healthy and is hung now."
    text = text_of(report)
    markdown = choose("diagnosis", "markdown").renders["diagnosis"](report, Layout())
    page = Page(page_of(report))["against"].text
    told = json.loads(report_text(report))["against"]
    assert told["sentences"] == list(found.sentences)
    assert against_of(read_report(report_text(report))) == found
    assert markdown.count("\n") <= LINES_CAP
    for place, sentence in enumerate(found.sentences):
        assert sentence in " ".join(text.split())
        assert sentence in page
        assert place > 8 or sentence in markdown.replace("\\", "")
    for row in found.changed_values:
        assert row.name in text
        assert row.name in page
    same = next(row for row in found.rows if not row.is_changed and row.part != "answer")
    assert f"\n    {same.name} " not in text
    assert f"\n    {same.name} " in text_of(report, verbose=True)
    assert max(map(len, text.splitlines())) <= 100
    assert max(map(len, text_of(report, 60).splitlines())) <= 60


def test_a_comparison_for_strangers_names_no_folder() -> None:
    report = since("attach-rank-0-evaluates", "attach-conditional-collective")
    shared, _ = for_strangers(report)
    assert "/job" in report_text(report)
    assert "/job/" not in report_text(shared)


def test_a_comparison_that_somebody_changed_is_read_as_far_as_it_goes() -> None:
    damaged: tuple[object, ...] = ([], {"sentences": 3, "rows": ["x", {"name": 4}]}, None, {})
    for against in damaged:
        report = replace(handmade.HUNG, extra={"against": against})
        assert text_of(report)
        assert page_of(report)


def test_both_may_be_logs(tmp_path: Path) -> None:
    from trainprobe.pipelines import compare

    log = tmp_path / "before.log"
    log.write_text("NCCL INFO NCCL_DEBUG set by environment to INFO\nstep 1/10 loss 2.0\n")
    report = compare(str(CASES / "explain-log-eight-ranks"), str(log))
    found = against_of(report)
    assert found is not None
    assert found.since.startswith(f"{log} (")
    assert report.verdict == "crashed"
