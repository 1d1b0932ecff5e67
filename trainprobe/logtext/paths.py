"""Ranks and hosts in the paths of logs, as launchers, schedulers and people name them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

MOST_RANK = 100_000
_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d{2}[-_.]?(?:0[1-9]|1[0-2])[-_.]?(?:[0-2]\d|3[01])(?:[-_.T"
    r" ]?[0-2]\d[-_.:h]?[0-5]\d(?:[-_.:m]?[0-5]\d)?)?(?!\d)"
)
_ENDINGS = re.compile(
    r"(?:\.(?:log|txt|out|err|stdout|stderr|json|jsonl|gz|xz|zst|bz2|bak))+$|(?:[._-](?:stdout"
    r"|stderr|out|err|log|train|output|error))+(?:\.(?:log|txt|gz|xz|zst))*$",
    re.IGNORECASE,
)
# Words before the job's rank; `local_rank` and `gpu` count within a host, for want of better.
_RANK = re.compile(
    r"(?:^|[^a-z])(?:global[_-]?|world[_-]?)?(?:rank|rk)[_\-.=: ]{0,2}(\d{1,6})(?!\d)",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"(?:^|[^a-z])(?:local[_-]?rank|trainer|(?<!loader[_-])worker|task|proc|process|gpu|cuda"
    r"|device|default)[_\-.=:"
    r" ]{0,2}(\d{1,3})(?!\d)",
    re.IGNORECASE,
)
# `out.3`, as mpirun's --output-filename writes; `log_0412.txt` is of the 12th of April, and
# `log_3.txt` a rank's only beside `log_2.txt`.
_STREAM = re.compile(
    r"^(?:log|out|err|stdout|stderr|output)\.(0|[1-9]\d{0,4})(?:\.(?:log|txt|out|err|gz|xz|zst))*$",
    re.IGNORECASE,
)
_STREAM_WORD = re.compile(r"(?:log|out|err|stdout|stderr|output)s?$", re.IGNORECASE)
# slurm-1234-3.out, job_1234.5_3.log: the task follows the job's number; but `slurm-1234_3.out` is
# the third job of an array.
_TASK = re.compile(r"(?:^|[^\d])\d{4,10}(?:\.\d{1,4})?[-.](?:t|task|p)?(\d{1,5})$", re.IGNORECASE)
_DASHED = re.compile(r"^[A-Za-z][A-Za-z_]{0,60}-(\d{1,4})$")
_OTHER_COUNTS = re.compile(
    r"(?:^|[-_.])(?:run|exp|experiment|version|v|ver|epoch|step|iter|attempt|try|retry|restart"
    r"|job|part|trial|seed|fold|config|cfg|test|case|issue|sample|example|checkpoint|ckpt|slurm"
    r"|model|node|host|"
    r"log|shard|chunk|stage|phase|torch|cuda|python|py|h|a|b|lr|bs|batch|id|no|nr)$",
    re.IGNORECASE,
)
_ATTEMPT = re.compile(r"attempt_\d{1,5}$")
_HOST = re.compile(
    r"(?:^|[-_.=@])((?:[a-z]{1,20}[-_])?(?:node|host|nid|gpu|cn|worker|master|compute|dgx|hgx"
    r"|rack|pod|launcher|chief|server|trainer)s?[-_]?\d{1,6}(?:[-_]\d{1,4})?"
    r"|ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}|"
    r"(?:\d{1,3}\.){3}\d{1,3})(?=$|[-_.])",
    re.IGNORECASE,
)
# `gcn12`, `r1i0n5`: may be a host's name, like run1, train1, log1 and qwen25.
_MAYBE_HOST = re.compile(
    r"(?:^|[-_.=@])([a-z]{1,20}\d{0,4}[a-z]?\d{0,4}[nrg]\d{1,5})(?=$|[-_.])", re.IGNORECASE
)


def rank_of_path(path: str) -> int | None:
    """Return the rank in a log's path, None where there is no likely one: dates, job ids, versions
    and counts of runs are none.

    In the trees of torchrun's --log-dir (`attempt_0/3/stderr.log`) and in names such as `gpu3.log`
    it is the number within the host.
    """
    parts = [part for part in re.split(r"[/\\]", path) if part][-4:]
    if not parts:
        return None
    plain = [_DATE.sub("", part) for part in parts]
    for pattern in (_RANK, _WEAK):
        for part in (plain[-1], *reversed(plain[:-1])):
            found = [
                match
                for match in pattern.finditer(part)
                if not (
                    pattern is _RANK
                    and part[: match.start(1)].lower().rstrip("_-.=: ").endswith("local_rank")
                )
            ]
            if found and (part is plain[-1] or pattern is _RANK or part == found[-1].group(0)):
                return _small(found[-1].group(1))
    name = plain[-1]
    stream = _STREAM.match(name)
    if stream is not None:
        return _small(stream.group(1))
    stem = _ENDINGS.sub("", name)
    if len(parts) > 2 and parts[-2].isdecimal() and _ATTEMPT.match(parts[-3]):
        return _small(parts[-2])
    if (
        len(parts) > 1
        and parts[-2].isdecimal()
        and len(parts[-2]) < 4
        and not stem.strip("0123456789")
    ):
        return _small(parts[-2])  # 3/stderr.log
    if (
        re.fullmatch(r"std(?:out|err)", stem or name.split(".")[0])
        and len(parts) > 1
        and parts[-2].isdecimal()
        and len(parts[-2]) < 5
    ):
        return _small(parts[-2])
    task = _TASK.search(stem)
    if task is not None:
        return _small(task.group(1))
    dashed = _DASHED.match(stem)
    if (
        dashed is not None
        and name.lower().endswith((".out", ".err"))
        and not _OTHER_COUNTS.search(stem[: dashed.start(1) - 1])
    ):
        return _small(dashed.group(1))
    return None


def ranks_of_paths(paths: Sequence[str]) -> dict[str, int]:
    """Return the ranks of files that belong together: their own, or the one number in which their
    names differ, if it counts from 0 without a gap.
    """
    ranks = {path: rank for path in paths if (rank := rank_of_path(path)) is not None}
    families: dict[str, list[tuple[int, str]]] = {}
    for path in paths:
        if path in ranks:
            continue
        text = _DATE.sub("", path)
        numbers = list(re.finditer(r"\d{1,6}", os.path.basename(text)))
        if numbers:
            last = numbers[-1]
            base = os.path.basename(text)
            key = f"{os.path.dirname(text)}/{base[: last.start()]}#{base[last.end() :]}"
            families.setdefault(key, []).append((int(last.group(0)), path))
    for key, members in families.items():
        values = sorted(number for number, _ in members)
        word = os.path.basename(key).partition("#")[0].rstrip("-_. ")
        if (
            len(values) > 1
            and values == list(range(len(values)))
            and (_STREAM_WORD.match(word) or not _OTHER_COUNTS.search(word))
        ):
            ranks.update({path: number for number, path in members})
    return ranks


def host_of_path(path: str, known: Collection[str] = ()) -> str:
    """Return the host in a path (`slurm-1234-node7.out`, `logs/gpu-node-03/rank_3.log`), or "".

    A name without a word for a machine counts if it is among the `known` hosts.
    """
    parts = [part for part in re.split(r"[/\\]", path) if part][-4:]
    for place, part in enumerate(reversed(parts)):
        text = _DATE.sub("", part)
        if place == 0:
            text = _ENDINGS.sub("", text)
        found = [match.group(1) for match in _HOST.finditer(text)]
        found += [match.group(1) for match in _MAYBE_HOST.finditer(text) if match.group(1) in known]
        named = [
            each
            for each in found
            if not re.fullmatch(
                r"(?:gpu|trainer|worker|server|h|a|b)s?[-_]?\d{1,2}", each, re.IGNORECASE
            )
            or re.search(r"-\d", each)
        ]
        if named:
            return named[-1]
    return ""


def _small(digits: str) -> int | None:
    number = int(digits)
    return number if number < MOST_RANK else None
