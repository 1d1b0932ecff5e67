"""The truth table of the live gallery, and the arithmetic of its scores."""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.gallery.live import calibration, score
from tests.gallery.live.analyzer import understood
from tests.gallery.live.kinds import BROKEN, HEALTHY, KINDS, WITHHELD, plan, truths
from tests.gallery.live.replay import keep, unlabelled
from tests.gallery.live.surroundings import HERE, PARTS
from tests.gallery.specimens import without_docstring
from trainprobe import causes
from trainprobe.ranking import confidences

PROGRAMS = sorted((HERE / "programs").glob("*.py"))


def test_the_gallery_is_as_large_as_promised() -> None:
    tiers = Counter(KINDS[run.kind].tier for run in plan())
    assert len(BROKEN) >= 32
    assert len(HEALTHY) >= 12
    assert len(WITHHELD) >= 3
    assert tiers["broken"] >= 300
    assert tiers["healthy"] >= 100
    assert {run.world for run in plan()} >= {2, 3, 4, 8}


def test_the_plan_is_the_same_each_time_and_every_culprit_is_a_rank() -> None:
    assert plan() == plan()
    assert len({run.key for run in plan()}) == len(plan())
    assert [run for run in plan() if not 0 <= run.pick < run.world] == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: str(kind.name))
def test_each_kind_has_a_program_and_ids_of_the_catalogue(kind: Any) -> None:
    known = {cause.id for cause in causes.built()} | {one.id for one in causes.planned()}
    assert (HERE / "programs" / f"{kind.script}.py").exists()
    assert {kind.cause, *kind.also} <= known | {"none", "unknown"}
    assert {*kind.before, *kind.during} <= set(PARTS)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.stem))
def test_no_program_gives_itself_away(path: Any) -> None:
    """What the tool may read of a program: no label, no verdict, no cause."""
    text = without_docstring(path).lower()
    ids = {cause.id for cause in causes.built()} | {one.id for one in causes.planned()}
    assert (
        re.findall(
            r"culprit|\bhang|\bhung|stuck|deadlock|faulty|broken|victim|trainprobe|illness",
            text.replace("stream", ""),
        )
        == []
    )
    assert [name for name in ids if name in text] == []


def result(
    truth: tuple[str, list[int]] | None,
    *causes_said: tuple[str, list[int], int],
    verdict: str = "hung",
    kind: str = "k",
) -> dict[str, Any]:
    points = [said[2] for said in causes_said] or [0]
    shares = confidences([*map(float, points), 6.0], 1.0)
    said = [
        {"id": name, "ranks": ranks, "points": worth, "confidence": shares[place], "group": 0}
        for place, (name, ranks, worth) in enumerate(causes_said)
    ]
    truths_of = [[[truth[0]], [truth[1]]]] if truth else []
    return {
        "truths": truths_of,
        "verdicts": ["hung" if truth else "healthy"],
        "verdict": verdict,
        "causes": said,
        "plan": {"kind": kind, "world": 4},
    }


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (result(("a", [1]), ("a", [1], 23)), "right"),
        (result(("a", [1]), ("a", [1], 23), verdict="slow"), "top3"),
        (result(("a", [1]), ("b", [1], 23), ("a", [1], 13)), "top3"),
        (result(("a", [1]), ("a", [2], 23)), "cause"),
        (result(("a", [1]), ("b", [1], 23)), "ranks"),
        (result(("a", [1]), ("b", [2], 23)), "wrong"),
        (result(("a", [1])), "wrong"),
        (result(None, verdict="healthy"), "right"),
        (result(None, verdict="undetermined"), "open"),
        (result(None, ("a", [1], 23)), "alarm"),
    ],
)
def test_outcomes(given: dict[str, Any], outcome: str) -> None:
    assert score.outcome_of(given) == outcome


def test_wilson_as_published() -> None:
    assert [round(100 * bound, 1) for bound in score.wilson(190, 200)] == [91.0, 97.3]
    assert [round(100 * bound, 1) for bound in score.wilson(7, 7)] == [64.6, 100.0]


def test_the_first_place_follows_the_level_and_the_temperature() -> None:
    given = result(("a", [1]), ("a", [1], 20), ("b", [1], 9))
    assert calibration.first_of(given, 6, 1.0)[0] == "a"
    assert calibration.first_of(given, 15, 1.0)[0] == "unknown"
    assert calibration.first_of(given, 6, 4.0)[1] < calibration.first_of(given, 6, 1.0)[1]


def test_what_is_reported_of_a_kind_was_fitted_without_it() -> None:
    """Nine kinds are always right, one never: left out itself, it is still told with the
    confidence that the others earned.
    """
    good = [result(("a", [1]), ("a", [1], 23), kind=f"good{number}") for number in range(9)]
    bad = [result(("a", [1]), ("b", [1], 23), kind="bad") for _ in range(3)]
    judged = {one.result["plan"]["kind"]: one for one in calibration.left_out([*good, *bad])}
    assert judged["bad"].confidence > judged["good0"].confidence
    assert not judged["bad"].right


def test_kinds_of_one_program_are_left_out_together() -> None:
    good = [result(("a", [1]), ("a", [1], 23), kind=f"good{number}") for number in range(4)]
    twins = [
        {**result(("a", [1]), ("b", [1], 23), kind=name), "program": "shared"}
        for name in ("bad", "worse")
    ]
    judged = {one.result["plan"]["kind"]: one for one in calibration.left_out([*good, *twins])}
    alone = calibration.at(twins[0], *calibration.fitted(good))
    assert judged["bad"].confidence == judged["worse"].confidence == alone.confidence


def test_the_fit_gains_nothing_by_hiding_a_right_answer() -> None:
    """Two near candidates, the first always right: `unknown` in front of them with a small share
    would be `calibrated`, and is worse.
    """
    rows = [
        result(("a", [1]), ("a", [1], 20), ("b", [1], 12), kind=f"k{number}") for number in range(6)
    ]
    assert calibration.first_of(rows[0], *calibration.fitted(rows))[0] == "a"
    assert calibration.loss_of(rows[0], 6, 4.0) > calibration.loss_of(rows[0], 6, 1.0)


def test_unknown_is_right_in_the_fit_where_no_candidate_is() -> None:
    missed = result(("a", [1]), ("b", [1], 12))
    assert calibration.loss_of(missed, 12, 1.0) < calibration.loss_of(missed, 0, 1.0)


def test_a_wrong_verdict_leaves_nothing_right() -> None:
    given = result(("a", [1]), ("a", [1], 23), verdict="slow")
    assert calibration.first_of(given, 6, 1.0)[2] is False


def test_calibration_and_coverage() -> None:
    pairs = [(0.9, True)] * 9 + [(0.9, False)]
    ((count, mean, right),) = calibration.bins(pairs)
    assert (count, round(mean, 6), right) == (10, 0.9, 0.9)
    assert calibration.calibration_error(pairs) == pytest.approx(0)
    assert calibration.calibration_error([(0.5, True)] * 10) == pytest.approx(0.5)
    assert calibration.separation([(0.9, True), (0.8, True), (0.8, False)]) == pytest.approx(0.75)
    assert calibration.separation([(0.9, True)]) is None


def judged(name: str, confidence: float, right: bool, kind: str = "k") -> calibration.Judged:
    return calibration.Judged(result(("a", [1]), kind=kind), name, confidence, right, 0.0)


def test_what_is_not_named_covers_nothing() -> None:
    rows = [
        judged("a", 0.9, right=True),
        judged("a", 0.7, right=False),
        judged("unknown", 0.99, right=True),
        judged("none", 0.0, right=False),
    ]
    assert calibration.risk_coverage(rows, (0.25, 0.5, 0.75, 1.0)) == [(0.25, 0.0), (0.5, 0.5)]


def test_equal_confidences_have_no_order() -> None:
    rows = [judged("a", 0.9, right=True), judged("a", 0.9, right=False)]
    assert calibration.risk_coverage(rows, (0.5, 1.0)) == [(0.5, 0.5), (1.0, 0.5)]


def test_the_interval_draws_whole_kinds() -> None:
    """All right in one kind and all wrong in the other: drawn run by run the share could hardly
    be 0 or 1.
    """
    rows = [judged("a", 0.9, right=True, kind="x")] * 20 + [
        judged("a", 0.9, right=False, kind="y")
    ] * 20
    assert calibration.resampled(
        rows, lambda drawn: sum(one.right for one in drawn) / len(drawn)
    ) == (0.0, 1.0)


def test_runs_of_one_kind_count_as_one_for_the_wider_interval() -> None:
    rows = [result(("a", [1]), ("a", [1], 23), kind=f"k{number % 10}") for number in range(100)]
    assert score.by_kind(rows, lambda _: True) == score.wilson(10, 10)


def accused(truth: list[list[int]], ranks: list[int], confidence: float = 0.9) -> dict[str, Any]:
    given = result(("a", []), ("b", ranks, 23))
    given["truths"], given["causes"][0]["confidence"] = [[["a"], truth]], confidence
    return given


@pytest.mark.parametrize(
    ("given", "blamed"),
    [
        (accused([[1]], [1]), False),
        (accused([[1]], [2]), True),
        (accused([[1]], [1, 2]), True),
        (accused([[1]], [2], 0.7), False),
        (
            accused([[1], [0, 1]], [0]),
            True,
        ),  # two equal camps: to name only the other one is to blame the innocent
        (accused([[1], [0, 1]], [0, 1]), False),
        (accused([[], [0, 1, 2]], [2]), True),  # the host's own fault
        (accused([[], [0, 1, 2]], []), False),
        (accused([[0, 1, 2]], [1]), False),  # one of several ill ranks
    ],
)
def test_who_is_wrongly_blamed(given: dict[str, Any], blamed: bool) -> None:
    assert score.blames_the_innocent(given) is blamed


@pytest.mark.parametrize(
    ("ranks", "outcome", "said"),
    [
        ([1], "blamed", "right"),
        ([2], "blamed", "wrong"),
        ([], "nobody", "nobody"),
        ([], "crashed", "nobody"),
        (None, "blamed", None),
    ],
)
def test_what_a_rule_comes_to(ranks: list[int] | None, outcome: str, said: str | None) -> None:
    given = {
        **result(("a", [1])),
        "guesses": {"rule": ranks},
        "analyzer": {"rule": {"outcome": outcome}},
    }
    assert score.rule_outcome(given, "rule") == said
    assert score.rule_outcome({**given, "guesses": {}}, "rule") is None


def test_naming_nobody_is_right_only_where_nobody_is_to_blame_and_the_rule_lived() -> None:
    given = {**result(("a", [])), "guesses": {"rule": []}}
    assert score.rule_outcome(given, "rule") == "right"
    assert (
        score.rule_outcome({**given, "analyzer": {"rule": {"outcome": "crashed"}}}, "rule")
        == "nobody"
    )


def test_mcnemar_exact() -> None:
    assert score.sign_test(0, 0) == 1.0
    assert score.sign_test(5, 0) == pytest.approx(0.0625)
    assert score.sign_test(3, 3) == 1.0


@pytest.mark.parametrize(
    ("status", "text", "outcome", "ranks"),
    [
        (1, "Traceback\n  File x\nKeyError: ('0', 0)\n", "crashed", []),
        (
            0,
            (
                "Not all ranks joining collective, sequence number: 7\nmissing ranks: {1,"
                " 3}\nmissing ranks: {2}\n"
            ),
            "blamed",
            [1, 3],
        ),
        (
            0,
            "error msg: Culprit rank 2; Error type: X, Culprit rank 0; Error type: X\n",
            "blamed",
            [0, 2],
        ),
        (1, "missing ranks: {1}\nTraceback\nIndexError: pop\n", "blamed", [1]),
        (0, "tabulate is not installed. Proceeding without it.\n", "nobody", []),
    ],
)
def test_answers_of_the_other_analyzer(
    status: int, text: str, outcome: str, ranks: list[int]
) -> None:
    answer = understood(status, text)
    assert (answer["outcome"], answer.get("ranks", [])) == (outcome, ranks)


def test_recordings_are_kept_without_labels_and_with_what_was_said(tmp_path: Path) -> None:
    into, source = tmp_path / "kept", tmp_path / "made"
    source.mkdir()
    into.mkdir()
    (into / "shard_poll.4.xz").write_bytes(b"another run stays")
    (into / "shard_poll.3.deep.xz").write_bytes(b"the old second look goes")
    for key, ended in (("shard_poll.3", True), ("shard_poll.5", False), ("no_such_kind.0", True)):
        lines = '{"plan": {}}\n{"cmdline":"python m1.py --pick 2 --form masked"}'
        (source / f"{key}.xz").write_bytes(lzma.compress(lines.encode()))
        if ended:
            (source / f"{key}.json").write_text(
                '{"verdict": "hung", "causes": [], "truths": []}', encoding="utf-8"
            )
    assert keep(source, into) == (into / "shard_poll.3.xz").stat().st_size
    assert sorted(path.name for path in into.iterdir()) == ["shard_poll.3.xz", "shard_poll.4.xz"]
    about, evidence = lzma.decompress((into / "shard_poll.3.xz").read_bytes()).decode().split("\n")
    assert json.loads(about)["said"] == {"verdict": "hung", "causes": []}
    assert evidence == '{"cmdline":"python m1.py"}'


def test_the_page_tells_what_is_missed_and_what_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docs.pages import accuracy

    told = [
        (("rank-stuck", [1]), "rank-stuck", "shard_poll"),
        (("rank-stuck", [1]), "gil-held", "rejection"),
        (None, "", "plain"),
    ]
    rows = []
    for number, (truth, said, kind) in enumerate(told):
        given = result(
            truth,
            *([(said, [1], 23)] if said else []),
            verdict="hung" if truth else "healthy",
            kind=kind,
        )
        given["plan"] |= {"form": "masked", "launch": "bare"}
        outcome = score.outcome_of(given)
        more = {
            "key": f"{kind}.{number}",
            "tier": KINDS[kind].tier,
            "decoy": True,
            "attach_s": 2.0,
            "guesses": {"minority stack": [1]},
        }
        rows.append({**given, **more, "outcome": outcome, "then": outcome})
    monkeypatch.setattr(accuracy, "RESULTS", tmp_path / "results.json")
    accuracy.RESULTS.write_text(json.dumps(rows), encoding="utf-8")
    ((name, page),) = accuracy.pages()
    assert name == "accuracy.md"
    assert "| all broken runs: right in first place | 1 of 2 | 50.0 % |" in page
    assert (
        "| ill runs: a wrong cause or rank is named with a confidence of 0.8 or more | 1 of 2 |"
        in page
    )
    assert "| minority stack | 2 | 2 | 0 | 0 |" in page
    assert "was not run on these recordings" in page
    assert "- ranks  rejection.1" in page


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            '"python m1.py --pick 2 --seed 9 --form masked --when 4 --nproc 2"',
            '"python m1.py --nproc 2"',
        ),
        ('"m1.py --most 1 --pick 3","then"', '"m1.py","then"'),
        ('"/tmp/her-run/x.lock","/tmp/job-a/b"', '"/tmp/other","/tmp/job-a/b"'),
        ('"/tmp/torchinductor_ann/x"', '"/tmp/torchinductor_user/x"'),
        (
            f'"/sys/fs/cgroup/memory/pods/{"0a" * 16}/mine"',
            '"/sys/fs/cgroup/memory/job.slice/0/mine"',
        ),
    ],
)
def test_neither_labels_nor_names_of_the_machine_stay_in_what_is_judged(
    text: str, kept: str
) -> None:
    assert unlabelled(text) == kept


def test_two_equal_camps_are_both_right_only_in_a_world_of_two() -> None:
    for run in plan():
        if run.kind == "barrier_in_save":
            assert ((0, 1) in truths(run)[0][1]) == (run.world == 2)
