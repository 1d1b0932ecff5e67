"""`#SBATCH` lines, read as sbatch reads them (src/sbatch/opt.c): only above the first command,
quotes and escapes kept together, a bare `#` ends a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainprobe.sbatch.options import Given, Option, options_of

_MARK = "#SBATCH"
_MEANT = re.compile(r"#\s*(?:SBATCH|sbatch|Sbatch|SBTACH|SBACTH|SBATH|SBACH|SABTCH)\b[ \t]+-")


@dataclass(frozen=True)
class Flaw:
    """Something of the script itself that sbatch will refuse or pass over. `kind`: late,
    unknown, variable, meant, word, shebang, dos, empty, long, more.
    """

    kind: str
    line: int
    says: str


@dataclass(frozen=True)
class Directives:
    """`components` are the parts of a heterogeneous job, one of a plain one. `first_command` is
    its line, 0 where there is none.
    """

    components: tuple[tuple[Option, ...], ...]
    flaws: tuple[Flaw, ...]
    first_command: int


def directives(text: str) -> Directives:
    """Read the options that the script gives itself."""
    lines = text.split("\n")
    flaws = _of_the_file(text)
    components: list[list[Option]] = [[]]
    first_command = 0
    for number, line in enumerate(lines, start=1):
        bare = line.rstrip("\r")
        if bare.startswith(_MARK) and bare[len(_MARK) :][:1] in ("", " ", "\t"):
            if first_command:
                flaws.append(
                    Flaw(
                        "late",
                        number,
                        f"Line {number} stands below the first command (line {first_command}),"
                        " where sbatch reads no options any more",
                    )
                )
                continue
            words = split_directive(bare[len(_MARK) :])
            if any(word.lstrip("-") in ("hetjob", "packjob") for word in words):
                components.append([])
                continue
            given = options_of(words, line=number, where=f"line {number}")
            components[-1] += given.options
            flaws += _of_the_line(given, number)
        elif _MEANT.match(bare) and not bare.startswith("##") and not first_command:
            flaws.append(
                Flaw(
                    "meant",
                    number,
                    f"Line {number} is a plain comment to sbatch: {bare[:60].strip()}",
                )
            )
        elif not first_command and bare.strip() and not bare.lstrip().startswith("#"):
            first_command = number
    return Directives(tuple(tuple(one) for one in components), tuple(flaws), first_command)


def _of_the_file(text: str) -> list[Flaw]:
    found = []
    if not text.strip():
        return [Flaw("empty", 1, "The script is empty, and sbatch refuses it")]
    if not text.startswith("#!"):
        found.append(
            Flaw(
                "shebang",
                1,
                "The first line names no interpreter, and sbatch refuses such a script",
            )
        )
    if "\r\n" in text:
        found.append(
            Flaw(
                "dos",
                1 + text[: text.index("\r\n")].count("\n"),
                "The script has DOS line breaks, and sbatch refuses it",
            )
        )
    return found


def _of_the_line(given: Given, number: int) -> list[Flaw]:
    found = [Flaw("unknown", number, f"Line {number}: {flaw}") for flaw in given.flaws]
    if given.rest:
        found.append(
            Flaw(
                "word",
                number,
                f"Line {number}: {given.rest[0][:60]!r} is no option, and sbatch refuses it",
            )
        )
    found += [
        Flaw(
            "variable",
            number,
            f"Line {number}: sbatch expands no variables, so {option.value[:80]} is taken as it is"
            " written",
        )
        for option in given.options
        if re.search(r"\$[A-Za-z_{(]", option.value)
        or (option.name in ("output", "error", "chdir", "input") and option.value.startswith("~"))
    ]
    return found


def split_directive(text: str) -> list[str]:
    """Split one line into words as sbatch does."""
    found: list[str] = []
    current: list[str] = []
    has, quote, escaped = False, "", False
    for char in text:
        if escaped:
            current.append(char)
            has, escaped = True, False
        elif char == "\\":
            escaped = True
        elif quote:
            if char == quote:
                quote = ""
            else:
                current.append(char)
        elif char in "\"'":
            quote, has = char, True
        elif char == "#":
            break
        elif char.isspace():
            if has:
                found.append("".join(current))
            current, has = [], False
        else:
            current.append(char)
            has = True
    return [*found, "".join(current)] if has else found
