"""Starts jobs of the live gallery under `trainprobe run`, and measures the time from the stall to
the report; of healthy ones, how often they were looked at and whether there was an alarm.

    python -m tests.gallery.live.under_run                        the first run of each kind
    python -m tests.gallery.live.under_run --kinds shard_poll     only these kinds

A stall begins with the last step that the job wrote down, or with what made it ill if that came
later. Each result is one line of JSON in --into.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.gallery.live.kinds import KINDS, Planned, plan
from tests.gallery.live.launching import command, free_port
from tests.gallery.live.run import _steps, _until_ready
from tests.gallery.live.surroundings import HERE, PARTS, Site, clear

INTO = ROOT / ".accuracy" / "under_run.jsonl"
HUNG_WITHIN_S = 75.0
HEALTHY_S = 60.0
TOLD = ("hung", "unseen", "slow")


def means(event: dict[str, Any]) -> str:
    """What an event of the journal says of the job: a hang that was held is one later."""
    return "hung" if event["event"] == "outlasted" else str(event.get("means") or "")


def events(folder: Path) -> list[dict[str, Any]]:
    """The journal of a run so far."""
    path = folder / "run.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def one_run(run: Planned) -> dict[str, Any]:
    """Start a job, let it fall ill, wait for the report."""
    site = Site(run, Path(tempfile.mkdtemp(prefix="job-")), secrets.token_hex(8), free_port())
    kind = KINDS[run.kind]
    result: dict[str, Any] = {"key": run.key, "tier": kind.tier, "launch": run.launch}
    result |= {"world": run.world, "verdicts": kind.verdicts}
    try:
        result |= _watched(site)
    except Exception as error:  # noqa: BLE001 - one run that goes wrong must not end the others
        result["error"] = f"{type(error).__name__}: {str(error)[-600:]}"
    finally:
        clear(site)
    return result


def _watched(site: Site) -> dict[str, Any]:
    run, kind = site.run, KINDS[site.run.kind]
    site.args += kind.args
    for part in kind.before:
        PARTS[part](site)
    script = site.plant(HERE / "programs" / f"{kind.script}.py")
    folder = site.folder / "watched"
    keyboard, terminal = os.openpty()
    site.undo += [functools.partial(os.close, keyboard), functools.partial(os.close, terminal)]
    words = [sys.executable, "-m", "trainprobe", "run", "--case", str(folder), "--"]
    environment = {**site.environment(), "PYTHONPATH": str(ROOT)}
    with (site.folder / "train.log").open("wb") as sink:
        job = subprocess.Popen(
            [*words, *command(site, script)],
            cwd=site.folder,
            env=environment,
            stdin=terminal,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    site.undo += [job.wait, job.kill]
    _until_ready(site, job, kind.ready.format(last=run.when - 1))
    for part in kind.during:
        PARTS[part](site)
    still_s = 2.5 if kind.ready == "still" else 0.0  # by then it has been still for so long
    stalled, steps = time.time() - still_s, _steps(site)
    hangs = "hung" in kind.verdicts
    ends = time.time() + (HUNG_WITHIN_S if hangs else HEALTHY_S)
    told: dict[str, Any] | None = None
    changed = stalled
    while time.time() < ends and told is None and job.poll() is None:
        time.sleep(0.1)
        told = next((one for one in events(folder) if means(one) in TOLD), None)
        if told is None:  # the report, which quotes steps, is in the log only after that
            stalled, now = changed, _steps(site)
            if now != steps:
                changed, steps = time.time(), now
    seen = events(folder)
    looks = [one for one in seen if one["event"] == "looked"]
    found = {
        "looks": [
            (one["verdict"], one["conclusive"], one["took_s"], one["cpu_s"]) for one in looks
        ],
        "told": means(told) if told is not None else "",
        "ended": job.poll(),
        "says": told["says"] if told is not None else looks[-1]["says"] if looks else "",
    }
    if told is not None and hangs:
        found["stall_to_report_s"] = round(told["at"] - stalled, 1)
        noticed = [one["at"] for one in seen if one["event"] == "look" and one["at"] > stalled]
        found["noticed_s"] = round(noticed[0] - stalled, 1) if noticed else None
        found["times"] = [
            (one["event"], one.get("means") or one.get("because"), round(one["at"] - stalled, 1))
            for one in seen
            if one["event"] in ("look", "looked", "outlasted")
        ]
        found["load"] = round(os.getloadavg()[0] / (os.cpu_count() or 1), 1)
    return found


def summary(results: list[dict[str, Any]]) -> str:
    """The figures in some lines."""
    hung = [one for one in results if "hung" in one["verdicts"] and "error" not in one]
    times = sorted(one["stall_to_report_s"] for one in hung if "stall_to_report_s" in one)
    healthy = [one for one in results if one["tier"] == "healthy" and "error" not in one]
    noticed = [one["noticed_s"] for one in hung if one.get("noticed_s") is not None]
    cpu = [look[3] for one in hung for look in one["looks"]]
    lines = [f"{len(results)} runs, {sum('error' in one for one in results)} went wrong themselves"]
    if times:
        lines.append(
            f"{len(hung)} that hang: {len(times)} reported; stall to report median"
            f" {statistics.median(times):.1f} s, longest {times[-1]:.1f} s"
        )
        lines.append(
            f"  stall to the first look: median {statistics.median(noticed):.1f} s; a look took"
            f" {statistics.median(cpu):.1f} s of processor time; load per processor"
            f" {statistics.median(one['load'] for one in hung if 'load' in one):.1f}"
        )
        lines += [
            f"  over 15 s: {one['key']} {one['stall_to_report_s']} s"
            for one in hung
            if one.get("stall_to_report_s", 0) > 15
        ]
    lines += [f"  not reported: {one['key']}: {one['says']}" for one in hung if not one["told"]]
    if healthy:
        alarms = [one["key"] for one in healthy if one["told"] in ("hung", "unseen")]
        looks = sum(len(one["looks"]) for one in healthy)
        lines.append(f"{len(healthy)} healthy: {looks} looks, {len(alarms)} false alarms {alarms}")
    return "\n".join(lines)


def main() -> None:
    """Run the plan and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--numbers", default="0")
    parser.add_argument("--world", type=int, default=8, help="leave out larger ones")
    parser.add_argument("--into", type=Path, default=INTO)
    asked = parser.parse_args()
    kinds = set(asked.kinds.split(",")) if asked.kinds else set(KINDS)
    numbers = {int(number) for number in asked.numbers.split(",")}
    asked.into.parent.mkdir(parents=True, exist_ok=True)
    results = []
    for run in plan():
        if run.kind in kinds and run.number in numbers and run.world <= asked.world:
            results.append(one_run(run))
            with asked.into.open("a", encoding="utf-8") as file:
                file.write(json.dumps(results[-1]) + "\n")
            one = results[-1]
            print(
                run.key, one.get("told"), one.get("stall_to_report_s"), one.get("error"), flush=True
            )
    print(summary(results))


if __name__ == "__main__":
    main()
