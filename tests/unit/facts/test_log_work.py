"""Bars and announcements in logs: their clocks, and bars of several ranks in one stream."""

from __future__ import annotations

from trainprobe.facts.log_work import LogWork, parse_log_work
from trainprobe.logtext.steps import read_bar
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject


def works(*lines: str, rank: int | None = None) -> list[LogWork]:
    rows = [[number, None, rank, "", text] for number, text in enumerate(lines, start=1)]
    record = Evidence(
        id="E1", kind="log.extract", subject=Subject(), cell="job", data={"path": "a", "rows": rows}
    )
    return [fact for fact in parse_log_work(record) if isinstance(fact, LogWork)]


def test_the_clocks_of_a_bar() -> None:
    bar = read_bar("Map (num_proc=4):  25%|██▌       | 250/1000 [10:00<30:00, 0.42 examples/s]")

    assert bar is not None
    assert (bar.step, bar.of, bar.ran_s, bar.left_s, bar.kind) == (250, 1000, 600, 1800, "data")
    long = read_bar(" 7%|▋         | 499/7151 [1:03:38:58<?, 26.94s/it]")
    assert long is not None
    assert (long.ran_s, long.left_s) == (86400 + 3 * 3600 + 38 * 60 + 58, None)
    assert read_bar("loss 0.1 | 12% done") is None


def test_bars_of_several_ranks_that_stand_apart() -> None:
    slow = works(
        " 10%|█         | 100/1000 [50:00<7:30:00, 30.00s/it]",
        " 10%|▉         | 97/1000 [50:10<7:47:00, 31.03s/it]",
    )
    fast = works(
        " 10%|█         | 100/1000 [00:10<01:30, 10.00it/s]",
        " 10%|▉         | 97/1000 [00:10<01:33, 9.70it/s]",
    )
    anew = works(
        " 99%|█████████▉| 990/1000 [50:00<00:30, 3.03s/it]",
        "  1%|          | 10/1000 [00:30<49:30, 3.00s/it]",
    )

    # steps apart; two refreshes of fast bars; the next epoch
    assert [bars[0].ahead for bars in (slow, fast, anew)] == [(100, 3000), None, None]


def test_an_announcement_stands_until_it_ends() -> None:
    begun = works("12:00:01 INFO Saving model checkpoint to out/step-500")
    done = works("Saving model checkpoint to out/step-500", "Checkpoint saved in 12 s")

    assert [(work.kind, work.ended) for work in begun] == [("save", False)]
    assert [(work.kind, work.ended) for work in done] == [("save", True)]
    assert works("nothing of the kind") == []


def test_lines_that_count_towards_a_total_are_work_by_any_name() -> None:
    lines = [f"INFO {{/job/run.py:10}} Rank 0 scores scene {n} / 3037 of a.json" for n in (7, 8, 9)]

    (count,) = works(*lines, rank=0)

    assert (count.is_count, count.step, count.of, count.ended) == (True, 9, 3037, False)
    assert works(*lines[:2]) == []
    assert works("scene 9 / 3037", "scene 8 / 3037", "scene 7 / 3037") == []
    assert works("took 3 of 4", "date 2026/11/27", "date 2026/11/28", "date 2026/11/29") == []
