"""Start each job of the table, keep what it printed as a case, and write down the truth about it.

    python -m tests.gallery.logs.record [--only KEY …] [--missing] [--at-once N] [--python PYTHON]

Nothing of the machine stays in a case: paths, host and user are replaced by made-up ones.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import lzma
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.gallery.logs.answers import CASES, Answer, part_of, read_answers, write_answers
from tests.gallery.logs.recordings import HOOKS, Recording, recordings
from tests.gallery.specimens import GALLERY, without_docstring

LARGE = 60_000  # bytes from which a file is kept compressed
HOSTS = ("lyra-04", "node17", "gpu-a12", "tern3")
HOMES = ("/home/mira/lantern", "/workspace/kite", "/mnt/work/otto/seq2", "/root/exp")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def planted(recording: Recording, folder: Path) -> None:
    """Write the program, and what it imports, with the wanted defaults and without a word of
    what is wrong with it.
    """
    source = GALLERY / f"{recording.program}.py"
    text = _quiet(without_docstring(source), recording)
    future = re.search(r"^from __future__ .*\n", text, re.MULTILINE)
    at = future.end() if future else 0
    text = text[:at] + "".join(HOOKS[hook] for hook in recording.hooks) + text[at:]
    (folder / recording.script).write_text(text, encoding="utf-8")
    (folder / "kit.py").write_text(
        _quiet(without_docstring(GALLERY / "live" / "programs" / "kit.py"), recording),
        encoding="utf-8",
    )


def _quiet(text: str, recording: Recording) -> str:
    """Short timeouts, defaults instead of words, and neutral names."""
    limit = f"timeout=__import__('datetime').timedelta(seconds={recording.timeout_s})"
    text = re.sub(r"init_process_group\(([^()]+)\)", rf"init_process_group(\1, {limit})", text)
    text = re.sub(r"\bculprit\b", "pick", text)
    for name, value in recording.defaults:
        text = re.sub(
            rf'("--{name}",[^)\n]*?default=)[^,)\n]+',
            lambda found, value=value: found[1] + repr(value),  # type: ignore[misc]
            text,
        )
        text = re.sub(
            rf"(options\([^)\n]*?\b{name}=)[^,)\n]+",
            lambda found, value=value: found[1] + repr(value),  # type: ignore[misc]
            text,
        )
    return text


def command(
    recording: Recording, folder: Path, port: int, binaries: Path
) -> tuple[list[str], bool]:
    """The words that start the job, and whether each rank writes a file of its own."""
    python, script, world = str(binaries / "python"), recording.script, recording.world
    count = ["--nproc-per-node", str(world), "--master-port", str(port)]
    torchrun, logs = [str(binaries / "torchrun"), *count], str(folder / "logs")
    launches: dict[str, list[str]] = {
        "torchrun": [*torchrun, script],
        "tee": [*torchrun, "--log-dir", str(folder / "own"), "--tee", "3", script],
        "tree": [*torchrun, "--log-dir", logs, "--redirects", "3", script],
        "tree-tee": [*torchrun, "--log-dir", logs, "--redirects", "3", "--tee", "3", script],
        "restarts": [*torchrun, "--max-restarts", "1", script],
        "restarts-tree": [
            *torchrun,
            "--max-restarts",
            "1",
            "--log-dir",
            logs,
            "--tee",
            "3",
            script,
        ],
        "late": [
            *torchrun,
            "--nnodes",
            "2",
            "--node-rank",
            "0",
            "--master-addr",
            "127.0.0.1",
            script,
        ],
        "old-launch": [python, "-m", "torch.distributed.launch", *count, script],
        "accelerate": [
            str(binaries / "accelerate"),
            "launch",
            "--cpu",
            "--num_processes",
            str(world),
            "--num_machines",
            "1",
        ],
        "spawn": [python, script, "--nproc", str(world), "--master", f"127.0.0.1:{port}"],
        "single": [python, script],
    }
    if recording.launch == "accelerate":
        launches["accelerate"] += [
            "--mixed_precision",
            "no",
            "--dynamo_backend",
            "no",
            "--main_process_port",
            str(port),
            script,
        ]
    if recording.launch in launches:
        return launches[recording.launch], False
    own_files = recording.launch == "plain-files"
    worlds = dict.fromkeys(range(world), world)
    if recording.launch == "short":
        worlds.pop(world - 1)
    elif recording.launch == "odd":
        worlds[world - 1] = world + 1
    address = dict(recording.env).get("MASTER_ADDR", "127.0.0.1")
    lines = []
    for rank, size in worlds.items():
        local = "" if recording.launch == "plain-bare" else f"LOCAL_RANK={rank} "
        to = f" > out/rank-{rank}.log 2>&1" if own_files else ""
        lines.append(
            f"RANK={rank} {local}WORLD_SIZE={size} MASTER_ADDR={address} MASTER_PORT={port}"
            f" {python} {script}{to} &"
        )
    return ["sh", "-c", "\n".join([*lines, "wait"])], own_files


def run(recording: Recording, binaries: Path, root: Path) -> Path:
    """Run the job to its end or its limit; return the folder with what it left."""
    folder = root / recording.case
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    planted(recording, folder)
    port = free_port()
    words, _ = command(recording, folder, port, binaries)
    env = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "LANG", "TMPDIR")
    }
    env.update(
        {
            "OMP_NUM_THREADS": "1",
            "PATH": f"{binaries}:{env['PATH']}",
            "HF_HOME": str(folder / "hub"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
    )
    env.update(recording.env)
    env.update({"PYTHONDONTWRITEBYTECODE": "1"})
    with contextlib.ExitStack() as held:
        if recording.before == "take-port":
            listener = held.enter_context(socket.socket())
            listener.bind(("0.0.0.0", port))
            listener.listen()
        mounts = {
            "small-disk": "mkdir -p ckpt && mount -t tmpfs -o size=6m tmpfs ckpt",
            "small-shm": "mount -t tmpfs -o size=64k tmpfs /dev/shm",
        }
        if recording.before in mounts:
            words = [
                "unshare",
                "-m",
                "sh",
                "-c",
                f'{mounts[recording.before]} && exec "$@"',
                "sh",
                *words,
            ]
        output = held.enter_context((folder / "out" / "job.log").open("wb"))
        child = subprocess.Popen(
            words,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        if recording.before == "kill-rank":
            _kill_rank(recording, folder, child)
        _wait(child, recording, folder)
    return folder


def _ranks_in(folder: Path) -> dict[int, int]:
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                words = dict(
                    word.split(b"=", 1)
                    for word in (entry / "environ").read_bytes().split(b"\0")
                    if b"=" in word
                )
                if (
                    b"RANK" in words
                    and b"python" in (entry / "cmdline").read_bytes().split(b"\0")[0]
                ):
                    found.setdefault(int(words[b"RANK"]), int(entry.name))
    return found


def _kill_rank(recording: Recording, folder: Path, child: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    picked = (recording.ranks or (0,))[0]
    while time.monotonic() < end and child.poll() is None:
        said = b"".join(path.read_bytes() for path in (folder / "out").iterdir())
        if b"step 5 " in said and picked in (ranks := _ranks_in(folder)):
            os.kill(ranks[picked], signal.SIGTERM if "term" in recording.key else signal.SIGKILL)
            return
        time.sleep(0.2)


def _wait(child: subprocess.Popen[bytes], recording: Recording, folder: Path) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(recording.limit_s)
    if child.poll() is None:
        if recording.stop == signal.SIGKILL:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.send_signal(recording.stop)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(40)
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                os.kill(int(entry.name), signal.SIGKILL)
    child.wait(10)


def scrub(data: bytes, recording: Recording, folder: Path, binaries: Path) -> bytes:
    """Replace everything that belongs to this machine."""
    pick = int(recording.case, 16)
    home = HOMES[pick % len(HOMES)]
    library = (
        "/opt/conda/lib/python3.11",
        "/home/mira/.venv/lib/python3.11",
        "/usr/local/lib/python3.11",
    )[pick // 7 % 3]
    prefix = library.rsplit("/lib/", 1)[0]
    text = data.decode("utf-8", "replace")
    text = text.replace(str(folder.resolve()), home).replace(str(folder), home)
    own = binaries.parent.resolve()
    text = re.sub(rf"{re.escape(str(own))}/lib/python3\.\d+", library, text).replace(
        str(own), prefix
    )
    base = Path(sys.base_prefix).resolve()
    text = re.sub(rf"{re.escape(str(base))}/lib/python3\.\d+", "/usr/lib/python3.11", text).replace(
        str(base), "/usr"
    )
    host = socket.gethostname()
    for name in {socket.getfqdn(), host} - {"localhost", "localhost.localdomain", ""}:
        text = re.sub(rf"\b{re.escape(name)}\b", HOSTS[pick // 3 % len(HOSTS)], text)
    text = re.sub(r"\b(?:10|172|192)\.\d+\.\d+\.\d+\b", "10.41.2.7", text)
    return text.encode("utf-8", "replace")


def keep(recording: Recording, folder: Path, binaries: Path) -> int:
    """Store the case; return its bytes."""
    case = CASES / recording.case
    shutil.rmtree(case, ignore_errors=True)
    found = {
        path.relative_to(folder / "out"): path
        for path in sorted((folder / "out").rglob("*"))
        if path.is_file()
    }
    found |= {
        path.relative_to(folder): path
        for path in sorted((folder / "logs").rglob("*"))
        if path.is_file()
    }
    kept = 0
    for name, path in found.items():
        data = scrub(path.read_bytes(), recording, folder, binaries)
        if not data and name.name != "stdout.log":
            continue
        target = case / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if len(data) > LARGE:
            target, data = target.with_name(target.name + ".xz"), lzma.compress(data, preset=9)
        target.write_bytes(data)
        kept += len(data)
    return kept


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what was asked for; the truth goes into answers.yaml beside what stands there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--missing", action="store_true", help="only what has no case yet")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument(
        "--python",
        type=Path,
        default=Path(sys.executable),
        help="an interpreter with torch, transformers and accelerate beside it",
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "trainprobe-recording"
    )
    parser.add_argument(
        "--answers-only",
        action="store_true",
        help="write the truth of the cases that exist, start nothing",
    )
    words = parser.parse_args(arguments)
    wanted = [
        one for one in recordings() if not words.only or any(part in one.key for part in words.only)
    ]
    wanted = [one for one in wanted if not (words.missing and (CASES / one.case).exists())]
    binaries = words.python.parent

    def whole(recording: Recording) -> str:
        began = time.monotonic()
        folder = run(recording, binaries, words.folder)
        size = keep(recording, folder, binaries)
        return f"{recording.case} {recording.key}: {size} bytes, {time.monotonic() - began:.0f} s"

    known = {one.case for one in recordings()}
    for answer in read_answers():
        if answer.origin == "recorded" and answer.case not in known:
            shutil.rmtree(CASES / answer.case, ignore_errors=True)
    if not words.answers_only:
        with concurrent.futures.ThreadPoolExecutor(words.at_once) as pool:
            for said in pool.map(whole, wanted):
                print(said, flush=True)
    table = {answer.case: answer for answer in read_answers() if answer.origin != "recorded"}
    for one in recordings():
        if (CASES / one.case).exists():
            ranks = None if one.ranks is None else tuple(one.ranks)
            table[one.case] = Answer(
                one.case,
                one.cause,
                one.also,
                ranks,
                one.verdict,
                "recorded",
                part_of(one.case),
                one.decoy,
                one.notes or one.key,
            )
    write_answers(sorted(table.values(), key=lambda answer: answer.case))
    return 0


if __name__ == "__main__":
    sys.exit(main())
