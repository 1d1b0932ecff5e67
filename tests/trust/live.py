"""A small job whose command lines, environment, output, source and locals hold forms of secrets,
and what `attach` shows of it.

python -m tests.trust.live [--each-way] [LIST …]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from tests.conftest import python_path
from tests.trust.forms import Form, read_forms
from tests.trust.measure import Explained, readable

RANKS = 4
WAITING_S = 240
# Where a secret of a live job can stand.
WAYS = ("output", "variables", "arguments", "source", "locals", "threads")
PROGRAM = """
import json, os, subprocess, sys, threading
TEXTS = json.load(open(sys.argv[1]))
for text, _ in TEXTS if "output" in {ways} else ():
    print(text, flush=True)
print("printed", flush=True)
{functions}
for function, held in zip(FUNCTIONS, TEXTS):
    thread = threading.Thread(
        target=function, args=held if "locals" in {ways} else ("", ""), daemon=True
    )
    if "threads" in {ways}:
        thread.name = held[0]
    thread.start()
# a child with no launcher's variables, as a logger or a mount is
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep({waiting})", *sys.argv[2:]])
threading.Event().wait({waiting})
"""
# The text stands in the waiting line itself, and in locals.
FUNCTION = """
def wait_{number}(held, value):
    {name} = value
    threading.Event().wait({waiting}){in_line}
"""
_SETTING = re.compile(r"([A-Za-z_]\w*)=(\S+)")


def words_of(form: Form) -> list[str]:
    """How a shell would hand the form over, and the form as one word."""
    return [*form.text.split(), form.text]


def attached(forms: list[Form], folder: Path, ways: Collection[str] = WAYS) -> Explained:
    """Start a job of four ranks that hold all forms in the `ways` asked for, attach to it, and
    return what came of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    try:
        jobs += [started(forms[rank::RANKS], rank, folder, ways) for rank in range(RANKS)]
        for rank in range(RANKS):
            log = folder / f"rank_{rank}.log"
            for _ in range(600):
                if b"printed" in log.read_bytes():
                    break
                time.sleep(0.05)
            assert b"printed" in log.read_bytes(), log.read_text()[-2000:]
        time.sleep(0.5)
        argv = [sys.executable, "-m", "trainprobe", "attach", str(jobs[0].pid), "--verbose"]
        argv += ["--case", str(folder / "case"), "--json", str(folder / "out.json")]
        argv += ["--output", str(folder / "page.html")]
        environment = {**os.environ, "NO_COLOR": "1", **python_path()}
        done = subprocess.run(
            argv, cwd="/", env=environment, capture_output=True, timeout=240, check=False, text=True
        )
    finally:
        for job in jobs:
            for child in children_of(job.pid):
                os.kill(child, 9)
            job.kill()
            job.wait()
    assert done.returncode in (0, 1, 3), done.stderr
    places = {
        str(path.relative_to(folder)): readable(path)
        for path in (*(folder / "case").rglob("*"), folder / "out.json", folder / "page.html")
        if path.is_file()
    }
    return Explained({**places, "terminal": done.stdout, "messages": done.stderr})


def started(
    forms: list[Form], rank: int, folder: Path, ways: Collection[str]
) -> subprocess.Popen[bytes]:
    texts = folder / f"texts_{rank}.json"
    settings = [next(iter(_SETTING.findall(form.text)), ("value", "")) for form in forms]
    held = [(form.text, value) for form, (_, value) in zip(forms, settings, strict=True)]
    texts.write_text(json.dumps(held))
    functions = [
        FUNCTION.format(
            number=number,
            name=name,
            waiting=WAITING_S,
            in_line=f", {form.text!r}" if "source" in ways else "",
        )
        for number, (form, (name, _)) in enumerate(zip(forms, settings, strict=True))
    ]
    names = ", ".join(f"wait_{number}" for number in range(len(forms)))
    program = folder / f"train_{rank}.py"
    program.write_text(
        PROGRAM.format(
            functions="\n".join(functions) + f"\nFUNCTIONS = [{names}]",
            waiting=WAITING_S,
            ways=tuple(ways),
        )
    )
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29507"}
    environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    for number, form in enumerate(forms if "variables" in ways else ()):
        environment[f"NOTE_{number}"] = form.text
        environment[f"NCCL_NOTE_{number}"] = form.text
        environment |= dict(_SETTING.findall(form.text))
    for name in ("PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHASHSEED"):
        environment.pop(name, None)
        if name in os.environ:
            environment[name] = os.environ[name]
    words = [word for form in forms if "arguments" in ways for word in words_of(form)]
    with (folder / f"rank_{rank}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(program), str(texts), *words],
            cwd=folder,
            env={name: value.replace("\0", "") for name, value in environment.items()},
            stdout=log,
            stderr=log,
        )


def children_of(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(each) for each in found]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("lists", nargs="*", default=["secrets_in_use.txt", "secrets_second.txt"])
    options.add_argument("--each-way", action="store_true", help="one look for each way alone")
    asked = options.parse_args()
    for name in asked.lists:
        forms = read_forms(name, 2)
        for ways in [(way,) for way in WAYS] if asked.each_way else [WAYS]:
            with tempfile.TemporaryDirectory() as folder:
                got = attached(forms, Path(folder) / "job", ways)
            leaking = {form.name: where for form in forms if (where := got.holding(form))}
            print(f"{name}: {len(forms)} forms in {', '.join(ways)}, {len(leaking)} leak")
            for form, where in leaking.items():
                print(f"  leaks: {form} {where}")


if __name__ == "__main__":
    main()
