"""What lint says of causes: it strengthens what shows itself, takes no name away, and makes
nobody ill.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.causes import built
from trainprobe.causes.cause import Cause
from trainprobe.causes.linted import NOTICES_CAP, linted
from trainprobe.causes.priors import load_priors
from trainprobe.causes.scene import Scene
from trainprobe.facts import (
    Facts,
    HostCheck,
    LintFinding,
    LintRead,
    MainThread,
    Plan,
    RankEnding,
    RankException,
    Refusal,
    Rung,
)
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis, Family, Fix, Weighing
from trainprobe.model.facts import Fact
from trainprobe.ranking import RankedGroup, rank_group
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

CELL = "user_script@2"
GROUP = SuspectGroup(
    CELL, "user_script", (1,), "never-joined", "rank 1 did not join", "hang", world_size=2
)
STANDS = MainThread(
    ("E4",), CELL, 1, frames=(Frame("<module>", "/job/train.py", 90), Frame("step", "train.py", 42))
)
PLAN = Plan(nproc=2, argv=("train.py",), form="launch", script="/job/train.py")
PASSED = Rung(("E1",), CELL, None, 100, "user_script", "Does it run?", 2, "passed")


def finding(cause: str = "a", line: int = 42, confidence: float = 0.9, **more: Any) -> LintFinding:
    return LintFinding(
        ("E2",),
        cause=cause,
        rule="r",
        file="/job/train.py",
        line=line,
        says="It forks.",
        confidence=confidence,
        **more,
    )


def cause(id_: str, *weighings: Weighing, fixes: tuple[Fix, ...] = ()) -> Cause:
    return Cause(
        id=id_,
        title=id_,
        means="",
        telling="",
        modes=("hang",),
        weigh=lambda *_: weighings,
        summary=lambda *_: id_,
        fixes=lambda *_: fixes,
        would_settle="look",
    )


def weighing(points: int, family: Family = "suspects-stack") -> Weighing:
    return Weighing(points, family, f"{points} points of {family}", ("E3",))


def ranked(causes: list[Cause], *facts: Fact) -> RankedGroup:
    return rank_group(Facts([PLAN, *facts]), GROUP, causes, load_priors())


def judged(*facts: Fact, refused: tuple[Refusal, ...] = ()) -> Diagnosis:
    return judge(Facts([PLAN, *facts], refused=refused), built(), load_priors())


@pytest.mark.parametrize(
    ("line", "confidence", "points", "near"),
    [
        (42, 0.9, 10, True),  # the innermost frame of the user's own code
        (38, 0.6, 6, True),
        (48, 0.9, 6, False),
        (48, 0.6, 3, False),
        (90, 0.9, 10, True),  # a frame further out: only the very line
        (91, 0.9, 6, False),
        (0, 0.9, 6, False),
    ],
)
def test_points_grow_with_the_confidence_and_where_a_stack_stands(
    line: int, confidence: float, points: int, near: bool
) -> None:
    (one,) = linted(Scene(Facts([STANDS, finding(line=line, confidence=confidence)]), GROUP))["a"]

    assert (one.weighing.points, one.weighing.family, one.near, one.weighing.evidence) == (
        points,
        "source",
        near,
        ("E2",),
    )


def test_a_file_of_the_same_name_elsewhere_is_another_one() -> None:
    stands = MainThread(("E4",), CELL, 1, frames=(Frame("step", "/other/train.py", 42),))

    assert not linted(Scene(Facts([stands, finding()]), GROUP))["a"][0].near


def test_a_traceback_of_a_loader_worker_counts_as_well() -> None:
    raised = RankException(
        ("E5",),
        CELL,
        1,
        "RuntimeError",
        "bootstrapping phase",
        (Frame("<module>", "/job/train.py", 41),),
        handled=True,
    )

    assert linted(Scene(Facts([raised, finding()]), GROUP))["a"][0].near


def test_only_the_users_command_is_weighed() -> None:
    of_probe = SuspectGroup(
        "gloo_control@2",
        "gloo_control",
        (1,),
        "never-joined",
        "rank 1 did not join",
        "hang",
        world_size=2,
    )

    assert linted(Scene(Facts([STANDS, finding()]), of_probe)) == {}


def test_a_finding_strengthens_the_cause_that_shows_itself_and_tells_how_to_mend_it() -> None:
    found = ranked([cause("a", weighing(10))], STANDS, finding(fix="Spawn."))

    (first,) = found.placed
    assert (first.id, first.named, first.points) == ("a", True, 20)
    assert [(row.points, row.family) for row in first.because] == [
        (10, "suspects-stack"),
        (10, "source"),
    ]
    assert (
        first.because[1].says == "lint says train.py:42: It forks, where a suspect's stack stands"
    )
    assert [(fix.title, fix.steps, fix.verify) for fix in first.fixes] == [
        ("Mend train.py:42", ("Spawn.",), "trainprobe lint /job/train.py")
    ]


def test_what_lint_mends_is_not_advised_twice() -> None:
    own = (
        Fix("Move it", ("move the call at train.py:42 out of its branch",)),
        Fix("Or elsewhere", ("look at train.py:421",)),
        Fix("Or not at all", ("leave it out",)),
    )
    titles = [
        [fix.title for fix in ranked([named], STANDS, found).placed[0].fixes]
        for named in (cause("a", weighing(10), fixes=own),)
        for found in (finding(fix="Spawn."), finding())
    ]
    assert titles == [
        ["Mend train.py:42", "Or elsewhere", "Or not at all"],
        ["Move it", "Or elsewhere", "Or not at all"],
    ]


def test_what_the_source_around_a_stack_has_told_counts_once() -> None:
    (first,) = ranked([cause("a", weighing(13), weighing(10, "source"))], STANDS, finding()).placed

    assert first.points == 23
    assert [row.says for row in first.because if row.family == "source"] == [
        "10 points of source; so lint says train.py:42: It forks"
    ]
    assert first.because[1].evidence == ("E3", "E2")


def test_a_cause_that_shows_nothing_is_possible_at_most_and_only_where_somebody_stands() -> None:
    causes = [cause("a"), cause("b"), cause("c", weighing(-6))]
    found = ranked(causes, STANDS, finding("a", 42), finding("b", 300), finding("c", 42))

    assert [(one.id, one.named) for one in found.placed] == [("unknown", False), ("a", False)]
    assert found.placed[0].confidence > found.placed[1].confidence


def test_a_finding_does_not_lift_what_speaks_against_a_cause() -> None:
    found = ranked([cause("a", weighing(6), weighing(-10, "gpu"))], STANDS, finding())

    assert [one.id for one in found.placed] == ["unknown"]


POINTS = st.sampled_from([3, 6, 10, 13, 26])
FAMILIES: st.SearchStrategy[Family] = st.sampled_from(
    ["suspects-stack", "suspects-log", "exit-status", "source"]
)
WEIGHINGS = st.lists(st.builds(weighing, POINTS, FAMILIES), min_size=1, max_size=3)
FINDINGS = st.lists(
    st.builds(
        finding, st.sampled_from("abcd"), st.sampled_from([42, 300]), st.sampled_from([0.6, 0.95])
    ),
    max_size=6,
)


@given(st.lists(WEIGHINGS, min_size=1, max_size=4), FINDINGS)
def test_no_finding_takes_a_name_away_from_what_was_measured(
    shown: list[list[Weighing]], findings: list[LintFinding]
) -> None:
    causes = [cause(id_, *weighings) for id_, weighings in zip("abcd", shown, strict=False)]
    without, read = ranked(causes, STANDS), ranked(causes, STANDS, *findings)

    if without.named:
        assert (read.named, read.placed[0].id) == (True, without.placed[0].id)
        assert read.placed[0].confidence >= without.placed[0].confidence


def test_a_healthy_run_stays_healthy_and_the_finding_is_a_warning() -> None:
    check = HostCheck(("E2",), "host@1", name="lim.nofile", status="warn", says="Open files: 1024.")

    found = judged(PASSED, check, finding("fork-hazard", 300, 0.95, fix="Spawn."))

    assert (found.verdict, found.conclusive, found.causes) == ("healthy", True, ())
    assert [(one.check, one.says, one.fix) for one in found.warnings] == [
        ("lim.nofile", "Open files: 1024.", ""),
        ("lint.fork-hazard", "lint says train.py:300: It forks (95 % sure)", "Spawn."),
    ]


def test_a_hint_says_something_only_where_somebody_stands() -> None:
    hint, elsewhere = (finding(line=line, confidence=0.45) for line in (42, 900))

    (one,) = linted(Scene(Facts([STANDS, hint, elsewhere]), GROUP))["a"]

    assert (one.finding, one.near) == (hint, True)
    assert not judged(PASSED, elsewhere).warnings


def test_what_a_named_cause_tells_is_no_warning_beside_it() -> None:
    frames = (Frame("<module>", "/job/train.py", 42),)
    words = (
        "An attempt has been made to start a new process before the\ncurrent process has finished"
        " its bootstrapping phase."
    )
    died = [
        Rung(
            ("E1",),
            CELL,
            None,
            100,
            "user_script",
            "Does it run?",
            2,
            "crashed",
            says="rank 1 ended",
            ranks=(1,),
        ),
        RankException(("E4",), CELL, 1, "RuntimeError", words, frames, 5.0, "witness"),
        RankEnding(("E3",), CELL, 1, how="exited", code=1, at=5.1, failed_at=5.0, order=0),
    ]

    found = judged(
        *died,
        finding("missing-main-guard", 41),
        finding("missing-main-guard", 300),
        finding("fork-hazard", 300),
    )

    assert (found.verdict, found.causes[0].id, found.causes[0].named) == (
        "crashed",
        "missing-main-guard",
        True,
    )
    assert "lint says train.py:41" in " ".join(
        row.says for row in found.causes[0].because if row.family == "source"
    )
    assert [one.says.split(": ")[0] for one in found.warnings] == [
        "lint says train.py:300",
        "lint says train.py:300",
    ]


def test_of_many_findings_the_surest_are_shown_and_the_rest_counted() -> None:
    many = [finding("fork-hazard", line, line / 100) for line in range(60, 60 + NOTICES_CAP + 3)]

    warnings = judged(PASSED, LintRead(("E2",), script="/job/train.py"), *many).warnings

    assert len(warnings) == NOTICES_CAP + 1
    assert warnings[0].says.startswith("lint says train.py:67:")
    assert warnings[-1].says == "lint says 3 more things: trainprobe lint /job/train.py"


def test_what_lint_did_not_read_is_said_and_spoils_nothing() -> None:
    cut = judged(
        PASSED,
        LintRead(
            ("E2",),
            script="/job/train.py",
            left_out="Only the 20 lines nearest to the script were read at once.",
        ),
    )
    gone = judged(
        PASSED, refused=(Refusal("lint", "timed_out", "reading train.py did not end within 5 s"),)
    )

    assert [one.says for one in cut.warnings] == [
        "lint did not read everything: Only the 20 lines nearest to the script were read at once."
    ]
    assert [one.says for one in gone.warnings] == [
        "lint did not read the script: reading train.py did not end within 5 s"
    ]
    assert (cut.verdict, gone.verdict, gone.conclusive) == ("healthy", "healthy", True)


def test_between_two_causes_that_fit_alike_the_source_decides_where_all_ranks_stand_in_it() -> None:
    special = replace(
        cause("special", weighing(13), weighing(10, "other-stacks")), refines="general"
    )
    general = cause("general", weighing(13))
    ranks = [
        MainThread(("E4",), CELL, rank, frames=(Frame("step", "train.py", 36 + 8 * rank),))
        for rank in (0, 1)
    ]

    def places(
        span: tuple[int, int], *weighings: Weighing, of: str = "general"
    ) -> list[tuple[str, bool]]:
        spoken = replace(
            special, weigh=lambda *_: (weighing(13), weighing(10, "other-stacks"), *weighings)
        )
        found = ranked([spoken, general], *ranks, finding(of, line=50, confidence=0.6, span=span))
        return [(one.id, one.named) for one in found.placed if one.confidence > 0.05]

    assert places((35, 50)) == [("general", True), ("special", False)]
    assert places((40, 50)) == [("special", True)]  # rank 0 stands outside of it
    assert places((0, 0)) == [("special", True)]
    assert places((35, 50), weighing(6, "source")) == [
        ("special", True)
    ]  # its own source speaks for it
    assert places((35, 50), of="special") == [("special", True)]


def test_a_line_within_the_code_of_a_finding_is_near() -> None:
    (one,) = linted(Scene(Facts([STANDS, finding(line=70, confidence=0.6, span=(40, 71))]), GROUP))[
        "a"
    ]
    assert (one.near, one.weighing.points) == (True, 6)


def test_findings_of_a_live_job_are_weighed_and_those_of_several_nodes_count_once() -> None:
    live = replace(GROUP, probe="job")
    assert (
        len(
            linted(Scene(Facts([STANDS, finding(), replace(finding(), evidence=("E9",))]), live))[
                "a"
            ]
        )
        == 1
    )


def test_the_rewrite_where_somebody_stands_comes_first() -> None:
    spoken = replace(cause("a", weighing(26)), fixes=lambda *_: (Fix("Own", ("x",)),))
    facts = (finding(line=42, fix="near"), finding(line=300, fix="elsewhere"))
    first, *_ = ranked([spoken], STANDS, *facts).placed
    assert [one.steps for one in first.fixes] == [("near",), ("x",), ("elsewhere",)]
