"""A small job whose command lines, environment, output, source and locals hold forms of secrets,
and what `attach` shows of it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import python_path
from tests.trust.forms import Form, read_forms
from tests.trust.measure import Explained, readable

RANKS = 4
WAITING_S = 240
PROGRAM = """
import json, os, subprocess, sys, threading
TEXTS = json.load(open(sys.argv[1]))
for text in TEXTS:
    print(text, flush=True)
print("printed", flush=True)
{functions}
started = [threading.Thread(target=each, daemon=True) for each in FUNCTIONS]
for text, thread in zip(TEXTS, started):
    thread.name = text
    thread.start()
# a child with no launcher's variables, as a logger or a mount is
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep({waiting})", *sys.argv[2:]])
threading.Event().wait({waiting})
"""
# The text stands in the waiting line itself, and in locals.
FUNCTION = """
def wait_{number}():
    held = {text!r}
    {assigned}
    threading.Event().wait({waiting}), {text!r}
"""
_SETTING = re.compile(r"([A-Za-z_]\w*)=(\S+)")


def words_of(form: Form) -> list[str]:
    """How a shell would hand the form over, and the form as one word."""
    return [*form.text.split(), form.text]


def attached(forms: list[Form], folder: Path) -> Explained:
    """Start a job of four ranks that hold all forms, attach to it, and return what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    try:
        jobs += [started(forms[rank::RANKS], rank, folder) for rank in range(RANKS)]
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


def started(forms: list[Form], rank: int, folder: Path) -> subprocess.Popen[bytes]:
    texts = folder / f"texts_{rank}.json"
    texts.write_text(json.dumps([form.text for form in forms]))
    functions = [
        FUNCTION.format(
            number=number,
            text=form.text,
            assigned=next(
                (f"{name} = {value!r}" for name, value in _SETTING.findall(form.text)), "pass"
            ),
            waiting=WAITING_S,
        )
        for number, form in enumerate(forms)
    ]
    names = ", ".join(f"wait_{number}" for number in range(len(forms)))
    program = folder / f"train_{rank}.py"
    program.write_text(
        PROGRAM.format(
            functions="\n".join(functions) + f"\nFUNCTIONS = [{names}]", waiting=WAITING_S
        )
    )
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29507"}
    environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    for number, form in enumerate(forms):
        environment[f"NOTE_{number}"] = form.text
        environment[f"NCCL_NOTE_{number}"] = form.text
        environment |= dict(_SETTING.findall(form.text))
    for name in ("PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHASHSEED"):
        environment.pop(name, None)
        if name in os.environ:
            environment[name] = os.environ[name]
    words = [word for form in forms for word in words_of(form)]
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


if __name__ == "__main__":
    for name in sys.argv[1:] or ["secrets_in_use.txt", "secrets_second.txt"]:
        forms = read_forms(name, 2)
        with tempfile.TemporaryDirectory() as folder:
            got = attached(forms, Path(folder) / "job")
        leaking = {form.name: where for form in forms if (where := got.holding(form))}
        print(f"{name}: {len(forms)} forms, {len(leaking)} leak")
        print("".join(f"  leaks: {form} {where}\n" for form, where in leaking.items()), end="")
