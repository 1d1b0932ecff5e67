"""What `explain` shows of the lists: how many secrets leak, how many look-alikes are harmed.

Run as a program, `python -m tests.trust.measure` prints both with their names.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.trust.forms import Form, read_forms
from trainprobe.cli import run
from trainprobe.redact import clean

TOGETHER = 4  # logs of one run, each with its own exception
BEFORE = ("Traceback (most recent call last):", '  File "/w/train.py", line 3, in <module>')
LISTS = (
    "secrets_in_use.txt",
    "secrets_second.txt",
    "secrets_third.txt",
    "secrets_fourth.txt",
    "look_alikes.txt",
    "look_alikes_second.txt",
)
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-16")


def log_of(form: Form, marker: str, rank: int) -> str:
    """One form alone on its lines, in an exception's message, and behind what launchers put
    before lines.
    """
    lines = form.text.split("\n")
    return "".join(
        f"{line}\n"
        for line in (
            f"starting {marker}-alone",
            *lines,
            *BEFORE,
            "    main()",
            f"RuntimeError: {marker}-raised {form.text}",
            *(f"[rank{rank}]: 2026-05-17 12:30:59,123 INFO {line}" for line in lines),
            f"end of {marker}-prefixed",
        )
    )


class Explained(NamedTuple):
    places: dict[str, str]  # what can be read afterwards, by its name

    def holding(self, form: Form) -> list[str]:
        return [name for name, text in self.places.items() if form.leaks_into(text)]


def explained(forms: list[Form], folder: Path, first: int = 0) -> Explained:
    """Explain one log for each form and return every text that came of it."""
    (folder / "logs").mkdir(parents=True)
    for place, form in enumerate(forms):
        text = log_of(form, f"marker{first + place}", place)
        (folder / "logs" / f"rank_{place}.log").write_text(text, ENCODINGS[place % 4])
    case, page = folder / "case", folder / "page.html"
    out, err = io.StringIO(), io.StringIO()
    argv = ["explain", str(folder / "logs"), "--case", str(case), "--no-color", "--verbose"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*argv, "--json", str(folder / "out.json"), "--output", str(page)])
    if code not in (0, 1, 3):
        raise RuntimeError(f"explain ended with {code}: {err.getvalue()}")
    places = {
        str(path.relative_to(folder)): readable(path)
        for path in (*case.rglob("*"), folder / "out.json", page)
        if path.is_file()
    }
    return Explained({**places, "terminal": out.getvalue(), "messages": err.getvalue()})


def readable(path: Path) -> str:
    """The text of a file, and where it is JSON also what its escapes stand for."""
    text = path.read_text("utf-8", "replace")
    rows = text.splitlines() if path.suffix == ".jsonl" else [text]
    if path.suffix in (".json", ".jsonl"):
        text += "\n".join(strings(json.loads(row)) for row in rows)
    return text


def strings(data: object) -> str:
    if isinstance(data, dict):
        return "\n".join(strings(item) for pair in data.items() for item in pair)
    if isinstance(data, list):
        return "\n".join(map(strings, data))
    return str(data)


class Measured(NamedTuple):
    leaked: dict[str, list[str]]  # form -> where it can be read
    harmed: list[str]  # look-alikes that evidence.jsonl no longer holds
    unseen: list[str]  # forms whose marker did not come through: they show nothing
    forms: int = 0


def measured(forms: list[Form], folder: Path) -> Measured:
    leaked: dict[str, list[str]] = {}
    harmed, unseen = [], []
    for first in range(0, len(forms), TOGETHER):
        group = forms[first : first + TOGETHER]
        found = explained(group, folder / str(first), first)
        evidence = found.places["case/evidence.jsonl"]
        for place, form in enumerate(group, first):
            shown = (f"marker{place}-{how}" in evidence for how in ("alone", "raised", "prefixed"))
            if not all(shown):
                unseen.append(form.name)
            if form.secrets:
                if where := found.holding(form):
                    leaked[form.name] = where
            elif not all(line.strip() in evidence for line in clean(form.text).split("\n")):
                harmed.append(form.name)
    return Measured(leaked, harmed, unseen, len(forms))


if __name__ == "__main__":
    for name in sys.argv[1:] or LISTS:
        with tempfile.TemporaryDirectory() as folder:
            got = measured(read_forms(name, 1), Path(folder))
        print(
            f"{name}: {got.forms} forms, {len(got.leaked)} leak, {len(got.harmed)} harmed,"
            f" {len(got.unseen)} not shown"
        )
        print("".join(f"  leaks: {form} {where}\n" for form, where in got.leaked.items()), end="")
        print("".join(f"  harmed: {form}\n" for form in got.harmed), end="")
