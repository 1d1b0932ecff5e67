"""`#SBATCH` lines, read as sbatch reads them (src/sbatch/opt.c): only above the first command,
quotes and escapes kept together, a bare `#` ends a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainprobe.sbatch.options import Option, ParsedOptions, options_of
from trainprobe.sbatch.shell import HEREDOC

_MARK = "#SBATCH"
_MISTYPED = re.compile(
    r"(?:#\s*(?:SBATCH|SBTACH|SBACTH|SBATH|SBACH|SABTCH)|#(?:sbatch|Sbatch))\b[ \t]+-"
)


_PLACEHOLDER = re.compile(r"\{\{|\{%|(?<!\$)\{\s*\w+\s*\}|<\w[^>]*>")


@dataclass(frozen=True)
class Flaw:
    """A part of the script that sbatch refuses or ignores. `kind`: late, unknown, variable,
    mistyped, word, foreign, shebang, dos, empty, long, more.
    """

    kind: str
    line: int
    says: str


@dataclass(frozen=True)
class Directives:
    """`components` are the parts of a heterogeneous job; a plain job has one. `first_command` is
    its line, 0 where there is none.
    """

    components: tuple[tuple[Option, ...], ...]
    flaws: tuple[Flaw, ...]
    first_command: int


def directives(text: str) -> Directives:
    """Read the options that the script gives itself."""
    flaws = _file_flaws(text)
    components: list[list[Option]] = [[]]
    first_command = 0
    document = ""  # the end of a here-document, which may hold another job's script
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.rstrip("\r")
        if document:
            document = "" if bare.lstrip("\t") == document else document
            continue
        if first_command and (begun := HEREDOC.search(bare)) and not bare.lstrip().startswith("#"):
            document = begun[2]
        if bare.startswith(_MARK) and bare[len(_MARK) :][:1] in ("", " ", "\t"):
            if first_command:
                says = (
                    f"Line {number} is below the first command (line {first_command}), where"
                    " sbatch ignores options"
                )
                flaws.append(Flaw("late", number, says))
                continue
            if _PLACEHOLDER.search(bare[1:].partition("#")[0]):
                says = f"Line {number} is a template that must be filled first: {bare[:60]}"
                flaws.append(Flaw("foreign", number, says))
                continue
            arguments = split_directive(bare[len(_MARK) :])
            if any(argument.lstrip("-") in ("hetjob", "packjob") for argument in arguments):
                components.append([])
                continue
            parsed = options_of(arguments, line=number, where=f"line {number}")
            components[-1] += parsed.options
            flaws += _line_flaws(parsed, number)
        elif _MISTYPED.match(bare) and not bare.startswith("##") and not first_command:
            says = f"sbatch takes line {number} for a comment: {bare[:60].strip()}"
            flaws.append(Flaw("mistyped", number, says))
        elif not first_command and bare.strip() and not bare.lstrip().startswith("#"):
            first_command = number
            document = begun[2] if (begun := HEREDOC.search(bare)) else ""
    return Directives(tuple(tuple(part) for part in components), tuple(flaws), first_command)


def _file_flaws(text: str) -> list[Flaw]:
    if not text.strip():
        return [Flaw("empty", 1, "The script is empty; sbatch refuses it")]
    flaws = []
    if not text.startswith("#!"):
        says = "The first line names no interpreter; sbatch refuses such a script"
        flaws.append(Flaw("shebang", 1, says))
    if "\r\n" in text:
        line = 1 + text[: text.index("\r\n")].count("\n")
        flaws.append(Flaw("dos", line, "The script has DOS line breaks; sbatch refuses it"))
    return flaws


def _line_flaws(parsed: ParsedOptions, number: int) -> list[Flaw]:
    flaws = [Flaw("unknown", number, f"Line {number}: {flaw}") for flaw in parsed.flaws]
    flaws += [
        Flaw("foreign", number, f"Line {number}: {name} is not SLURM's own: a plugin must add it")
        for name in parsed.foreign
    ]
    if parsed.rest:
        says = f"Line {number}: {parsed.rest[0][:60]!r} is not an option; sbatch refuses it"
        flaws.append(Flaw("word", number, says))
    for option in parsed.options:
        literal_home = option.name in ("output", "error", "chdir", "input") and (
            option.value.startswith("~")
        )
        if literal_home or re.search(r"\$[A-Za-z_{(]", option.value):
            says = f"Line {number}: sbatch does not expand variables; it takes {option.value[:80]}"
            flaws.append(Flaw("variable", number, f"{says} literally"))
    return flaws


def split_directive(text: str) -> list[str]:
    """Split one line into arguments as sbatch does."""
    arguments: list[str] = []
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
                arguments.append("".join(current))
            current, has = [], False
        else:
            current.append(char)
            has = True
    return [*arguments, "".join(current)] if has else arguments
