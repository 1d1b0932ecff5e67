"""Whether a loop gets anywhere, by its values read again and again."""

from __future__ import annotations

from dataclasses import replace

from trainprobe.facts import Block, LoopValue, SourceSite
from trainprobe.stacks.frames import Frame
from trainprobe.waits.circling import circle_of, in_vain, moves_on, starts_anew

FILE = "/job/data.py"
LOOKS = [
    (Frame("fit", FILE, 4), Frame("batches", FILE, 9)),
    (Frame("fit", FILE, 4), Frame("batches", FILE, 10)),
]


def sites(*headers: str) -> dict[tuple[str, int], SourceSite]:
    blocks = tuple(
        Block(header.split()[0], number, header) for number, header in enumerate(headers, 5)
    )
    return {
        (FILE, line): SourceSite(
            ("E1",), "job", 0, file=FILE, line=line, text="x = f()", blocks=blocks
        )
        for line in (9, 10)
    }


def value(name: str, *seen: int, opaque: bool = False, depth: int = 1) -> LoopValue:
    return LoopValue(
        evidence=("E2",),
        cell="job",
        rank=0,
        pid=7,
        depth=depth,
        file=FILE,
        function="batches",
        name=name,
        seen=seen,
        opaque=opaque,
        reads=12,
    )


CONSTANT = (0,) * 12
RISING = tuple(range(12))
ROUND = (0, 1, 2) * 4


def test_a_count_that_stays_while_passes_go_on_is_no_way_to_the_end() -> None:
    head = sites("while len(batch) < self.size:")

    circle = circle_of([value("batch", *CONSTANT), value("idx", *RISING)], LOOKS, head)

    assert circle is not None
    assert circle.says == "`len(batch) < self.size` came no nearer to its end in 11 passes"


def test_a_count_that_moves_or_cannot_be_seen_tells_nothing() -> None:
    head = sites("while len(batch) < self.size:")
    idx = value("idx", *RISING)

    assert circle_of([value("batch", *RISING), idx], LOOKS, head) is None
    assert circle_of([value("batch", *CONSTANT, opaque=True), idx], LOOKS, head) is None
    assert circle_of([idx], LOOKS, head) is None


def test_a_flag_is_no_count() -> None:
    assert (
        circle_of([value("done", *CONSTANT), value("x", *RISING)], LOOKS, sites("while not done:"))
        is None
    )


def test_things_of_a_for_loop_that_come_back_go_round() -> None:
    head = sites("while True:", "for path in paths:")
    path, reader = value("path", *ROUND), value("reader", *RISING, opaque=True)

    circle = circle_of([path, reader], LOOKS, head)

    assert circle is not None
    assert circle.values == (path,)


def test_what_comes_back_beside_something_that_moves_on_does_not_go_round() -> None:
    head = sites("while True:", "for path in paths:")

    epochs = value("epoch", 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, depth=0)

    assert circle_of([value("path", *ROUND), epochs], LOOKS, head) is None
    assert moves_on([value("path", *ROUND), epochs]) == epochs


def test_objects_may_hide_that_a_while_loop_gets_on() -> None:
    head = sites("while queue:")
    state = value("state", *ROUND)

    assert circle_of([state], LOOKS, head) is not None
    assert circle_of([state, value("node", *RISING, opaque=True)], LOOKS, head) is None


def test_of_few_reads_nothing_is_known() -> None:
    few = LoopValue(
        evidence=("E2",),
        cell="job",
        rank=0,
        pid=7,
        depth=1,
        file=FILE,
        function="batches",
        name="path",
        seen=(0, 1, 0, 1),
        reads=4,
    )

    assert circle_of([few], LOOKS, sites("while True:", "for path in paths:")) is None
    assert in_vain([few]) is None


def test_values_that_change_and_none_that_moves_on_are_in_vain() -> None:
    reader = value("reader", *ROUND, opaque=True)

    assert in_vain([reader, value("n", *CONSTANT)]) == reader
    assert in_vain([reader, value("n", *RISING)]) is None


def test_a_while_that_starts_anew_gets_nowhere_and_a_walk_over_batches_may_end() -> None:
    reader, path = value("reader", *ROUND, opaque=True), value("path", *CONSTANT)
    batch = value("batch", *ROUND, opaque=True)
    anew = sites("while True:", "for path in paths:")

    assert starts_anew([reader, path], LOOKS, anew) == reader
    assert starts_anew([reader], LOOKS, anew) is None, "nobody knows where the walk is"
    assert starts_anew([batch, path], LOOKS, sites("for batch in loader:")) is None
    assert starts_anew([batch], LOOKS, sites("while True:", "for batch in loader:")) is None
    assert starts_anew([reader, value("n", *RISING)], LOOKS, sites("while True:")) is None


def test_a_sample_in_the_making_of_which_nothing_changes_is_never_made() -> None:
    head = sites("while True:")
    still = [
        replace(value("i", *(0,) * 20), reads=20),
        replace(value("streams", *(0,) * 9, 1, *(0,) * 10), reads=20),
        replace(value("self", *(0,) * 20, opaque=True), reads=20),
    ]

    circle = circle_of(still, LOOKS, head, makes_a_sample=True)

    assert circle is not None
    assert circle.says == "none of its values changed in 20 reads"
    assert circle_of(still, LOOKS, head) is None, "a simulation's state may be inside of objects"
    assert circle_of(still, LOOKS[:1], head, makes_a_sample=True) is None, "one call of C"
    assert circle_of(still, LOOKS, sites("for i in rows:"), makes_a_sample=True) is None
    moved = replace(value("raw", *(0,) * 10, *(1,) * 10, opaque=True), reads=20)
    assert circle_of([*still, moved], LOOKS, head, makes_a_sample=True) is None
