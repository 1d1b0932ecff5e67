"""Hold what `trainprobe explain` says of each case of logs against the truth.

    python -m tests.gallery.logs.score [--part fit|report] [--misses] [--only CASE …] [--keep]
    [--no-baselines]

`--keep` writes results.json, from which docs/accuracy.md is made; that needs all cases.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.gallery.live import calibration
from tests.gallery.live.calibration import bins, calibration_error
from tests.gallery.live.score import wilson
from tests.gallery.logs import baselines
from tests.gallery.logs.answers import CASES, HERE, Answer, digest, read_answers

RESULTS = HERE / "results.json"
KEPT = ("id", "ranks", "confidence", "points", "named", "group")
Result = dict[str, Any]


def judged(
    paths: Sequence[str], env_files: Sequence[str] = (), size: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Verdict, and id, ranks and confidence of each cause; `fault` where the tool itself failed.
    `size` holds `nodes` and `gpus` where they are told.
    """
    from trainprobe.errors import UsageError
    from trainprobe.model.request import ExplainRequest
    from trainprobe.pipelines import explain

    told = size or {}
    try:
        report = explain(
            ExplainRequest(
                paths=tuple(paths),
                env_files=tuple(env_files),
                argv=("trainprobe", "explain"),
                nodes=told.get("nodes"),
                gpus=told.get("gpus"),
            )
        )
    except UsageError as error:
        return {
            "verdict": "undetermined",
            "causes": [],
            "refused": str(error).replace(f"{CASES}/", ""),
        }
    except Exception as error:  # noqa: BLE001 - a fault of the tool on one case is a result
        return {"verdict": "fault", "causes": [], "fault": f"{type(error).__name__}: {error}"[:200]}
    kept = [
        (one.id, list(one.ranks), round(one.confidence, 4), one.points, one.named, one.group)
        for one in report.causes[:8]
    ]
    return {
        "verdict": str(report.verdict),
        "causes": [dict(zip(KEPT, row, strict=True)) for row in kept],
    }


def _first_id(paths: Sequence[str]) -> str:
    causes = judged(paths)["causes"]
    return str(causes[0]["id"]) if causes else "none"


def result_of(answer: Answer, with_baselines: bool = True) -> Result:
    """Run the tool, and the two simple rules, on one case."""
    folder = CASES / answer.case
    given = sorted(str(path) for path in (folder / "given").glob("env*"))
    size = {
        name: int(number)
        for path in (folder / "given").glob("size*")
        for name, number in (word.split("=") for word in path.read_text().split())
    }
    paths = (
        sorted(str(path) for path in folder.iterdir() if path.name != "given")
        if given or size
        else [str(folder)]
    )
    began = time.perf_counter()
    said = judged(paths, given, size)
    row: Result = {"case": answer.case, **said, "took_s": round(time.perf_counter() - began, 2)}
    if with_baselines:
        row["last_line"], row["first_error"] = (
            baselines.last_line(folder, _first_id),
            baselines.first_error(folder, _first_id),
        )
    return row


def accepted(answer: Answer) -> tuple[str, ...]:
    return (answer.cause, *answer.also)


def fits(answer: Answer, said: Mapping[str, Any], places: int = 1) -> bool:
    """Does a right id stand among the first `places`? Where the truth is `none`, nothing may be
    named and the verdict must be true.
    """
    ids = [str(one["id"]) for one in said["causes"][:places]] or ["none"]
    if answer.cause == "none" and ids == ["none"]:
        return said["verdict"] in answer.verdict
    return any(one in accepted(answer) for one in ids)


def fully(answer: Answer, said: Mapping[str, Any]) -> bool:
    """Cause, ranks and verdict are all right in first place."""
    if not fits(answer, said) or said["verdict"] not in answer.verdict:
        return False
    return (
        answer.ranks is None
        or not said["causes"]
        or sorted(said["causes"][0]["ranks"]) == sorted(answer.ranks)
    )


def wrong_ranks(answer: Answer, said: Mapping[str, Any]) -> bool:
    """The cause is right and ranks are named, but others than those that are to blame."""
    return bool(
        fits(answer, said)
        and answer.ranks is not None
        and said["causes"]
        and sorted(said["causes"][0]["ranks"]) != sorted(answer.ranks)
    )


def alarm(answer: Answer, said: Mapping[str, Any]) -> bool:
    """A healthy job is blamed for something."""
    return (
        "healthy" in answer.verdict
        and answer.cause == "none"
        and (bool(said["causes"]) or said["verdict"] in ("crashed", "hung", "slow", "at-risk"))
    )


def rule_right(answer: Answer, said: str) -> bool:
    return said in accepted(answer)


def confidences(rows: Iterable[tuple[Answer, Mapping[str, Any]]]) -> list[tuple[float, bool]]:
    """The confidence of each first place, and whether its id is right."""
    return [
        (float(said["causes"][0]["confidence"]), fits(answer, said))
        for answer, said in rows
        if said["causes"]
    ]


Row = tuple[Answer, Result]


def figures(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """The figures of a set of results: hits, of how many."""
    ill = [row for row in rows if row[0].cause != "none"]
    healthy = [row for row in rows if row[0].cause == "none" and "healthy" in row[0].verdict]
    stops = [row for row in rows if row[0].cause == "none" and "healthy" not in row[0].verdict]
    decoys = [row for row in rows if row[0].decoy]
    made = {
        "all cases: right in first place": (sum(fits(*row) for row in rows), len(rows)),
        "all cases: right among the first three": (sum(fits(*row, 3) for row in rows), len(rows)),
        "ill jobs: right cause in first place": (sum(fits(*row) for row in ill), len(ill)),
        "ill jobs: right cause among the first three": (
            sum(fits(*row, 3) for row in ill),
            len(ill),
        ),
        "cause, ranks and verdict right in first place": (
            sum(fully(*row) for row in rows),
            len(rows),
        ),
        "right cause, but wrong ranks": (
            sum(wrong_ranks(*row) for row in rows),
            sum(fits(*row) and row[0].ranks is not None for row in rows),
        ),
        "decoys: right in first place": (sum(fits(*row) for row in decoys), len(decoys)),
        "unknown illnesses: `unknown` in first place": _hits(
            rows, lambda answer: answer.cause == "unknown"
        ),
        "healthy jobs called healthy": (sum(fits(*row) for row in healthy), len(healthy)),
        "healthy jobs: false alarms": (sum(alarm(*row) for row in healthy), len(healthy)),
        "logs that simply stop: nothing is guessed": (sum(fits(*row) for row in stops), len(stops)),
        "no work done: `no-steps-run`": _hits(rows, lambda answer: answer.cause == "no-steps-run"),
    }
    for rule, name in (("last_line", "last line"), ("first_error", "first error")):
        known = [row for row in rows if rule in row[1]]
        made[f"baseline, {name}: right, all cases"] = (
            sum(rule_right(answer, said[rule]) for answer, said in known),
            len(known),
        )
        bad = [row for row in known if row[0].cause != "none"]
        made[f"baseline, {name}: right, ill jobs"] = (
            sum(rule_right(answer, said[rule]) for answer, said in bad),
            len(bad),
        )
    return made


def _hits(rows: Sequence[Row], test: Any) -> tuple[int, int]:
    kept = [row for row in rows if test(row[0])]
    return sum(fits(*row) for row in kept), len(kept)


def misses(rows: Sequence[Row]) -> list[str]:
    """One line for each wrong first place."""
    lines = []
    for answer, said in rows:
        if (
            not fits(answer, said)
            or wrong_ranks(answer, said)
            or said["verdict"] not in answer.verdict
        ):
            told = (
                ", ".join(
                    f"{one['id']} {one['ranks']} {one['confidence']:.2f}"
                    for one in said["causes"][:3]
                )
                or "nothing"
            )
            kind = (
                "CAUSE"
                if not fits(answer, said)
                else "ranks"
                if wrong_ranks(answer, said)
                else "verdict"
            )
            wanted = (
                f"{'|'.join(accepted(answer))}"
                f" {list(answer.ranks) if answer.ranks is not None else '*'}"
                f" {'|'.join(answer.verdict)}"
            )
            lines.append(
                f"{kind:7} {answer.case} [{answer.origin}, {answer.notes}] wanted {wanted}; said"
                f" {said['verdict']}: {told} {said.get('fault', '')}"
            )
    return sorted(lines)


def show(rows: Sequence[Row]) -> None:
    """Print the figures of one part."""
    for name, (hits, of) in figures(rows).items():
        if of:
            low, high = wilson(hits, of)
            print(
                f"  {name:55} {hits:4d} of {of:4d}  {100 * hits / of:5.1f} %  ({100 * low:.1f} to"
                f" {100 * high:.1f})"
            )
    pairs = confidences(rows)
    named = [
        (float(said["causes"][0]["confidence"]), fits(answer, said))
        for answer, said in rows
        if said["causes"] and said["causes"][0]["named"]
    ]
    print(
        f"  calibration error {calibration_error(pairs):.3f} over {len(pairs)} answers,"
        f" {calibration_error(named):.3f} over {len(named)} named"
    )
    for count, mean, right in bins(named):
        print(f"    {count:4d} at {mean:.3f}: {right:.3f} right")
    for origin in ("recorded", "written"):
        kept = [row for row in rows if row[0].origin == origin]
        print(f"  {origin}: {sum(fits(*row) for row in kept)} of {len(kept)}")
    faults = [said["fault"] for _, said in rows if "fault" in said]
    print(f"  faults of the tool: {len(faults)} {sorted(set(faults))[:5]}")


def as_live(answer: Answer, said: Mapping[str, Any]) -> Result:
    """A result in the form that `calibration` reads. Ranks do not count here: whatever is named
    passes.
    """
    sets = [one["ranks"] for one in said["causes"]]
    return {
        "causes": said["causes"],
        "verdict": said["verdict"],
        "verdicts": [said["verdict"]],
        "truths": [(accepted(answer), sets)],
        "plan": {"kind": answer.case},
    }


def fitted(rows: Sequence[Row]) -> tuple[float, float]:
    """The level of `unknown` and the temperature with the least log loss on ill jobs."""
    return calibration.fitted(
        [as_live(*row) for row in rows if row[0].cause != "none" and row[1]["causes"]]
    )


def at(rows: Sequence[Row], unknown: float, temperature: float) -> list[tuple[float, bool]]:
    """Confidence of what would stand first at this level and temperature, and whether its id is
    right; named causes alone.
    """
    firsts = [
        calibration.first_of(as_live(*row), unknown, temperature)
        for row in rows
        if row[0].cause != "none" and row[1]["causes"]
    ]
    return [(part, right) for name, part, right in firsts if name not in ("unknown", "none")]


def per_cause(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """First places right, by cause."""
    found: dict[str, list[bool]] = defaultdict(list)
    for answer, said in rows:
        found[answer.cause].append(fits(answer, said))
    return {name: (sum(right), len(right)) for name, right in sorted(found.items())}


def run(answers: Sequence[Answer], with_baselines: bool = True, processes: int = 2) -> list[Result]:
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        return list(pool.map(result_of, answers, [with_baselines] * len(answers), chunksize=8))


def load() -> tuple[str, list[Row]]:
    """The digest and the rows of results.json beside the answers that they were held against."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    table = {answer.case: answer for answer in read_answers()}
    return kept["digest"], [
        (table[row["case"]], row) for row in kept["cases"] if row["case"] in table
    ]


def write(results: Sequence[Result]) -> None:
    rows = ",\n".join(
        json.dumps({name: value for name, value in row.items() if name != "took_s"})
        for row in results
    )
    RESULTS.write_text(f'{{"digest": "{digest()}", "cases": [\n{rows}\n]}}\n', encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Score, print, and keep where that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("fit", "report"))
    parser.add_argument("--misses", action="store_true", help="list the misses of the fitting part")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--no-baselines", action="store_true")
    words = parser.parse_args(arguments)
    answers = [
        answer
        for answer in read_answers()
        if words.part in (None, answer.part) and (not words.only or answer.case in words.only)
    ]
    results = run(answers, not words.no_baselines)
    rows = list(zip(answers, results, strict=True))
    for part in ("fit", "report"):
        kept = [row for row in rows if row[0].part == part]
        if kept:
            print(f"{part}:")
            show(kept)
    fit = [row for row in rows if row[0].part == "fit"]
    if fit:
        best = fitted(fit)
        print(f"fitted on the fitting part: unknown {best[0]:g}, temperature {best[1]:g}")
        for part in ("fit", "report"):
            pairs = at([row for row in rows if row[0].part == part], *best)
            print(
                f"  {part}: calibration error of named causes {calibration_error(pairs):.3f} over"
                f" {len(pairs)}, {sum(right for _, right in pairs)} right"
            )
    if words.misses:
        print("\n".join(misses([row for row in rows if row[0].part == (words.part or "fit")])))
    if words.keep:
        write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
