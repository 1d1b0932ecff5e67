"""Makes jobs of a range of seeds, lets `trainprobe attach` look at each once, and holds what it
says against the truth.

    python -m tests.gallery.live.generated.judge --seed 1000000 --jobs 200    goes on where it was interrupted
    python -m tests.gallery.live.generated.judge --seed 17 --again            one job once more; records nothing

Development seeds (below 100 000) and reporting seeds (from 1 000 000 on) are told apart in the
package's docstring; only results of reporting seeds are kept in `results.json`, those of others in
`.accuracy/generated.json`. A job that did not come to what was planned is not judged, and a further
seed takes its place. Two at once on two cores take about twelve seconds a job.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.gallery.live.generated import REPORTING, running, scores
from tests.gallery.live.generated.maker import LIBRARIES, Job, job_of
from tests.gallery.live.generated.scores import RESULTS, Row

TRIALS = ROOT / ".accuracy" / "generated.json"
LONGEST_LOOK_S = 180


def look_at(job: Job, keep_in: Path | None = None) -> Row:
    """Start the job, wait until it is where it was meant to come, attach once, end it.

    A row has `skipped` with the reason where there was nothing to judge. With `keep_in`, the case,
    the report and the job's files are kept there.
    """
    began = time.monotonic()
    own = running.start(job)
    row: Row = {"seed": job.seed, "truth": dataclasses.asdict(job.truth)}
    report = own.home.with_suffix(".json")
    try:
        if reason := running.settled(own):
            row["skipped"] = reason
            return row
        steps, settled_at = own.steps(), time.monotonic()
        pid = running.pid_to_type(own)
        done = attach(pid, report, keep_in)
        # A shell of which a job is only a part is refused with the number to type.
        if advised := re.search(r"`trainprobe attach (\d+)`", done.stderr):
            done = attach(int(advised[1]), report, keep_in)
        looked_at = time.monotonic()
        if reason := running.held(own, steps):
            row["skipped"] = f"after the look: {reason}"
            return row
        found: dict[str, Any] = (
            json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        )
        answer = {
            "verdict": found.get("verdict", ""),
            "causes": [
                {key: cause[key] for key in ("id", "ranks", "confidence", "named")}
                for cause in found.get("causes", [])[:4]
            ],
        }
        took = {
            "settled_s": round(settled_at - began, 1),
            "look_s": round(looked_at - settled_at, 1),
        }
        return {**row, **answer, **scores.judged(row["truth"], answer), **took}
    finally:
        if keep_in is not None:
            shutil.copytree(
                own.home,
                keep_in / "job",
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("*.pt", "*.distcp", "*.bin"),
            )
        running.end(own)
        report.unlink(missing_ok=True)


def attach(pid: int, report: Path, keep_in: Path | None) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "trainprobe", "attach", str(pid), "--json", str(report)]
    with tempfile.TemporaryDirectory() as folder:
        words += ["--case", str(Path(folder) / "case" if keep_in is None else keep_in / "case")]
        try:
            done = subprocess.run(
                words,
                env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                timeout=LONGEST_LOOK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:  # an answer like any other: nothing was said
            done = subprocess.CompletedProcess(words, 124, "", f"over {LONGEST_LOOK_S} s")
    if keep_in is not None:
        (keep_in / "report.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    return done


def can_run(job: Job) -> bool:
    library = LIBRARIES.get(job.truth.framework)
    return library is None or importlib.util.find_spec(library) is not None


def seeds_to_judge(first: int, rows: list[Row]) -> Iterator[int]:
    """The seeds from the first on that no row has."""
    done = {row["seed"] for row in rows}
    seed = first
    while True:
        if seed not in done:
            yield seed
        seed += 1


def judge(first: int, count: int, at_once: int, minutes: float, path: Path) -> list[Row]:
    """Judge until so many jobs that fell ill as planned are kept, or the time is up."""
    rows = scores.results(path)
    until = time.monotonic() + 60 * minutes
    seeds = (seed for seed in seeds_to_judge(first, rows) if can_run(job_of(seed)))
    pending: set[Future[Row]] = set()
    with ThreadPoolExecutor(at_once) as pool:

        def wanted() -> int:
            kept = sum("skipped" not in row and row["seed"] >= first for row in rows)
            return 0 if time.monotonic() > until else count - kept - len(pending)

        while pending or wanted() > 0:
            while len(pending) < at_once and wanted() > 0:
                pending.add(pool.submit(look_at, job_of(next(seeds))))
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                rows.append(future.result())
                print(line_of(rows[-1]), flush=True)
                keep(rows, path)
    return rows


def keep(rows: list[Row], path: Path) -> None:
    """Write all rows anew, in one piece: an interrupted run keeps what it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: int(row["seed"])))
    new.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    new.rename(path)


def line_of(row: Row) -> str:
    truth = row["truth"]
    what = f"{row['seed']} {truth['mechanism']}/{truth['framework']}/{truth['place']}/{truth['launcher']} of {truth['world']}"
    if "skipped" in row:
        return f"----  {what}: {row['skipped']}"
    marks = "".join(
        letter if row[name] else "-"
        for letter, name in (
            ("C", "cause_right"),
            ("R", "ranks_right"),
            ("K", "class_right"),
            ("V", "verdict_right"),
        )
    )
    return (
        f"{marks}  {what}: {truth['cause']} {list(map(list, truth['ranks']))} said {row['answer']}"
        f" {row['answered_ranks']} {row['confidence']:.2f} {row['verdict']}"
        f" ({row['settled_s']:.0f} + {row['look_s']:.0f} s)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument(
        "--again", action="store_true", help="one job; keep its case, record nothing"
    )
    asked = parser.parse_args()
    if asked.again:
        kept = ROOT / ".accuracy" / f"generated-{asked.seed}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        job = job_of(asked.seed)
        truth = json.dumps(dataclasses.asdict(job.truth), indent=1)
        (kept / "truth.json").write_text(truth + "\n", encoding="utf-8")
        row = look_at(job, kept)
        report = kept / "report.txt"
        print(report.read_text(encoding="utf-8") if report.exists() else "")
        print(json.dumps(row, indent=1), line_of(row), f"kept in {kept}", sep="\n")
        return 0
    path = RESULTS if asked.seed in REPORTING else TRIALS
    rows = judge(asked.seed, asked.jobs, asked.at_once, asked.minutes, path)
    own = [row for row in rows if "skipped" not in row and row["seed"] >= asked.seed]
    print(
        f"{len(own)} judged, {sum('skipped' in row for row in rows)} did not come to what was planned"
    )
    for name, share, interval in scores.in_short(own):
        print(f"{name:34} {share:12} {interval}")
    for key in ("mechanism", "framework"):
        print("\n" + scores.by(own, key))
    return 0


if __name__ == "__main__":
    sys.exit(main())
