"""What the ranks of a live job printed: it supports what was measured, and of a rank that is gone it
tells how it left.
"""

from __future__ import annotations

import pytest

from tests.unit.waits.live_rows import CELL, own, process, site
from trainprobe import causes
from trainprobe.causes.priors import load_priors
from trainprobe.facts import Facts, LogEvent, RankException, read
from trainprobe.facts.thread_places import join_threads
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.subjects import Subject

STEPS = "".join(f"step {number} loss 0.{900 - number}\n" for number in range(6))
CRASH = """\
Traceback (most recent call last):
  File "/job/train.py", line 99, in <module>
    main()
  File "/job/train.py", line 40, in main
    print(rows[7])
IndexError: list index out of range
"""
CAUGHT = """\
Traceback (most recent call last):
  File "/job/train.py", line 61, in upload
    push(metrics)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.78 GiB
WARNING: profile run skipped
"""
STORE = own("sync", 13)


def live(*prints: tuple[int | None, str], world: int = 3, absent: tuple[int, ...] = ()) -> Facts:
    """A job without a launcher whose living ranks wait at the store; who printed what, None for a
    stream of all.
    """
    here = [rank for rank in range(world) if rank not in absent]
    ranks = [{"rank": rank, "pid": 100 + rank} for rank in here]
    job = {
        "launcher": {"kind": "bare"},
        "world_size": world,
        "host": "node7",
        "ranks": ranks,
        "absent": list(absent),
        "cell": CELL,
    }
    evidence = [Evidence("E1", "job", Subject("job", host="node7"), CELL, data=job)]
    for place, (rank, text) in enumerate(prints):
        role = "launcher" if rank is None else "rank"
        subject = Subject("process" if rank is None else "rank", "node7", rank, role=role)
        data = {
            "stream": "both",
            "path": f"/job/out{rank}.log",
            "bytes": len(text),
            "left_out_bytes": 0,
            "head": text,
            "tail": "",
            "last_at": 50_000.0,
            "silent_s": 660.0,
        }
        evidence.append(Evidence(f"E{20 + place}", "output", subject, CELL, data=data))
    rows: list[Fact] = list(read(evidence).all)
    rows.append(site(13, 'store.wait(["ready"])'))
    for rank in here:
        rows += process(100 + rank, STORE, STORE, rank=rank, wchan="poll_schedule_timeout")
    return Facts(join_threads(rows))


def judged(facts: Facts) -> Diagnosis:
    return judge(facts, causes.built(), load_priors())


def first(found: Diagnosis) -> tuple[str, tuple[int, ...]]:
    return found.causes[0].id, found.causes[0].ranks


def test_a_rank_that_said_that_it_was_done_left_early() -> None:
    said = STEPS + "early stopping: no improvement, finishing\n"
    found = judged(live((0, STEPS), (1, said), (2, STEPS), absent=(1,)))

    assert (found.verdict, first(found)) == ("hung", ("rank-exited-early", (1,)))
    assert (
        "Rank 1 last printed at 13:53:20 UTC, 11 min ago: `early stopping: no improvement,"
        " finishing`." in found.causes[0].summary
    )


def test_in_a_stream_of_all_the_same_words_count_less() -> None:
    said = STEPS + "early stopping: no improvement, finishing\n"
    alone = judged(live((1, said), absent=(1,)))
    shared = judged(live((None, said + STEPS), absent=(1,)))

    assert first(shared) == ("rank-exited-early", (1,))
    assert shared.causes[0].confidence < alone.causes[0].confidence


def test_a_last_step_does_not_say_how_a_rank_left() -> None:
    unread = judged(live(absent=(1,)))
    found = judged(live((0, STEPS), (1, STEPS), (2, STEPS), absent=(1,)))

    assert found.causes[0].confidence == unread.causes[0].confidence
    assert "Rank 1 last printed" in found.causes[0].summary


@pytest.mark.parametrize("whose", [1, None])
def test_a_rank_that_is_gone_with_a_traceback_broke_there(whose: int | None) -> None:
    found = judged(live((0, STEPS), (whose, STEPS + CRASH), absent=(1,)))

    assert (found.verdict, first(found)) == ("hung", ("user-exception", (1,)))
    assert "IndexError" in found.causes[0].summary


def test_a_traceback_that_steps_follow_did_not_end_the_rank() -> None:
    found = judged(live((1, CRASH + STEPS * 30 + "training finished\n"), absent=(1,)))

    assert first(found) == ("rank-exited-early", (1,))


@pytest.mark.parametrize("text", [STEPS + CRASH, STEPS + CAUGHT, CAUGHT + STEPS])
def test_an_error_that_a_living_rank_printed_names_no_cause(text: str) -> None:
    facts = live((0, STEPS), (1, STEPS), (2, text), absent=())
    assert all(fact.handled for fact in facts.of(RankException))
    found = judged(facts)

    assert found.verdict != "crashed"
    assert not {"user-exception", "cuda-oom"} & {cause.id for cause in found.causes}


def test_of_a_living_rank_only_what_came_after_the_last_step_is_fresh() -> None:
    shown = "RuntimeError: The server socket has failed to listen on [::]:29500 (errno: 98 - Address already in use)."
    old = live((0, f"{shown}\n{STEPS}")).of(LogEvent)
    new = live((0, f"{STEPS}{shown}\n")).of(LogEvent)

    assert {event.lived_through for event in old} == {True}
    assert {event.lived_through for event in new} == {False}


def test_a_file_that_was_read_twice_counts_once() -> None:
    assert len(live((0, CAUGHT), (0, CAUGHT)).of(LogEvent)) == len(live((0, CAUGHT)).of(LogEvent))
