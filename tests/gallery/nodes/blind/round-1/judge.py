"""Judge `trainprobe attach` over nodes: each job of answers.yaml once, and results.json.

    python judge.py [JOB ...]

Makes a cluster of four hosts for each job (rig.py), starts it, waits settle_s, types the look on the
first node, and keeps its text, report, case and the job's logs under looks/JOB. A job already in
results.json is not run again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import yaml
from rig import HERE, TREE, playing, slurm_job

TOOL = str(TREE / ".venv" / "bin" / "trainprobe")
RESULTS = HERE / "results.json"
LOOKS = TREE / ".accuracy" / "nodes-blind"


def said(report: dict, which: str) -> list:
    """Hosts or ranks that the first cause names; where it names none, those of the first suspect."""
    for part in (report.get("causes") or [{}])[:1] + (report.get("suspects") or [{}])[:1]:
        if part.get(which):
            return sorted(part[which])
    return []


def judged(answer: dict, report: dict | None, seconds: float, status: int) -> dict:
    row = {"job": answer["job"], "expected": answer["cause"], "exit": status, "seconds": round(seconds, 1)}
    if report is None:
        return row | {"verdict": None, "verdict_right": False, "cause": None, "cause_first": False,
                      "cause_among": False, "cause_listed": False, "hosts": [], "hosts_right": False, "ranks": [], "ranks_right": False}
    causes = report.get("causes") or []
    first = causes[0]["id"] if causes else None
    right = {answer["cause"], *answer.get("also", [])}
    healthy = answer["verdict"] == "healthy"
    hosts, ranks = said(report, "hosts"), said(report, "ranks")
    fine = healthy and not any(one["named"] for one in causes)
    return row | {
        "verdict": report["verdict"], "verdict_right": report["verdict"] == answer["verdict"], "conclusive": report["conclusive"],
        "cause": first, "named": causes[0]["named"] if causes else False, "confidence": causes[0]["confidence"] if causes else None,
        "all_causes": [one["id"] for one in causes],
        "cause_first": fine if healthy else first == answer["cause"],
        "cause_among": fine if healthy else first in right,
        "cause_listed": fine if healthy else bool(right & {one["id"] for one in causes}),
        "hosts": hosts, "hosts_right": not hosts if healthy else hosts == sorted(answer["hosts"]),
        "hosts_hit": fine if healthy else bool(set(hosts) & set(answer["hosts"])),
        "ranks": ranks, "ranks_right": not ranks if healthy else (ranks == sorted(answer["ranks"]) if answer["ranks"] else None),
        "world": (report.get("world") or {}).get("size"), "world_right": (report.get("world") or {}).get("size") == answer["world"],
        "says": report["says"], "classes": [one["id"] for one in causes[0]["classes"]] if causes else [],
    }


def run(answer: dict) -> dict:
    job = answer["job"]
    out = LOOKS / job
    shutil.rmtree(out, ignore_errors=True)
    with playing(job, out) as rig:
        node = rig.hosts[0]
        look = answer["look"].replace("trainprobe", TOOL, 1).replace("$JOB", slurm_job(rig) if "$JOB" in answer["look"] else "")
        command = f"{look} --case {out}/case --json {out}/report.json --no-color"
        began = time.monotonic()
        try:
            done = subprocess.run(node.argv("bash", "-c", f"cd {rig.run_dir} && {command}"), env=rig.env, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=120, check=False)
            status, text, errors = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            status, text, errors = -1, str(late.stdout), str(late.stderr)
        seconds = time.monotonic() - began
        (out / "report.txt").write_text(text)
        (out / "stderr.txt").write_text(f"$ {command}\n{errors}")
        after = stacks(rig)
        (out / "own-stacks.txt").write_text(after)
    report = None
    if (out / "report.json").exists():
        report = json.loads((out / "report.json").read_text())
    return judged(answer, report, seconds, status)


def stacks(rig) -> str:
    """What the job's own processes do after the look, for the check of the label."""
    rows = []
    for host, pid, line in rig.pids("python") + rig.pids("ray::"):
        if any(word in line for word in ("relay.py", "dashboard", "log_monitor", "runtime_env/agent", "gcs_server", "raylet/raylet", "monitor.py", "mpirun", "ssh -F")):
            continue
        try:
            done = subprocess.run([str(TREE / ".venv/bin/py-spy"), "dump", "--nonblocking", "--pid", str(pid)],
                                  capture_output=True, text=True, timeout=20, check=False)
            rows.append(f"=== {host.name} {pid} {line[:120]}\n{done.stdout}")
        except subprocess.TimeoutExpired:
            rows.append(f"=== {host.name} {pid} {line[:120]}: no stack")
    return "\n".join(rows)


def totals(rows: list[dict], answers: dict) -> dict:
    counted = [row for row in rows if not answers[row["job"]].get("void")]
    broken = [row for row in counted if answers[row["job"]]["verdict"] != "healthy"]
    healthy = [row for row in counted if answers[row["job"]]["verdict"] == "healthy"]
    share = lambda key, which: f"{sum(bool(r.get(key)) for r in which)}/{len(which)}"
    voids = yaml.safe_load((HERE / "voids.yaml").read_text()) if (HERE / "voids.yaml").exists() else {}
    placed = [row for row in broken if "hosts" not in voids.get(row["job"], {})]
    ranked = [row for row in broken if row.get("ranks_right") is not None]
    return {
        "jobs": len(counted), "broken": len(broken), "healthy": len(healthy),
        "cause_first": share("cause_first", broken), "cause_among": share("cause_among", broken), "cause_listed": share("cause_listed", broken),
        "hosts_right": share("hosts_right", placed), "hosts_hit": share("hosts_hit", placed), "ranks_right": share("ranks_right", ranked),
        "verdict_right": share("verdict_right", broken), "world_right": share("world_right", counted),
        "healthy_called_healthy": share("verdict_right", healthy), "healthy_without_a_named_cause": share("cause_first", healthy),
        "false_named": [r["job"] for r in broken if r.get("named") and not r["cause_among"]],
        "seconds_median": sorted(r["seconds"] for r in counted)[len(counted) // 2] if counted else None,
        "seconds_max": max((r["seconds"] for r in counted), default=None),
        "void_parts": voids,
        "void": {row["job"]: answers[row["job"]]["void"] for row in rows if answers[row["job"]].get("void")},
    }


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    answers = {one["job"]: one for one in yaml.safe_load((HERE / "answers.yaml").read_text())}
    rows = json.loads(RESULTS.read_text())["jobs"] if RESULTS.exists() else []
    wanted = sys.argv[1:] or list(answers)
    for job in wanted:
        if any(row["job"] == job for row in rows):
            continue
        print(time.strftime("%H:%M:%S"), job, flush=True)
        try:
            row = run(answers[job])
        except Exception as error:  # the cluster did not start, or the job did not
            print("   not judged:", repr(error)[:300], flush=True)
            continue
        rows.append(row)
        print("  ", row["verdict"], row["cause"], row["hosts"], row["ranks"], f"{row['seconds']} s", flush=True)
        RESULTS.write_text(json.dumps({"totals": totals(rows, answers), "jobs": rows}, indent=1))
    RESULTS.write_text(json.dumps({"totals": totals(rows, answers), "jobs": rows}, indent=1))
    print(json.dumps(totals(rows, answers), indent=1))


if __name__ == "__main__":
    main()
