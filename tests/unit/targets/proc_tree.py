"""A /proc that tests build by hand: as much of it as discovery reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

NAMESPACES = {"mnt": "mnt:[1]", "pid": "pid:[1]", "net": "net:[1]"}


class ProcTree:
    """Processes are added with what differs from an ordinary one; the root is given to the code
    under test as `proc`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tcp: list[str] = []
        (root / "self" / "ns").mkdir(parents=True)
        for kind, name in NAMESPACES.items():
            (root / "self" / "ns" / kind).symlink_to(name)
        (root / "stat").write_text("cpu 1 2 3\nbtime 1700000000\n")
        (root / "uptime").write_text("1000.00 900.00\n")
        self.add(1, 0, "/sbin/init", start=1)

    @property
    def path(self) -> str:
        return str(self.root)

    def add(
        self,
        pid: int,
        ppid: int,
        command: str | Sequence[str],
        env: Mapping[str, object] | None = None,
        *,
        name: str = "",
        state: str = "S",
        group: int | None = None,
        session: int = 50,
        start: int | None = None,
        uid: int = 1000,
        cwd: str = "/job",
        exe: str = "",
        nspid: Sequence[int] = (),
        cgroup: str = "0::/user.slice",
        namespaces: Mapping[str, str] = NAMESPACES,
        sockets: Sequence[int] = (),
        opens: Sequence[str] = (),
        threads: Sequence[str] = (),
        maps: str = "",
        terminal: int = 0,
    ) -> int:
        """Add a process; `env` None is an environment that may not be read. Started in the order
        of pids where `start` is not told.
        """
        argv = command.split() if isinstance(command, str) else list(command)
        folder = self.root / str(pid)
        (folder / "ns").mkdir(parents=True)
        (folder / "fd").mkdir()
        name = name or (argv[0].rpartition("/")[2][:15] if argv else "python")
        started = start if start is not None else 1000 + pid
        rest = ["0"] * 11 + ["1", "0", str(started), *["0"] * 30]
        group = pid if group is None else group
        (folder / "stat").write_text(
            f"{pid} ({name}) {state} {ppid} {group} {session} {terminal} -1 {' '.join(rest)}\n"
        )
        (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
        if env is not None:
            (folder / "environ").write_bytes(
                b"".join(f"{key}={value}".encode() + b"\0" for key, value in env.items())
            )
        (folder / "status").write_text(
            f"Name:\t{name}\nTgid:\t{pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{' '.join(map(str, nspid or (pid,)))}\n"
        )
        (folder / "cgroup").write_text(cgroup + "\n")
        (folder / "maps").write_text(maps)
        (folder / "cwd").symlink_to(cwd)
        (folder / "exe").symlink_to(
            exe or (f"/env/bin/{argv[0].rpartition('/')[2]}" if argv else "/env/bin/python")
        )
        for kind, target in namespaces.items():
            (folder / "ns" / kind).symlink_to(target)
        for number, target in enumerate([*(f"socket:[{inode}]" for inode in sockets), *opens], 3):
            (folder / "fd" / str(number)).symlink_to(target)
        for number, thread in enumerate([name, *threads]):
            (folder / "task" / str(pid + number)).mkdir(parents=True)
            (folder / "task" / str(pid + number) / "comm").write_text(thread + "\n")
        if self.tcp:
            self._write_net()
        return pid

    def connect(self, inode: int, other: int, port: int) -> None:
        """Let two sockets be the ends of one TCP connection on this host."""
        near, far = f"0100007F:{port:04X}", "0100007F:7530"
        for number, (local, remote) in ((inode, (near, far)), (other, (far, near))):
            self.tcp.append(
                f"   0: {local} {remote} 01 00000000:00000000 00:00000000 00000000  1000        0"
                f" {number} 1 0 20 4 30 10 -1"
            )
        if self.tcp:
            self._write_net()

    def end(self, pid: int) -> None:
        shutil.rmtree(self.root / str(pid))

    def _write_net(self) -> None:
        for folder in self.root.iterdir():
            if folder.name.isdigit():
                (folder / "net").mkdir(exist_ok=True)
                (folder / "net" / "tcp").write_text(
                    "\n".join(["  sl  local_address rem_address", *self.tcp]) + "\n"
                )
