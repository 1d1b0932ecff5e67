"""Jobs over several nodes of a real SLURM, written and labelled before the tool saw them; each is
started once and looked at once by `attach --slurm`, as from a login node (root only).

    python -m tests.gallery.nodes.several_nodes round-2                start each job that has no result, keep the answer
    python -m tests.gallery.nodes.several_nodes round-2 JOB … --again  start these again, say what is answered now; keeps nothing

Each folder `blind/round-N` from round 2 on holds `programs/JOB/` with `job.sbatch`, and `answers.yaml`: the truth,
and what is done to nodes. `plant` names nodes on which `plant.sh` of the job runs before it;
`before` says what happens to a node ahead of the job, `after` once the job has printed `runs`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cluster import hosts as made_hosts
from tests.cluster import slurm as made_slurm
from tests.cluster.hosts import Host
from tests.cluster.slurm import Slurm
from tests.gallery.live import blind
from tests.gallery.live.blind import Row

BLIND = Path(__file__).resolve().parent / "blind"
MUTE = Path(__file__).resolve().parents[2] / "programs" / "mute_mount.py"
ROOT = Path(__file__).resolve().parents[3]
LANE = 47
LONGEST_START_S, LONGEST_LOOK_S = 90, 180
SHARDS, SHARD_BYTES = 12, 1 << 20


def answers_of(name: str) -> list[Row]:
    import yaml

    rows: list[Row] = yaml.safe_load((BLIND / name / "answers.yaml").read_text(encoding="utf-8"))
    return rows


def results_of(name: str) -> list[Row]:
    """What was found when the round was judged."""
    path = BLIND / name / "results.json"
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return rows


class Faults:
    """What is done to the nodes of one job, and taken back."""

    def __init__(self, nodes: Sequence[Host], home: Path) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._home = home
        self._servers: dict[str, subprocess.Popen[bytes]] = {}

    def prepare(self, truth: Row) -> None:
        for name in truth.get("plant", ()):
            self._nodes[name].run("sh", "-c", f"cd {self._home} && sh plant.sh")
        for name, what in truth.get("after", {}).items():
            if what.startswith("mute"):
                self._mount(self._nodes[name], what.split()[1])
        for name, what in truth.get("before", {}).items():
            self._do(self._nodes[name], what)

    def strike(self, truth: Row) -> None:
        for name, what in truth.get("after", {}).items():
            self._do(self._nodes[name], what)

    def end(self) -> None:
        """Whoever waits for a silent file system ends when its server does."""
        for server in self._servers.values():
            server.kill()
            server.wait()

    def _do(self, node: Host, what: str) -> None:
        word, _, rest = what.partition(" ")
        if word == "blocks":
            node.takes_no_new(rest)
        elif word == "stop":
            node.stop()
        elif word == "kill":
            for pid in node.pids():
                with contextlib.suppress(OSError):
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                    if rest in words:
                        os.kill(pid, signal.SIGKILL)
        elif word == "mute":
            server = self._servers[node.name]
            assert server.stdin is not None
            server.stdin.write(b"\n")
            server.stdin.flush()
        else:
            raise ValueError(f"nobody knows how to {what}")

    def _mount(self, node: Host, folder: str) -> None:
        """Fill the folder, and put a file system of its own over it on this node."""
        path = self._home / folder
        path.mkdir()
        for number in range(SHARDS):
            (path / f"{number:03}.bin").write_bytes(secrets.token_bytes(SHARD_BYTES))
        files = sorted(map(str, path.iterdir()))
        server = subprocess.Popen(
            node.argv(sys.executable, str(MUTE), "0", str(path), *files),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert server.stdout is not None
        if server.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{node.name}: the file system did not come up")
        self._servers[node.name] = server


@contextlib.contextmanager
def standing(count: int, folder: Path) -> Iterator[Slurm]:
    """Make a cluster of so many nodes. All is gone when this is left."""
    with (
        made_hosts.hosts(count, folder / "hosts", lane=LANE) as nodes,
        made_slurm.slurm(nodes, folder / "slurm") as slurm,
    ):
        yield slurm


def look_at(name: str, truth: Row, keep: Path | None) -> Row:
    """Start the job under a name that says nothing, wait, attach once, end it."""
    folder = Path(tempfile.gettempdir()) / f"run-{secrets.token_hex(4)}"
    home = folder / "home"
    shutil.copytree(BLIND / name / "programs" / truth["job"], home)
    with standing(truth["nodes"], folder) as slurm:
        faults = Faults(slurm.hosts, home)
        faults.prepare(truth)
        for file in (*home.glob("plant.sh"), *home.glob("older_*")):
            file.unlink()
        output = home / "output.txt"
        job = slurm.job(
            (home / "job.sbatch").read_text(encoding="utf-8"),
            *(f"--chdir={home}", f"--output={output}", f"--export=ALL,PYTHON={sys.executable}"),
        )
        if "after" in truth:
            _wait_for(output, truth["runs"])
            faults.strike(truth)
        time.sleep(truth["settle_s"])
        state = slurm.run("squeue", "--noheader", f"--jobs={job}", "--format=%T").stdout.strip()
        began = time.monotonic()
        report = folder / "report.json"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "trainprobe", "attach", "--slurm", str(job)),
                *("--json", str(report), "--case", str(folder / "case")),
            ],
            env={**slurm.env, "COLUMNS": "100", "NO_COLOR": "1"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LONGEST_LOOK_S,
            check=False,
        )
        took_s = time.monotonic() - began
        for host in slurm.hosts:
            host.resume()
        slurm.run("scancel", "--signal=KILL", str(job))
        faults.end()
    found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        if report.exists():
            shutil.copytree(folder / "case", keep / truth["job"], dirs_exist_ok=True)
        (keep / f"{truth['job']}.txt").write_text(
            f"{done.stdout}\n{done.stderr}\n--- output\n{_text(home / 'output.txt')}",
            encoding="utf-8",
        )
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "job": truth["job"],
        "lives": state == "RUNNING",
        "took_s": round(took_s, 1),
        "verdict": found.get("verdict", ""),
        "causes": [
            {key: cause[key] for key in ("id", "ranks", "confidence", "named")}
            for cause in found.get("causes", [])[:4]
        ],
    }


def _wait_for(output: Path, line: str) -> None:
    until = time.monotonic() + LONGEST_START_S
    while line not in _text(output):
        if time.monotonic() > until:
            raise RuntimeError(f"the job did not come to '{line}': {_text(output)[-500:]}")
        time.sleep(0.2)
    time.sleep(2)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("round")
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for cases, reports and outputs")
    asked = parser.parse_args()
    if reason := made_hosts.why_not() or made_slurm.why_not():
        print(f"no cluster on this machine: {reason}")
        return 2
    truths = {row["job"]: row for row in answers_of(asked.round)}
    results = {} if asked.again else {row["job"]: row for row in results_of(asked.round)}
    for job in [one for one in asked.jobs or truths if one not in results]:
        results[job] = look_at(asked.round, truths[job], asked.keep)
        print(json.dumps(blind.judged(truths[job], results[job])), flush=True)
        if not asked.again:
            lines = ",\n".join(json.dumps(results[one]) for one in truths if one in results)
            (BLIND / asked.round / "results.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    for what, value in blind.summary(
        [blind.judged(truths[job], results[job]) for job in results]
    ).items():
        print(f"{what:22} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
