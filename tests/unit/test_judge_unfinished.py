"""A case that ends before the top of its ladder claims no health, whatever passed until then."""

from __future__ import annotations

from trainprobe.causes.priors import load_priors
from trainprobe.facts import read
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis
from trainprobe.model.evidence import Evidence

PLAN = {
    "nproc": 4,
    "form": "launch",
    "rungs": [{"rung": 10, "probe": "host"}, {"rung": 100, "probe": "user_script"}],
}


def judged(*cells: tuple[str, int]) -> Diagnosis:
    records = [Evidence("E1", "plan", data=PLAN)]
    for place, (probe, nproc) in enumerate(cells, 2):
        cell = f"{probe}@{nproc}"
        records.append(
            Evidence(
                f"E{place}",
                "rung",
                cell=cell,
                data={
                    "rung": 10,
                    "probe": probe,
                    "cell": cell,
                    "nproc": nproc,
                    "outcome": "passed",
                },
            )
        )
    return judge(read(records), (), load_priors())


def test_all_answers_make_it_healthy() -> None:
    assert (
        judged(("host", 1), ("user_script", 1), ("user_script", 2), ("user_script", 4)).verdict
        == "healthy"
    )


def test_a_rung_without_its_answer_leaves_it_open() -> None:
    found = judged(("host", 1))
    assert (found.verdict, found.conclusive, found.causes) == ("undetermined", False, ())
    assert (
        found.says
        == "The case ends before rung user_script has its answer: the run was killed, or the case"
        " is damaged."
    )
    assert [row.would_settle for row in found.undecided] == [
        "user_script: the case ends before its answer"
    ]


def test_an_answer_at_two_ranks_is_none_about_four() -> None:
    assert judged(("host", 1), ("user_script", 1), ("user_script", 2)).verdict == "undetermined"


def test_a_lower_rung_that_was_lost_leaves_it_open() -> None:
    assert judged(("user_script", 4)).verdict == "undetermined"
