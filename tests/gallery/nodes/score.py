"""Plant every fault, run `trainprobe ready` as a user would, and score what it says; then healthy
runs with decoys, of which none may exclude anybody.

    python -m tests.gallery.nodes.score [--runs N] [--healthy N] [--only WORD] [--budget
    quick|standard] [--lane N] [--out FILE]

`--runs N` plants every variant N times, on nodes and in ways that are drawn. A run is right where
the first cause is one of the planted fault's, its hosts are those of the fault, nobody else is
excluded, and the exit code is as it must be. A healthy run is right where nobody is excluded and it
ends with 0. Writes results.json beside this file as it goes; `--append` keeps the rows of other
variants that are there, and earlier healthy runs, and goes on behind them;
`--missing` runs only variants that have no row yet.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.gallery.nodes.draws import Draw, fault_draws, healthy_draws
from tests.gallery.nodes.faults import EVERY, PROMISED
from tests.gallery.nodes.stand import COUNT, CannotPlantError, Stand, standing, why_not
from tests.gallery.nodes.ways import Answer, ready

RESULTS = Path(__file__).with_name("results.json")
PROMISE = 0.95
SETTLED_S, REPORTS_ANEW_S = 60.0, 5.0


def planted(stand: Stand, draw: Draw, stack: ExitStack) -> None:
    """Plant what was drawn; leaving the stack takes it back. Raises CannotPlantError."""
    for decoy, place in draw.decoys:
        stack.enter_context(decoy.plant(stand, stand.hosts[place]))
    if draw.fault is not None:
        places = range(len(stand.hosts)) if draw.fault.where == "everywhere" else (draw.host,)
        for place in places:
            stack.enter_context(
                draw.fault.plant(
                    stand,
                    stand.hosts[place],
                    stand.hosts[draw.other if place == draw.host else draw.host],
                )
            )


def wrongs(draw: Draw, answer: Answer, names: Sequence[str]) -> list[str]:
    """What is not as it must be, in words; empty where the run is right."""
    if answer.exit_code is None:
        return ["it did not end"]
    if not answer.report:
        return [f"no report, exit {answer.exit_code}"]
    excluded = set(answer.report.get("readiness", {}).get("exclude", []))
    guilty = set(draw.guilty(names))
    said = [f"{name} is excluded" for name in sorted(excluded - guilty)]
    if draw.fault is None:
        return said + (
            []
            if answer.exit_code == 0
            else [
                (
                    f"exit {answer.exit_code}, verdict {answer.report.get('verdict')}:"
                    f" {_first(answer).get('id', 'no cause')}"
                )
            ]
        )
    return said + list(_of_fault(draw, answer, excluded, guilty))


def _of_fault(draw: Draw, answer: Answer, excluded: set[str], guilty: set[str]) -> Iterator[str]:
    fault, first = draw.fault, _first(answer)
    assert fault is not None
    if first.get("id") not in fault.causes:
        yield f"first cause {first.get('id', 'none')} in place of {' or '.join(fault.causes)}"
    hosts = set(first.get("hosts", []))
    if hosts != guilty:
        yield f"hosts {','.join(sorted(hosts)) or 'none'} in place of {','.join(sorted(guilty))}"
    if answer.exit_code not in fault.exits:
        yield f"exit {answer.exit_code} in place of {' or '.join(map(str, fault.exits))}"
    if fault.where == "everywhere" and excluded:
        yield "nodes are excluded although all are alike"
    if answer.exit_code == 10 and not excluded:
        yield "nobody is excluded"


def _first(answer: Answer) -> Mapping[str, Any]:
    causes: Sequence[Mapping[str, Any]] = answer.report.get("causes") or [{}]
    return causes[0]


def row(draw: Draw, answer: Answer, names: Sequence[str]) -> dict[str, Any]:
    """What results.json keeps of a run: nothing that tells the machine."""
    first, readiness = _first(answer), answer.report.get("readiness", {})
    return {
        "fault": draw.fault.name if draw.fault is not None else "",
        "way": draw.way,
        "planted": list(draw.guilty(names)),
        "decoys": [f"{decoy.name} ({names[place]})" for decoy, place in draw.decoys],
        "cause": first.get("id", ""),
        "hosts": list(first.get("hosts", [])),
        "exclude": list(readiness.get("exclude", [])),
        "exit": answer.exit_code,
        "took_s": round(answer.took_s, 1),
        "wrong": wrongs(draw, answer, names),
    }


def one_run(stand: Stand, draw: Draw, folder: Path, budget: str) -> dict[str, Any]:
    """Plant, ask, take back, score."""
    what = draw.fault.name if draw.fault is not None else ""
    with ExitStack() as stack:
        try:
            planted(stand, draw, stack)
        except CannotPlantError as why:
            return {"fault": what, "way": draw.way, "skipped": str(why)}
        answer = ready(stand, draw.way, folder, budget)
    (folder / "said.txt").write_text(answer.said, encoding="utf-8")
    return row(draw, answer, stand.names)


def settled(stand: Stand) -> None:
    """Wait until all nodes are idle again. A node that was cut off for so long that it was set
    down comes back when its daemon reports itself anew.
    """
    until = time.monotonic() + SETTLED_S
    anew = time.monotonic() + REPORTS_ANEW_S
    while time.monotonic() < until:
        down = [name for name, state in stand.slurm.states().items() if state.rstrip("*") != "idle"]
        if not down:
            return
        if time.monotonic() > anew:
            for name in down:
                stand.restart(stand[name])
            anew = time.monotonic() + REPORTS_ANEW_S
        time.sleep(0.2)


def run(
    draws: Sequence[Draw], folder: Path, lane: int, budget: str
) -> Iterator[tuple[Draw, dict[str, Any]]]:
    """One cluster for all draws, one after the other."""
    with standing(folder / "stand", lane) as stand:
        for draw in draws:
            name = f"{draw.number:03d}-{'healthy' if draw.fault is None else draw.fault.kind}"
            yield draw, one_run(stand, draw, folder / name, budget)
            settled(stand)


def rate(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """How many are right, of how many."""
    made = [one for one in rows if "skipped" not in one]
    return sum(not one["wrong"] for one in made), len(made)


def _keep(results: Mapping[str, Any], file: Path) -> None:
    file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 where the promise is kept: 95 % of the faults, and no exclusion in any healthy
    run.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--healthy", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--budget", default="quick")
    parser.add_argument("--lane", type=int, default=95)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args(arguments)
    reason = why_not()
    if reason:
        sys.stderr.write(f"no cluster on this machine: {reason}\n")
        return 3
    seeded = {} if asked.seed is None else {"seed": asked.seed}
    kept = (asked.append or asked.missing) and asked.out.exists()
    before = (
        json.loads(asked.out.read_text(encoding="utf-8")) if kept else {"faults": [], "healthy": []}
    )
    there = {one["fault"] for one in before["faults"]} if asked.missing else set()
    faults = [fault for fault in EVERY if asked.only in fault.name and fault.name not in there]
    healthy_before = len(before["healthy"])
    healthy_drawn = healthy_draws(healthy_before + asked.healthy, COUNT, **seeded)[healthy_before:]
    draws = [*fault_draws(faults, asked.runs, COUNT, **seeded), *healthy_drawn]
    again = {draw.fault.name for draw in draws if draw.fault is not None}
    results = {
        "budget": asked.budget,
        "faults": [one for one in before["faults"] if one["fault"] not in again],
        "healthy": list(before["healthy"]),
    }
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="nodes-"))
    for draw, found in run(draws, folder, asked.lane, asked.budget):
        results["faults" if draw.fault is not None else "healthy"].append(found)
        _keep(results, asked.out)
        told = (
            (found.get("skipped") and f"skipped: {found['skipped']}")
            or "; ".join(found["wrong"])
            or "right"
        )
        sys.stdout.write(
            f"{draw.number:4d} {found['fault'] or 'healthy':40s} {draw.way:6s}"
            f" {found.get('took_s', 0):6.1f} s  {told}\n"
        )
        sys.stdout.flush()
    promised = {fault.name for fault in PROMISED}
    right, made = rate([one for one in results["faults"] if one["fault"] in promised])
    well, healthy = rate(results["healthy"])
    sys.stdout.write(f"faults: {right} of {made} right; healthy: {well} of {healthy} right\n")
    return (
        0
        if right >= PROMISE * made and not any(one.get("exclude") for one in results["healthy"])
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
