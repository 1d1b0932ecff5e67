"""One probe on several nodes: what comes home of it, and what is said where nothing does."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from trainprobe.nodes import local_probe, remote_probes
from trainprobe.nodes.remote_probes import Probed, probe_on
from trainprobe.nodes.transports import Way, here_way, ours
from trainprobe.system.interruption import Interruption

REPOSITORY = Path(__file__).parents[3]
STARTS = (
    f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from trainprobe.system import"
    " own_programs; "
)


def way(folder: Path, *names: str) -> Way:
    """Nodes that are processes here, whose probes lie in `folder`."""
    start = (
        STARTS
        + f"own_programs.folder_of_probes = lambda: {str(folder)!r}; from trainprobe.cli import"
        " main; main()"
    )
    return Way(
        "here",
        names,
        lambda _name, argv, _talks: tuple(argv),
        start=lambda words: (sys.executable, "-c", start, *words),
    )


def probed(folder: Path, text: str, *, timeout_s: float = 5.0, **environ: str) -> Probed:
    (folder / "looks.py").write_text(text, encoding="utf-8")
    return probe_on(way(folder, "node7"), {"node7": environ}, "looks", timeout_s, Interruption())[
        "node7"
    ]


SAYS = """
import json, os, sys, time
def say(**event):
    with open(os.environ["TRAINPROBE_EVENTS"], "a") as file:
        file.write(json.dumps(event) + "\\n")
"""


def test_events_and_ending_come_home_from_each_node_with_its_own_environment(
    tmp_path: Path,
) -> None:
    (tmp_path / "looks.py").write_text(
        SAYS + "say(event='note', says=os.environ['WHO']); say(event='result', answer='yes',"
        " says='fine'); sys.exit(10)"
    )
    found = probe_on(
        way(tmp_path, "node1", "node2"),
        {"node1": {"WHO": "one"}, "node2": {"WHO": "two"}},
        "looks",
        5.0,
        Interruption(),
    )

    assert {name: one.events[0]["says"] for name, one in found.items()} == {
        "node1": "one",
        "node2": "two",
    }
    assert [(one.answer, one.ended.code if one.ended else None) for one in found.values()] == [
        (("yes", "fine"), 10)
    ] * 2


def test_a_probe_that_stands_is_ended_and_what_it_had_said_is_there(tmp_path: Path) -> None:
    began = time.monotonic()
    found = probed(
        tmp_path, SAYS + "say(event='phase.begin', name='mount'); time.sleep(60)", timeout_s=1.0
    )
    assert found.ended is not None
    assert (found.ended.how, found.events[0]["name"], time.monotonic() - began < 15) == (
        "timed_out",
        "mount",
        True,
    )


def test_the_end_of_the_output_of_one_that_died_is_told(tmp_path: Path) -> None:
    found = probed(tmp_path, "raise SystemExit('no module named x\\x1b[31m')")
    assert (found.events, found.answer, found.says) == ((), ("", ""), "no module named x\n")


@pytest.mark.parametrize("program", ["nothing", "../looks", "", "looks.py"])
def test_only_a_probe_of_ours_is_run(tmp_path: Path, program: str) -> None:
    (tmp_path / "looks.py").write_text("", encoding="utf-8")
    (one,) = probe_on(way(tmp_path, "node7"), {"node7": {}}, program, 5.0, Interruption()).values()
    assert (one.ended, one.says.startswith("There is no probe")) == (None, True)


def test_a_node_that_says_nothing_is_there_with_the_reason() -> None:
    found = probe_on(
        Way("ssh", ("node7",), lambda *_: ("false",)), {"node7": {}}, "host", 5.0, Interruption()
    )
    assert ([name for name, each in found.items() if each.ended is None], found["node7"].says) == (
        ["node7"],
        "node7 cannot be looked at: it ended with code 1 and printed nothing",
    )


def test_rubbish_from_a_node_is_passed_over(tmp_path: Path) -> None:
    rows = (
        {"schema": "trainprobe.node/1", "says": "begin", "host": "x", "now": 1.0},
        {"id": "E1", "kind": "probe.event", "cell": "probe", "data": {"event": "no event"}},
        {
            "id": "E2",
            "kind": "probe.event",
            "cell": "job",
            "data": {"event": {"event": "result", "answer": "yes"}},
        },
        {"id": "E3", "kind": "probe.ended", "cell": "probe", "data": {"ended": {"how": "never"}}},
    )
    (tmp_path / "said").write_text("\n".join(json.dumps(row) for row in rows))
    (one,) = probe_on(
        Way("ssh", ("node7",), lambda *_: ("cat", str(tmp_path / "said"))),
        {"node7": {}},
        "host",
        5.0,
        Interruption(),
    ).values()
    assert (one.events, one.ended) == ((), None)


def test_a_flood_of_events_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Listens:
        def tell(self, kind: str, *_: object, **__: object) -> None:
            told.append(kind)

    monkeypatch.setattr(local_probe, "MOST_EVENTS", 3)
    (tmp_path / "events").write_text('{"event": "note"}\n' * 10)
    events = local_probe._Events(Listens(), str(tmp_path / "events"))  # type: ignore[arg-type]
    events.pass_on()
    events.pass_on()
    assert (len(told), events.cut) == (3, True)


def test_the_command_is_the_one_that_the_command_line_has() -> None:
    assert here_way().node("x", (remote_probes.COMMAND,)).argv == ours("probe-here")
