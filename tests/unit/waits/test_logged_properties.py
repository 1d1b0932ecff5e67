"""Whatever stands in the extracts of logs, judging them ends with a report: the same one each
time.
"""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.model.diagnosis import Report
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB
from trainprobe.pipelines import conclude
from trainprobe.signatures import all_signatures

BOUNDED = settings(max_examples=60, deadline=None, derandomize=True)
VERDICTS = {"healthy", "slow", "hung", "crashed", "at-risk", "undetermined"}
# What the reader writes, and what a hand that damages a case could leave there.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.integers(), max_size=3),
)
NUMBER = st.one_of(st.integers(1, 500), ODD)
RANK = st.one_of(st.none(), st.integers(0, 7))


@functools.lru_cache(maxsize=1)
def spoken() -> list[str]:
    """The example of every signature, line by line."""
    return sorted(
        {line for signature in all_signatures() for line in signature.example.split("\n")}
    )


TEXT = st.one_of(
    st.deferred(lambda: st.sampled_from(spoken())),
    st.text(max_size=60),
    st.sampled_from(
        ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "ValueError: x"]
    ),
)
ROW = st.one_of(
    st.tuples(
        st.integers(1, 500),
        st.one_of(st.none(), st.floats(1.7e9, 1.8e9)),
        RANK,
        st.sampled_from(["", "node1", "node2"]),
        TEXT,
    ).map(list),
    st.lists(ODD, max_size=6),
    ODD,
)


def extract(rows: list[Any], *, cell: str = "job", **data: Any) -> Evidence:
    whole = {
        "path": "a.log",
        "file": 0,
        "rank": None,
        "rank_source": "",
        "host": "",
        "rows": rows,
        "lines": len(rows),
        "last_line": len(rows),
        "has_end": True,
        **data,
    }
    return Evidence("E2", "log.extract", JOB, cell, data=whole)


def judged(*records: Evidence) -> Report:
    return conclude(records, "explain", "")


@BOUNDED
@given(
    rows=st.lists(ROW, max_size=25),
    rank=NUMBER,
    file=NUMBER,
    path=ODD,
    end=ODD,
    cell=st.sampled_from(["job", "attempt-0", "", "x"]),
)
def test_rows_of_any_shape_are_judged(
    rows: list[Any], rank: Any, file: Any, path: Any, end: Any, cell: str
) -> None:
    report = judged(extract(rows, cell=cell, rank=rank, file=file, path=path, has_end=end))
    assert report.verdict in VERDICTS
    assert all(0.0 <= cause.confidence <= 1.0 for cause in report.causes)


@BOUNDED
@given(
    data=st.dictionaries(
        st.sampled_from(
            [
                "path",
                "file",
                "rank",
                "host",
                "rows",
                "lines",
                "last_line",
                "has_end",
                "attempts",
                "says",
                "since",
                "ranks",
                "max_events",
            ]
        ),
        ODD,
    ),
    kind=st.sampled_from(
        [
            "log.extract",
            "log.file",
            "log.request",
            "log.trouble",
            "given",
            "error_file",
            "interrupted",
        ]
    ),
)
def test_records_of_any_shape_are_judged(data: dict[str, Any], kind: str) -> None:
    assert judged(Evidence("E1", kind, JOB, "job", data=data)).verdict in VERDICTS


@BOUNDED
@given(
    said=st.lists(
        st.tuples(RANK, st.deferred(lambda: st.sampled_from(spoken()))), min_size=1, max_size=15
    )
)
def test_what_software_says_in_any_order_gives_one_answer(
    said: list[tuple[int | None, str]],
) -> None:
    rows = [[number, None, rank, "", text] for number, (rank, text) in enumerate(said, 1)]
    report = judged(extract(rows))
    assert report == judged(extract(rows))
    assert report.verdict in VERDICTS
    assert report.says
    assert report.verdict != "healthy" or not report.causes
    assert (
        sum(
            cause.confidence
            for cause in report.causes
            if not (cause.id == "unknown" and cause.classes)
        )
        <= max(1, len(report.suspects)) + 0.01
    )  # they are rounded
