"""Jobs that somebody wrote out of public threads, without a look at rules or gallery, and labelled
before the tool saw them; each round is judged once.

    python -m tests.gallery.live.blind round-1               start each job that has no result, attach, keep the answer
    python -m tests.gallery.live.blind round-1 JOB … --again start these again and say what is answered now; keeps nothing

Each folder `blind/round-N` holds `programs/JOB/`, with `launch.sh`, and `answers.yaml`: the truth,
the address of the thread, and after how many seconds the fault is surely in place. `also` are
other causes and `also_ranks` other sets of ranks that the author holds equally right. One after the
other, a round of thirty jobs takes half an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tests.gallery.live.calibration import calibration_error

BLIND = Path(__file__).resolve().parent / "blind"
LONGEST_LOOK_S = 180
NOTHING: Mapping[str, Any] = {"id": "none", "ranks": [], "confidence": 0.0}
Row = dict[str, Any]


def rounds() -> list[str]:
    found = (path.parent.name for path in BLIND.glob("round-*/answers.yaml"))
    return sorted(found, key=lambda name: int(name.removeprefix("round-")))


def answers_of(name: str) -> list[Row]:
    import yaml

    rows: list[Row] = yaml.safe_load((BLIND / name / "answers.yaml").read_text(encoding="utf-8"))
    return rows


def results_of(name: str) -> list[Row]:
    """What was found when the round was judged."""
    path = BLIND / name / "results.json"
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return rows


def look_at(name: str, truth: Row) -> Row:
    """Start the job under a name that says nothing, wait, attach once, end it."""
    home = Path(tempfile.gettempdir()) / f"run-{secrets.token_hex(4)}"
    shutil.copytree(BLIND / name / "programs" / truth["job"], home)
    environ = {
        **os.environ,
        "PYTHON": os.environ.get("PYTHON", sys.executable),
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    report = home.with_suffix(".json")
    with home.with_suffix(".out").open("wb") as out:
        job = subprocess.Popen(
            ["bash", "launch.sh"],
            cwd=home,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        time.sleep(truth["settle_s"])
        began = time.monotonic()
        done = _attach(job.pid, report, environ)
        # A shell of which a job is only a part is refused with the number to type.
        if advised := re.search(r"trainprobe attach (\d+)", done.stderr):
            done = _attach(int(advised[1]), report, environ)
        took_s, lives = time.monotonic() - began, job.poll() is None
    finally:
        _end(job, home)
    found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return {
        "job": truth["job"],
        "lives": lives,
        "took_s": round(took_s, 1),
        "verdict": found.get("verdict", ""),
        "causes": [
            {key: cause[key] for key in ("id", "ranks", "confidence", "named")}
            for cause in found.get("causes", [])[:4]
        ],
    }


def _attach(pid: int, report: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainprobe", "attach", str(pid), "--json", str(report)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=LONGEST_LOOK_S,
        check=False,
    )


def _end(job: subprocess.Popen[bytes], home: Path) -> None:
    """Kill whatever the job started: its session, and all that stand in its folder."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and os.readlink(f"/proc/{entry}/cwd").startswith(str(home)):
                os.kill(int(entry), signal.SIGKILL)
    job.wait()
    shutil.rmtree(home, ignore_errors=True)


def judged(truth: Row, result: Row) -> Row:
    """Which parts of an answer are right."""
    first = next(iter(result["causes"]), NOTHING)
    return {
        **result,
        "truth": truth["cause"],
        "kind": "healthy" if truth["cause"] == "none" else "broken",
        "answer": first["id"],
        "confidence": first["confidence"],
        "cause": first["id"] in (truth["cause"], *(truth.get("also") or ())),
        "ranks": _particular(first["ranks"], truth)
        in [_particular(ranks, truth) for ranks in (truth["ranks"], *truth.get("also_ranks", ()))],
        "right_verdict": result["verdict"] in truth["verdict"],
    }


def _particular(ranks: Sequence[int] | None, truth: Row) -> list[int]:
    """All ranks of the world are no particular one: some label them so, others name none."""
    return [] if len(ranks or ()) == truth["world"] else sorted(ranks or ())


def ended_before(rows: Sequence[Row]) -> list[Row]:
    """Jobs that had ended by themselves before the look, so that there was nothing to look at."""
    return [row for row in rows if not row["lives"] and not row["verdict"]]


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts over the jobs that were still there when they were looked at."""
    gone = ended_before(rows)
    rows = [row for row in rows if row not in gone]
    broken = [row for row in rows if row["kind"] == "broken"]
    healthy = [row for row in rows if row["kind"] == "healthy"]
    sure = [(row["confidence"], row["cause"]) for row in broken if row["answer"] != "unknown"]

    def count(some: Sequence[Row], *names: str) -> str:
        return f"{sum(all(row[name] for name in names) for row in some)} of {len(some)}"

    return {
        "cause and ranks": count(broken, "cause", "ranks"),
        "cause": count(broken, "cause"),
        "ranks": count(broken, "ranks"),
        "verdict": count(broken, "right_verdict"),
        "called healthy": f"{sum(row['verdict'] == 'healthy' for row in broken)} of {len(broken)}",
        "healthy ones blamed": (
            f"{sum(row['verdict'] not in ('healthy', 'undetermined') for row in healthy)}"
            f" of {len(healthy)}"
        ),
        "calibration error": round(calibration_error(sure), 3) if sure else 0.0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("round", choices=rounds())
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="jobs side by side")
    asked = parser.parse_args()
    truths = {row["job"]: row for row in answers_of(asked.round)}
    results = {} if asked.again else {row["job"]: row for row in results_of(asked.round)}
    left = [job for job in asked.jobs or truths if job not in results]
    with ThreadPoolExecutor(asked.at_once) as pool:
        looks = {pool.submit(look_at, asked.round, truths[job]): job for job in left}
        for look in as_completed(looks):
            job = looks[look]
            results[job] = look.result()
            print(json.dumps(judged(truths[job], results[job])), flush=True)
            if not asked.again:
                lines = ",\n".join(json.dumps(results[job]) for job in truths if job in results)
                (BLIND / asked.round / "results.json").write_text(
                    f"[\n{lines}\n]\n", encoding="utf-8"
                )
    for what, value in summary([judged(truths[job], results[job]) for job in results]).items():
        print(f"{what:22} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
