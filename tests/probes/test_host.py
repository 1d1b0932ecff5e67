from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeCgroup
from tests.probes.conftest import ProbeRun, RunProbe, environment


def check(done: ProbeRun, name: str) -> Mapping[str, Any]:
    found = [one for one in done.events if one.get("check") == name]
    assert found, done.output
    return min(found, key=lambda one: ["fail", "warn", "unknown", "ok"].index(one["status"]))


def test_this_host_is_fit_for_one_rank(run_probe: RunProbe) -> None:
    done = run_probe("host")
    assert (done.exit_code, done.answer) == (0, "yes"), done.output
    for name in (
        "lim.nofile",
        "lim.memlock",
        "lim.as",
        "lim.stack",
        "lim.core",
        "lim.nproc",
        "lim.cpus",
        "mem.available",
        "lim.cgmem",
        "shm.size",
        "fs.space",
        "env",
    ):
        assert set(check(done, name)) >= {"status", "value", "says", "fix"}


@pytest.mark.parametrize(
    ("limit", "status", "answer"),
    [("ulimit -n 40", "fail", "no"), ("ulimit -n 1024", "warn", "yes")],
)
def test_few_descriptors(limit: str, status: str, answer: str, run_probe: RunProbe) -> None:
    done = run_probe("host", shell=limit)
    assert (check(done, "lim.nofile")["status"], done.answer) == (status, answer)


def test_an_address_space_limit(run_probe: RunProbe) -> None:
    assert check(run_probe("host", shell="ulimit -v 1000000"), "lim.as")["status"] == "fail"
    assert check(run_probe("host", shell="ulimit -v 64000000"), "lim.as")["status"] == "warn"


def test_more_ranks_than_memory(run_probe: RunProbe) -> None:
    done = run_probe("host", "--nproc", "100000")
    assert (check(done, "mem.available")["status"], done.exit_code) == ("fail", 10)


def test_the_cgroups_limit_counts_and_not_the_hosts(
    run_probe: RunProbe, memory_cgroup: MakeCgroup
) -> None:
    folder = memory_cgroup(400 * 2**20)
    join = f'echo $$ > "{folder}/cgroup.procs"'
    one, four = (
        run_probe("host", "--nproc", "1", shell=join),
        run_probe("host", "--nproc", "4", shell=join),
    )
    assert check(one, "lim.cgmem")["status"] == "warn"
    assert check(four, "lim.cgmem")["status"] == "fail"
    assert check(four, "lim.cgmem")["value"][0] == 400 * 2**20
    assert check(four, "mem.available")["status"] == "ok"


def test_more_threads_than_cpus(run_probe: RunProbe) -> None:
    done = run_probe(
        "host",
        "--nproc",
        "2",
        env={"OMP_NUM_THREADS": "4"},
        shell="command -v taskset >/dev/null && taskset -cp 0 $$ >/dev/null",
    )
    assert check(done, "lim.cpus")["status"] == "warn"
    assert check(done, "lim.cpus")["value"][1] == 8


@pytest.mark.parametrize(
    ("name", "value", "bites"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", True),
        ("CUDA_LAUNCH_BLOCKING", "0", False),
        ("TORCH_DISTRIBUTED_DEBUG", "DETAIL", True),
        ("TORCH_DISTRIBUTED_DEBUG", "INFO", False),
        ("NCCL_P2P_DISABLE", "1", True),
        ("NCCL_BLOCKING_WAIT", "1", True),
        ("RANK", "0", True),
    ],
)
def test_variables_that_bite(name: str, value: str, bites: bool, run_probe: RunProbe) -> None:
    found = [
        one
        for one in run_probe("host", env={name: value}).events
        if one.get("check") == f"env.{name}"
    ]
    assert [one["status"] for one in found] == (["warn"] if bites else [])


def test_a_port_that_is_taken(run_probe: RunProbe) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        assert check(run_probe("host", env={"MASTER_PORT": port}), "plan.port")["status"] == "warn"
    assert check(run_probe("host", env={"MASTER_PORT": port}), "plan.port")["status"] == "ok"


def test_an_earlier_run_of_the_same_script(run_probe: RunProbe, tmp_path: Path) -> None:
    script, other = tmp_path / "train.py", tmp_path / "other.py"
    for path in (script, other):
        path.write_text("print('up', flush=True)\nimport time\ntime.sleep(60)\n")
    # An earlier run came from another terminal, and the shell that started it is gone. (Left by
    # process 1 in its own session, as in a bare container, nothing would tell it from a run that
    # process 1 started itself.)
    start = '"$0" "$1" & echo $!'
    pids = []
    for path in (script, other):
        words = ["/bin/sh", "-c", start, sys.executable, str(path)]
        shell = subprocess.Popen(
            words, env=environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert shell.stdout is not None
        pids.append(int(shell.stdout.readline()))
        assert shell.stdout.readline() == "up\n"
        shell.wait(timeout=10)
        shell.stdout.close()
    try:
        done = run_probe("host", "--script", str(script))
        assert [one["pid"] for one in check(done, "host.leftovers")["value"]] == [pids[0]]
        assert check(done, "host.leftovers")["fix"] == f"kill {pids[0]}"
    finally:
        subprocess.run(["kill", *map(str, pids)], check=False)
    assert (
        check(run_probe("host", "--script", str(tmp_path / "never_run.py")), "host.leftovers")[
            "status"
        ]
        == "ok"
    )


def test_only_who_runs_the_script_counts_and_a_run_that_somebody_has_is_no_left_over(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys, time\nprint('up', flush=True)\ntime.sleep(60)\n")
    started = [
        subprocess.Popen(
            words,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=tmp_path,
        )
        for words in ([sys.executable, "train.py"], ["tail", "-f", "train.py"])
    ]
    try:
        for one in started:
            assert one.stdout is not None
            one.stdout.readline()
        done = run_probe("host", "--script", str(script))
        assert check(done, "host.leftovers")["status"] == "ok"
        assert check(done, "host.other-run")["value"] == [started[0].pid]
    finally:
        for one in started:
            one.kill()
            one.communicate()
