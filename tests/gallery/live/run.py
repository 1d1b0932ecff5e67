"""Runs the live gallery: starts each planned job, lets it fall ill, types `trainprobe attach`, and
keeps what it said and saw.

    python -m tests.gallery.live.run                        every run of the plan that has no result yet
    python -m tests.gallery.live.run --kinds flock_cache    only these kinds
    python -m tests.gallery.live.run --numbers 0            the first run of each kind

Results and evidence lie in --into (default .accuracy/, one pair of files for each run), so that it
can be stopped and started again.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import lzma
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.cases.scrub import scrubber, smaller, whole
from tests.conftest import ROOT, processes_with
from tests.gallery.live.analyzer import asked
from tests.gallery.live.kinds import KINDS, Planned, plan, truths
from tests.gallery.live.launching import command, free_port, pid_to_type
from tests.gallery.live.surroundings import HERE, PARTS, Site, clear

INTO = ROOT / ".accuracy"
# from the start of a job to its marker: eight ranks import torch on two cores in 15 to 40 s
PATIENCE_S = 150.0
ATTACH_S = 90.0
# an ill job has been still for this long and up to four seconds more: under five seconds nobody can
# call it hung
STILL_S = 6.5
# the first runs of each kind that hangs get a second look with --deep, for the scores of what the
# recorder shows
DEEP_RUNS = 3
STOP = threading.Event()  # Ctrl-C: runs under way are ended and cleared away
KEPT = ("id", "confidence", "points", "named", "ranks", "group")


def one_run(run: Planned, into: Path, deep_runs: int = DEEP_RUNS) -> dict[str, Any]:
    """Start, look, end, and write the result; `error` in it where the run itself went wrong, and
    then it is tried again next time.

    The first `deep_runs` of a kind that hangs are looked at with --deep too.
    """
    began = time.monotonic()
    site = Site(run, Path(tempfile.mkdtemp(prefix="job-")), secrets.token_hex(8), free_port())
    result: dict[str, Any] = {
        "key": run.key,
        "plan": vars(run),
        "decoy": run.decoy,
        "truths": truths(run),
        "verdicts": KINDS[run.kind].verdicts,
    }
    try:
        result |= _looked(site, into, deep_runs)
    except Exception as error:  # noqa: BLE001 - one run that goes wrong must not end the others
        result["error"] = f"{type(error).__name__}: {error}"
    finally:
        result["left"] = clear(site)
    result["took_s"] = round(time.monotonic() - began, 1)
    if "error" not in result:
        (into / f"{run.key}.json").write_text(json.dumps(result), encoding="utf-8")
    else:
        for ending in (
            "xz",
            "deep.xz",
            "json",
        ):  # what was seen of a job that did not fall ill as planned counts for nothing
            (into / f"{run.key}.{ending}").unlink(missing_ok=True)
        (into / f"{run.key}.failed").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return result


def _looked(site: Site, into: Path, deep_runs: int) -> dict[str, Any]:
    run, kind = site.run, KINDS[site.run.kind]
    site.args += kind.args
    for part in kind.before:
        PARTS[part](site)
    script = site.plant(HERE / "programs" / f"{kind.script}.py")
    log = site.folder / "train.log"
    keyboard, terminal = os.openpty()
    site.undo += [functools.partial(os.close, keyboard), functools.partial(os.close, terminal)]
    with log.open("wb") as sink:
        words = command(site, script)
        job = subprocess.Popen(
            words,
            cwd=site.folder,
            env=site.environment(),
            stdin=terminal,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    site.undo += [job.wait, job.kill]  # from the last to the first
    _until_ready(site, job, kind.ready.format(last=run.when - 1))
    for part in kind.during:
        PARTS[part](site)
    _pause(
        (kind.settle_s if kind.tier == "healthy" else max(STILL_S, kind.settle_s)) + run.seed % 5
    )
    steps = _steps(site)
    result = _attach(site, job, into / f"{run.key}.xz", list(kind.words))
    if kind.verdicts == ("hung",) and _steps(site) != steps:
        raise RuntimeError(f"the job goes on: {_log(site)}")
    if job.poll() is not None:
        raise RuntimeError(f"the job has ended: {_log(site)}")
    if run.number < deep_runs and "hung" in kind.verdicts and not kind.words:
        result["deep"] = _attach(site, job, into / f"{run.key}.deep.xz", ["--deep"])
    return result


def _pause(seconds: float) -> None:
    if STOP.wait(seconds):
        raise RuntimeError("stopped by the user")


def _until_still(site: Site) -> None:
    """Wait until the job's processes have burnt next to nothing for two seconds in a row: all
    are past their imports, and wait.
    """
    until, calm, before = time.monotonic() + PATIENCE_S, 0, -1
    while calm < 2 and time.monotonic() < until:
        _pause(1)
        spent = 0
        for pid in processes_with(site.token):
            with contextlib.suppress(OSError):
                spent += sum(
                    map(
                        int,
                        Path("/proc", str(pid), "stat")
                        .read_text(encoding="utf-8")
                        .rpartition(")")[2]
                        .split()[11:13],
                    )
                )
        calm = calm + 1 if before >= 0 and spent - before < 8 and spent > 200 else 0
        before = spent


def _steps(site: Site) -> int:
    """How many steps the ranks have written down so far."""
    return sum(
        path.read_text(encoding="utf-8", errors="replace").count("step ")
        for path in (site.folder / "train.log", *site.folder.glob("metrics-*.csv"))
    )


def _log(site: Site) -> str:
    return (site.folder / "train.log").read_text(encoding="utf-8", errors="replace")[-3000:]


def _until_ready(site: Site, job: subprocess.Popen[bytes], pattern: str) -> None:
    until = time.monotonic() + PATIENCE_S
    if pattern == "still":
        _until_still(site)
        return
    while pattern and time.monotonic() < until:
        texts = [
            path.read_text(encoding="utf-8", errors="replace")
            for path in (site.folder / "train.log", *site.folder.glob("metrics-*.csv"))
        ]
        if any(re.search(pattern, text) for text in texts):
            return
        if job.poll() is not None:
            raise RuntimeError(f"the job ended early: {texts[0][-3000:]}")
        _pause(0.1)
    if pattern:
        raise RuntimeError(f"the job did not get ready: {texts[0][-3000:]}")


def _states(token: str) -> dict[int, str]:
    found = {}
    for pid in processes_with(token):
        try:
            found[pid] = (
                Path("/proc", str(pid), "stat")
                .read_text(encoding="utf-8")
                .rpartition(")")[2]
                .split()[0]
            )
        except OSError:
            continue
    return found


def _attach(site: Site, job: subprocess.Popen[bytes], to: Path, more: list[str]) -> dict[str, Any]:
    before = _states(site.token)
    if job.poll() is not None:
        raise RuntimeError(f"the job had ended: {_log(site)}")
    pid = pid_to_type(site, job.pid)
    case = site.folder / f"case-{secrets.token_hex(3)}"
    words = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        str(pid),
        "--case",
        str(case),
        "--json",
        str(site.folder / f"{case.name}.json"),
        *more,
    ]
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}
    done = subprocess.run(
        words,
        cwd=site.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=ATTACH_S,
        check=False,
    )
    took = time.monotonic() - began
    after = _states(site.token)
    told = site.folder / f"{case.name}.json"
    if not told.exists():
        raise RuntimeError(
            f"attach gave no report, exit {done.returncode}:"
            f" {done.stderr[-2000:]}{done.stdout[-2000:]}"
        )
    report = json.loads(told.read_text(encoding="utf-8"))
    told_by_torch = asked(case) if "--deep" in more else None
    size = _keep(site.run, took, case, to, site.folder, told_by_torch)
    stopped = sorted(
        pid for pid, state in after.items() if state in "Tt" and before.get(pid, "T") not in "Tt"
    )
    return {
        "exit": done.returncode,
        "attach_s": round(took, 2),
        "verdict": report["verdict"],
        "says": report["says"],
        "causes": [{name: cause.get(name) for name in KEPT} for cause in report["causes"]],
        "suspects": [
            {"ranks": suspect["ranks"], "how": suspect["how"], "says": suspect["says"]}
            for suspect in report["suspects"]
        ],
        "pids_gone": sorted(set(before) - set(after)) if site.run.kind != "thread_at_exit" else [],
        "stopped": stopped,
        "evidence_bytes": size,
    }


def _keep(
    run: Planned,
    took: float,
    case: Path,
    to: Path,
    folder: Path,
    told_by_torch: dict[str, Any] | None,
) -> int:
    """Write the plan and the case's evidence, free of names of this machine, compressed. Return
    the size in bytes.
    """
    scrub = scrubber(folder, socket.gethostname())
    about = {"plan": vars(run), "attach_s": round(took, 2), "recorded": time.strftime("%Y-%m-%d")}
    lines = [
        json.dumps(
            about
            if told_by_torch is None
            else {**about, "torchfrtrace": whole(told_by_torch, scrub)}
        )
    ]
    for line in (case / "evidence.jsonl").read_text(encoding="utf-8").splitlines():
        look = json.loads(line)
        lines.append(
            json.dumps(
                whole(
                    {**look, "data": smaller(look["kind"], look.get("data", {})), "files": []},
                    scrub,
                ),
                separators=(",", ":"),
            )
        )
    packed = lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    to.write_bytes(packed)
    return len(packed)


def _told(result: dict[str, Any], place: int, of: int) -> str:
    from tests.gallery.live.score import outcome_of

    first = (
        result.get("causes") or [{"id": result.get("verdict", "-"), "confidence": 0, "ranks": []}]
    )[0]
    right = "ERROR" if "error" in result else outcome_of(result)
    trouble = result.get("error", "")[:300] or (
        f" LEFT {result['left']}" if result["left"] else ""
    ) + (f" STOPPED {result['stopped']}" if result["stopped"] else "")
    run = result["plan"]
    where = f"{run['world']} {run['launch']}, {run['form']}, pick {run['pick']}"
    return (
        f"{place}/{of} {result['took_s']:5.1f} s attach {result.get('attach_s', 0):4.1f}  {right:8}"
        f" {result['key']:24} ({where}): {first['id']} {first['ranks']} {first['confidence']}"
        f" {trouble}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--into", type=Path, default=INTO)
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--numbers", type=int, nargs="*", default=[])
    parser.add_argument("--most-ranks", type=int, default=64)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument(
        "--limit-s", type=float, default=1e9, help="start no more runs after this many seconds"
    )
    parser.add_argument(
        "--deep-runs",
        type=int,
        default=DEEP_RUNS,
        help="how many of each kind that hangs get a second look with --deep",
    )
    parser.add_argument("--again", action="store_true", help="also runs that have a result")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    runs = [
        run
        for run in plan()
        if (not given.kinds or run.kind in given.kinds)
        and (not given.numbers or run.number in given.numbers)
    ]
    runs = [
        run
        for run in runs
        if run.world <= given.most_ranks
        and (given.again or not (given.into / f"{run.key}.json").exists())
    ]
    began, ended = time.monotonic(), 0

    def turn(run: Planned) -> None:
        nonlocal ended
        if time.monotonic() - began < given.limit_s and not STOP.is_set():
            result = one_run(run, given.into, given.deep_runs)
            ended += 1
            print(_told(result, ended, len(runs)), flush=True)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: STOP.set())
    with ThreadPoolExecutor(given.at_once) as pool:
        list(pool.map(turn, runs))
    print(f"{ended} runs in {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
