"""The lock file: where it is, whether it is safe to use, and who holds it.

The holder writes lines `name value` into it: pid, host, since (Unix seconds), rank, argv0. It
removes them when it releases the lock.
"""

from __future__ import annotations

import os
import stat
import sys
import time

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
# File systems of a network, or that may be one: an flock there may fail, hang, or hold up every
# host (statfs(2), flock(2)).
_NETWORK = frozenset(
    "nfs nfs4 lustre gpfs cifs smb3 smbfs ceph beegfs afs 9p panfs wekafs orangefs pvfs2 ocfs2"
    " gfs2".split()
)
# Every lock file that this process has open, for a forked child to close.
_open_files: dict[int, None] = {}


def default_path() -> str:
    """Return the lock file of this user on this host, in a folder that nobody else may enter.
    Raises OSError where no local one can be had.
    """
    import tempfile

    why = ""
    places = (
        os.environ.get("XDG_RUNTIME_DIR", ""),
        tempfile.gettempdir(),
        "/tmp",  # noqa: S108 - the folder in it is checked
        "/var/tmp",  # noqa: S108 - the folder in it is checked
        "/dev/shm",  # noqa: S108 - the folder in it is checked
    )
    for place in dict.fromkeys(place for place in places if os.path.isabs(place)):
        if on_network(place):
            why = why or f"{place} is on a network file system"
            continue
        folder = os.path.join(place, f"trainprobe-{os.geteuid()}")
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            why = why or f"{folder} cannot be made ({error.strerror})"
            continue
        found = os.lstat(folder)
        own = found.st_uid == os.geteuid() and not found.st_mode & 0o077
        if own and stat.S_ISDIR(found.st_mode):
            return os.path.join(folder, "import.lock")
        why = f"{folder} is not a folder of this user alone"
    raise OSError(
        f"No local folder for the import lock: {why or 'none is there'}. Choose a file with path=."
    )


def on_network(place: str) -> bool:
    """Is this folder on a network file system? The list of mounts tells; to ask a dead file server
    would hang.
    """
    best, kind = "", ""
    for line in read("/proc/self/mountinfo").splitlines():
        fields = line.split(" ")
        point = fields[4].replace("\\040", " ") if "-" in fields else ""
        below = place == point or place.startswith(point.rstrip("/") + "/")
        if point and below and len(point) >= len(best):
            best, kind = point, fields[fields.index("-") + 1]
    return kind in _NETWORK or kind.startswith("fuse.")


def opened(path: str) -> int:
    """Open a lock file of this user, which is made where it is missing. Raises OSError for a
    link and for somebody else's file.
    """
    flags = os.O_RDWR | os.O_CREAT
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    try:
        file = os.open(path, flags, 0o600)
    except OSError as error:
        why = "it is a symbolic link" if os.path.islink(path) else error.strerror
        raise type(error)(
            error.errno,
            f"The import lock {path} cannot be opened: {why}. Choose another file with path=.",
        ) from error
    found = os.fstat(file)
    wrong = ""
    if not stat.S_ISREG(found.st_mode):
        wrong = "it is no plain file"
    elif found.st_uid != os.geteuid():
        wrong = "it belongs to another user"
    elif found.st_nlink > 1:
        wrong = "it has a second name (a hard link)"
    if wrong:
        os.close(file)
        raise PermissionError(
            f"The import lock {path} is not used: {wrong}. Choose another file with path=."
        )
    _open_files[file] = None
    return file


def lock(file: int, path: str, *, wait: bool) -> bool:
    """Take the lock; False where it is held and was not waited for. Raises OSError where the
    file system gives none.
    """
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise OSError(
            error.errno,
            f"The file system of {path} gives no lock ({error.strerror}). Choose a local file with"
            " path=.",
        ) from error
    return True


def release(file: int) -> None:
    import fcntl

    _write(file, "")
    try:
        # Not by closing alone: a child that was forked past Python's back may still have the same
        # file open.
        fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        close(file)


def close(file: int) -> None:
    if _open_files.pop(file, 0) is None:
        os.close(file)


def close_all() -> None:
    for file in list(_open_files):
        close(file)


def is_at(file: int, path: str) -> bool:
    """Is the open file still the one of that name?"""
    try:
        there, ours = os.lstat(path), os.fstat(file)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def sign(file: int) -> None:
    """Write into the lock file who holds it."""
    lines = {
        "pid": str(os.getpid()),
        "host": host(),
        "since": f"{time.time():.3f}",
        "rank": rank(),
        "argv0": (sys.argv or [""])[0][:200],
    }
    filled = ((name, value.splitlines()[0]) for name, value in lines.items() if value)
    _write(file, "".join(f"{name} {value}\n" for name, value in filled))


def holder(file: int) -> dict[str, str]:
    """Return what the holder wrote, by name; empty where nobody did."""
    try:
        text = os.pread(file, 2000, 0).decode("utf-8", "replace")
    except OSError:
        return {}
    parts = (line.partition(" ") for line in text.splitlines())
    return {name: value for name, _, value in parts if value}


def held_by(holder: dict[str, str]) -> str:
    """`held by rank 0 pid 4240 for 2.1 s`, with the host where it is another one."""
    if not holder.get("pid"):
        return "held by an unknown process"
    who = (f"rank {holder['rank']} " if holder.get("rank") else "") + f"pid {holder['pid']}"
    where = f" on {holder['host']}" if holder.get("host", host()) != host() else ""
    try:
        age = f" for {max(0.0, time.time() - float(holder['since'])):.1f} s"
    except (KeyError, ValueError):
        age = ""
    return f"held by {who}{where}{age}"


def is_ancestor(holder: dict[str, str]) -> bool:
    """Is this process below the holder?"""
    pid, ancestor = holder.get("pid", ""), os.getppid()
    if not pid.isdecimal() or holder.get("host") != host():
        return False
    for _ in range(64):
        if ancestor == int(pid):
            return True
        parent = read(f"/proc/{ancestor}/stat").rpartition(")")[2].split()[1:2]
        if ancestor <= 1 or not parent or not parent[0].isdecimal():
            break
        ancestor = int(parent[0])
    return False


def host() -> str:
    return os.uname().nodename


def rank() -> str:
    """The rank as the launcher set it; empty where it did not."""
    values = (os.environ.get(name, "") for name in _RANKS)
    return next((text for text in values if text.isdecimal()), "")


def read(path: str) -> str:
    """The text of a small file; empty where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write(file: int, text: str) -> None:
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, text.encode("utf-8", "replace"), 0)
    except OSError:
        return  # a full disk: the lock holds all the same, and only its holder's name is missing
