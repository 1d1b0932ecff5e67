"""What earlier runs hold, who starts them again and what ends them, in words and commands."""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.collect.collectors.leftovers import Leftover, LeftoverLook, Restarter

MIB = 2**20


def name_of(look: LeftoverLook) -> str:
    """`train.py`, `-m pkg.train`, or `python -c`."""
    return (
        f"-m {look.name}"
        if look.kind == "module"
        else "python -c"
        if look.kind == "code"
        else look.name.rpartition("/")[2] or "this program"
    )


def sum_of(rows: Sequence[Leftover]) -> str:
    """`19 processes (pids 311-329, started 12 min ago) hold 1.2 GiB of memory and port 29500`."""
    memory = sum(row.pss_bytes if row.pss_bytes is not None else row.rss_bytes or 0 for row in rows)
    cpus = sum(row.cpu_share or 0.0 for row in rows)
    gpus: dict[int, int] = {}
    for index, used in (pair for row in rows for pair in row.gpus):
        gpus[index] = gpus.get(index, 0) + (used or 0)
    ports = sorted({port for row in rows for port in row.ports})
    locks = sorted({path for row in rows for path in row.locks})
    shm = max((row.shm_bytes for row in rows), default=0)
    held = [
        *([f"{_size(memory)} of memory"] if memory >= MIB else []),
        *([f"{cpus:.1f} CPUs"] if cpus >= 0.05 else []),
        *(
            f"{_size(used)} of GPU {index}" if used else f"GPU {index}"
            for index, used in sorted(gpus.items())
        ),
        *(
            [f"port{'s' if len(ports) > 1 else ''} {', '.join(map(str, ports[:4]))}"]
            if ports
            else []
        ),
        *(
            [f"the lock on {locks[0]}{f' and {len(locks) - 1} more' if len(locks) > 1 else ''}"]
            if locks
            else []
        ),
        *([f"{_size(shm)} of /dev/shm"] if shm >= MIB else []),
    ]
    several = len(rows) != 1
    listed = ", ".join(held[:-1]) + (" and " if len(held) > 1 else "") + held[-1] if held else ""
    does = f"{'hold' if several else 'holds'} {listed}" if held else "live" if several else "lives"
    return f"{len(rows)} process{'es' if several else ''} ({_pids(rows)}{_ages(rows)}) {does}"


def restarted_by(one: Restarter) -> str:
    """`a loop in a shell (pid 12, bash run.sh) starts it again`."""
    who = {
        "unit": f"the service {one.name}",
        "user-unit": f"your service {one.name}",
        "container": f"the container {one.name}",
        "cron": f"cron (pid {one.pid})",
        "supervisor": f"a supervisor (pid {one.pid}, {one.name[:60]})",
        "shell": f"a loop in a shell (pid {one.pid}, {one.name[:60]})",
        "launcher": f"a launcher with restarts (pid {one.pid})",
        "parent": f"its parent (pid {one.pid}, {one.name[:60]})",
    }.get(one.kind, f"pid {one.pid}")
    return (
        f"{who}"
        f" {'started it again while we looked' if one.seen_again else 'may start the next command' if one.kind == 'parent' else 'starts it again'}"  # noqa: E501
    )


def commands(rows: Sequence[Leftover], restarters: Sequence[Restarter]) -> tuple[str, ...]:
    """What ends them, in the order to type it: whoever starts them again, launchers, ranks, then
    what is left. Doubtful workers are left out.
    """
    steps = []
    for one in restarters:
        step = {
            "unit": f"sudo systemctl stop {one.name}",
            "user-unit": f"systemctl --user stop {one.name}",
            "container": f"docker stop {one.name}",
            "cron": "crontab -e   (take out the line that starts it)",
        }.get(one.kind, f"kill {one.pid}")
        if one.kind == "supervisor" and "supervisord" in one.name:
            step = (
                "supervisorctl status; supervisorctl stop PROGRAM   (the program that status shows)"
            )
        steps.append(step)
    first = {one.pid for one in restarters}
    listed = {row.pid for row in rows}
    sure = sorted(
        (row for row in rows if row.sure and row.pid not in first),
        key=lambda row: _turn(row, listed),
    )
    if sure:
        steps.append(f"kill {' '.join(str(row.pid) for row in sure)}")
    stopped = [str(row.pid) for row in sure if row.state in ("T", "t")]
    if stopped:
        steps.append(
            f"kill -CONT {' '.join(stopped)}   (they are stopped, and end when they go on)"
        )
    return tuple(dict.fromkeys(steps))


def look_command(rows: Sequence[Leftover], restarters: Sequence[Restarter] = ()) -> str:
    """What shows who they are."""
    pids = dict.fromkeys([*(one.pid for one in restarters if one.pid), *(row.pid for row in rows)])
    return f"ps -o pid,ppid,lstart,cmd -p {','.join(map(str, pids))}"


def _turn(row: Leftover, listed: set[int]) -> int:
    """Launchers first, lest they start a rank again; then what trains; its workers end with it,
    and the tracker with the last of them.
    """
    if row.role in ("launcher", "main"):
        return 0 if row.role == "launcher" else 1
    return 4 if row.role == "tracker" else 2 if row.ppid not in listed or row.role == "child" else 3


def _pids(rows: Sequence[Leftover]) -> str:
    pids = sorted(row.pid for row in rows)
    if len(pids) > 2 and pids[-1] - pids[0] == len(pids) - 1:
        return f"pids {pids[0]}-{pids[-1]}"
    return (
        f"pid{'s' if len(pids) > 1 else ''}"
        f" {', '.join(map(str, pids[:6]))}{f' and {len(pids) - 6} more' if len(pids) > 6 else ''}"
    )


def _ages(rows: Sequence[Leftover]) -> str:
    """When each run was started."""
    runs: dict[int, float] = {}
    for row in rows:
        if row.age_s is not None:
            runs[row.run] = max(row.age_s, runs.get(row.run, 0.0))
    ages = [_age(runs[run]) for run in sorted(runs)]
    if not ages:
        return ""
    if len(ages) == 1:
        return f", started {ages[0]} ago"
    return f", of {len(ages)} runs started {', '.join(ages[:3])}{'…' if len(ages) > 3 else ''} ago"


def _age(age_s: float) -> str:
    return (
        f"{age_s:.0f} s"
        if age_s < 120
        else (
            f"{age_s / 60:.0f} min"
            if age_s < 7200
            else f"{age_s / 3600:.0f} h"
            if age_s < 172800
            else f"{age_s / 86400:.0f} days"
        )
    )


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / MIB:.0f} MiB"
