"""What lies around a live run: lock holders, servers, mounts, cgroups, other hosts. Each part is
made, takes effect, and goes again.

A part of `before` runs before the job starts, one of `during` when the job is about to fall ill.
Both get the `Site`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import processes_with
from tests.gallery.live.kinds import Planned

HERE = Path(__file__).resolve().parent
CGROUPS = Path("/sys/fs/cgroup")


@dataclass
class Site:
    """Where one run takes place: its folder, the token in the environment of all that it
    started, and what has to be undone.
    """

    run: Planned
    folder: Path
    token: str
    port: int
    args: list[str] = field(default_factory=list)
    undo: list[Callable[[], object]] = field(default_factory=list)
    spaces: tuple[str, str] = ("", "")

    def environment(self) -> dict[str, str]:
        known = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_"))
        }
        own = [
            "--pick",
            str(self.run.pick),
            "--seed",
            str(self.run.seed),
            "--form",
            self.run.form,
            "--when",
            str(self.run.when),
            *self.args,
        ]
        ours = {
            "RUN_STAMP": self.token,
            "RUN_WORDS": " ".join(own),
            "TORCH_EXTENSIONS_DIR": str(self.folder / "ext"),
        }
        return {**known, **ours, "OMP_NUM_THREADS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

    def plant(self, source: Path) -> Path:
        """Copy a program into the job's folder under a random name, without its docstring; `kit`
        comes with it.
        """
        from tests.gallery.specimens import without_docstring

        kit = self.folder / f"{_word(self.token)}_lib.py"
        planted = self.folder / f"m{secrets.token_hex(4)}.py"
        planted.write_text(
            without_docstring(source).replace("from kit import", f"from {kit.stem} import"),
            encoding="utf-8",
        )
        if source.parent.name == "programs" and not kit.exists():
            kit.write_text(without_docstring(HERE / "programs" / "kit.py"), encoding="utf-8")
        return planted

    def outside(self, program: str, *words: str) -> str:
        """Start a program of `outside/` and return what it said after `ready`."""
        script = self.plant(HERE / "outside" / f"{program}.py")
        said = self.folder / f"{script.stem}.out"
        with said.open("wb") as sink:
            started = subprocess.Popen(
                [sys.executable, str(script), *words],
                cwd=self.folder,
                env=self.environment(),
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        self.undo += [started.wait, started.kill]  # from the last to the first
        until = time.monotonic() + 20
        while time.monotonic() < until:
            text = said.read_text(encoding="utf-8")
            if text.startswith("ready"):
                return text.removeprefix("ready").strip()
            time.sleep(0.05)
        raise RuntimeError(f"{program}: {said.read_text(encoding='utf-8')}")

    def rank_pid(self, rank: int) -> int:
        """The process of a rank that was started with RANK in its environment."""
        mine = {}
        for pid in processes_with(self.token):
            with contextlib.suppress(OSError):
                environ = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
                if f"RANK={rank}".encode() in environ:
                    mine[pid] = int(
                        Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1]
                    )
        tops = [pid for pid, parent in mine.items() if parent not in mine]
        if len(tops) != 1:
            raise RuntimeError(f"rank {rank} is {tops}")
        return tops[0]

    def children(self, pid: int) -> list[int]:
        found = []
        for task in Path("/proc", str(pid), "task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
        return found


def _word(token: str) -> str:
    return ("train", "core", "model", "proj", "trial")[
        int(hashlib.sha256(token.encode()).hexdigest(), 16) % 5
    ]


def silent_server(site: Site) -> None:
    site.args += ["--server", f"127.0.0.1:{site.outside('server', '0')}"]


def trickle_server(site: Site) -> None:
    site.args += ["--server", f"127.0.0.1:{site.outside('server', '100')}"]


def hold_flock(site: Site) -> None:
    site.outside("holder", "flock", "features.cache", "features.arrow.lock")


def hold_datasets_lock(site: Site) -> None:
    """The lock of the whole cache folder, by the name that datasets gives it; it is learnt from
    a dry run of the library's own rule.
    """
    finder = (
        "import sys, datasets, json; b = datasets.load_dataset_builder('json',"
        " data_files='rows.json', cache_dir='hf-cache'); print(b._cache_dir)"
    )
    (site.folder / "rows.json").write_text(
        "".join(f'{{"text": "line {number}"}}\n' for number in range(200)), encoding="utf-8"
    )
    found = subprocess.run(
        [sys.executable, "-c", finder],
        cwd=site.folder,
        env=site.environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[-1]
    site.outside(
        "holder",
        "flock",
        str(site.folder / "hf-cache" / (str(Path(found)).replace("/", "_") + ".lock")),
    )


def leave_soft_lock(site: Site) -> None:
    (site.folder / "shared-rows.lock").write_text("71\nnode17\n", encoding="utf-8")


def leave_baton(site: Site) -> None:
    folder = site.folder / "build" / "fused_ops"
    folder.mkdir(parents=True)
    (folder / "lock").touch()


def dead_mount(site: Site) -> None:
    place = site.folder / "mnt"
    place.mkdir()
    site.undo.append(
        lambda: subprocess.run(["umount", "-l", "-f", str(place)], capture_output=True, check=False)
    )
    site.outside("mount", str(place))


def two_hosts(site: Site) -> None:
    one, two = f"n{site.token[:5]}a", f"n{site.token[:5]}b"
    site.spaces = (one, two)
    for space in (one, two):
        _ip("netns", "add", space)
        site.undo.append(functools.partial(_ip, "netns", "del", space, check=False))
    _ip("link", "add", "eth0", "netns", one, "type", "veth", "peer", "name", "eth0", "netns", two)
    for space, address in ((one, "10.77.0.1/24"), (two, "10.77.0.2/24")):
        _ip("-n", space, "addr", "add", address, "dev", "eth0")
        _ip("-n", space, "link", "set", "eth0", "up")
        _ip("-n", space, "link", "set", "lo", "up")


def cut_cable(site: Site) -> None:
    if site.run.seed % 2:
        _ip("-n", site.spaces[1], "link", "set", "eth0", "down")
    else:
        _ip("-n", site.spaces[0], "route", "add", "blackhole", "10.77.0.2/32")
        _ip("-n", site.spaces[1], "route", "add", "blackhole", "10.77.0.1/32")


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


def kill_rank(site: Site) -> None:
    os.kill(site.rank_pid(site.run.pick), signal.SIGKILL)


def stop_rank(site: Site) -> None:
    os.kill(site.rank_pid(site.run.pick), signal.SIGSTOP)


def stop_next_rank(site: Site) -> None:
    time.sleep(0.5)
    os.kill(site.rank_pid((site.run.pick + 1) % site.run.world), signal.SIGSTOP)


def stop_worker(site: Site) -> None:
    workers = site.children(site.rank_pid(site.run.pick))
    os.kill(sorted(workers)[site.run.seed % len(workers)], signal.SIGSTOP)


def _cgroup(site: Site, controller: str) -> Path:
    group = CGROUPS / controller / f"job_{site.token[:6]}"
    group.mkdir()
    site.undo.append(functools.partial(_removed, group, site.token))
    return group


def _removed(group: Path, token: str) -> None:
    for _ in range(50):
        _end(token)
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def freeze_rank(site: Site) -> None:
    group = _cgroup(site, "freezer")
    (group / "cgroup.procs").write_text(str(site.rank_pid(site.run.pick)))
    (group / "freezer.state").write_text("FROZEN")
    site.undo.append(lambda: (group / "freezer.state").write_text("THAWED"))


def memory_limit(site: Site) -> None:
    group = _cgroup(site, "memory")
    (group / "memory.limit_in_bytes").write_text(str(24 << 20))
    (group / "memory.oom_control").write_text("1")
    (group / "cgroup.procs").write_text(str(site.rank_pid(site.run.pick)))
    site.undo.append(lambda: (group / "memory.oom_control").write_text("0"))


def cpu_quota(site: Site) -> None:
    group = _cgroup(site, "cpu")
    (group / "cpu.cfs_period_us").write_text("100000")
    (group / "cpu.cfs_quota_us").write_text("8000")
    for pid in processes_with(site.token):
        with contextlib.suppress(OSError):
            (group / "cgroup.procs").write_text(str(pid))


PARTS: dict[str, Callable[[Site], None]] = {
    part.__name__: part
    for part in (
        *(
            silent_server,
            trickle_server,
            hold_flock,
            hold_datasets_lock,
            leave_soft_lock,
            leave_baton,
            dead_mount,
            two_hosts,
        ),
        *(
            cut_cable,
            kill_rank,
            stop_rank,
            stop_next_rank,
            stop_worker,
            freeze_rank,
            memory_limit,
            cpu_quota,
        ),
    )
}


def clear(site: Site) -> list[str]:
    """End everything that the run started, undo its surroundings, and say what would not go."""
    undo_failed = []
    for step in reversed(site.undo):
        try:
            step()
        except OSError as error:
            undo_failed.append(str(error))
        _end(site.token)
    _end(site.token)
    left: Sequence[str] = ()
    for _ in range(100):
        left = list(processes_with(site.token).values())
        if not left:
            break
        _end(site.token)
        time.sleep(0.1)
    shutil.rmtree(site.folder, ignore_errors=True)
    return [*left, *undo_failed]


def _end(token: str) -> None:
    for pid in processes_with(token):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
