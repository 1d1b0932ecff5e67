"""The prefixes that launchers, schedulers, containers and libraries put before a line: which rank,
host and process wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from trainprobe.logtext.stamps import Stamp, stamp

ROUNDS = 6
MOST_RANK = 1_000_000


class Prefixes(NamedTuple):
    """What the prefixes of a line say about its writer.

    `rank` is the job's rank, `local` the number within the host, and `rest` the line without its
    prefixes. `certain` is true where a prefix names the job's rank. Otherwise `rank` is the local
    number, which equals it on a single host, or the rank within a process group (`[Rank 3]`), which
    equals it in the default group. `when` is the time stamp before, between or behind the prefixes.
    """

    rank: int | None
    local: int | None
    host: str
    pid: int | None
    rest: str
    certain: bool
    when: Stamp | None = None


class Labels(NamedTuple):
    """Which ambiguous prefixes are labels in this file, because most of its lines carry them.

    `task`: `3: ` is a rank (srun -l), or with `launches` a task that starts several.
    `host`: `node7: ` is a host, one of `hosts`.
    `bracket`: `[3] ` is a rank, and `word` is what stands before one, the r of `[r3] `.
    `pair`: `[1,3] ` is job and rank. `numbered`: `12: ` or `12 | ` is a line number that somebody
    pasted. `pod`: `name-1 | ` or `train-worker-1 container ` is a pod.
    """

    task: bool = False
    launches: bool = False
    host: bool = False
    bracket: bool = False
    pair: bool = False
    numbered: bool = False
    pod: bool = False
    word: str = ""
    hosts: frozenset[str] = frozenset()


NO_LABELS = Labels()
_HOST = r"[A-Za-z0-9][\w.-]{0,80}"
_RANK = re.compile(r"\[rank[:=]?\s?(\d{1,7})\](:?)[ ]?", re.IGNORECASE)
_ROLE = re.compile(r"\[([A-Za-z][A-Za-z_-]{0,30}?)(\d{1,6})\]:[ ]?")
_HOST_ROLE = re.compile(rf"\[({_HOST}):(\d{{1,5}})\]:[ ]?")
_MPI = re.compile(
    r"\[(?:(?:[\w.@-]{0,120}?@)?(\d{1,9}),(?:mpirank:)?)?(\d{1,7})(?:,algo-\d{1,4})?\](?:\[[^\]\s]{0,80}\])?<std(?:out|err|diag)>:?[ ]?"  # noqa: E501
)
_MPI_PAIR = re.compile(r"\[(\d{1,9}),(\d{1,7})\]:?[ ]?")
_OPENMPI = re.compile(
    rf"\[({_HOST}):(\d{{3,9}})\] (?=\*\*\* |Signal|Failing at|Associated|\[ ?\d{{1,3}}\]"
    r" |PMIX|mca_|Warning|\d more process)"
)
_BRACKET = re.compile(r"\[(\d{1,5})\]:?[ ]?")
_WORD_BRACKET = re.compile(r"\[([A-Za-z][A-Za-z_-]{0,14}?)(\d{1,4})\]:?[ ]")
_POD = re.compile(r"\[pod/([\w.-]{1,253})/([\w.-]{1,253})\] ?")
_NCCL = re.compile(
    r"(" + _HOST + r"):(\d{1,9}):(\d{1,9}) \[(-?\d{1,4})\] (?=NCCL"
    r" |misc/|init\.cc|graph/|transport/|\S{1,60}\.(?:cc|cu):\d|\d{1,12}\.\d{1,9} )"
)
_NCCL_BARE = re.compile(r"(" + _HOST + r"):(\d{1,9}):(\d{1,9}) (?=NCCL )")
_RAY = re.compile(
    r"\((\w[\w.:<>()=, _-]{0,100}?) ?pid=(\d{1,9})(?:, ip=([\w.:]{1,64}))?\)(?:\x20|$)"
)
_RAY_RANK = re.compile(r"\brank=(\d{1,7})")
# vLLM's worker among those that share a model, where nothing else splits it.
_VLLM_WORKER = re.compile(r"(?:Worker_TP|VllmWorker-)(\d{1,4})$")
# torchx and NeMo-Run: the role and the number of its replica.
_TORCHX = re.compile(r"([A-Za-z][\w.-]{0,60}/\d{1,5}) (?=\[[A-Za-z_-]{1,30}\d{1,6}\]:)")
_COMPOSE = re.compile(
    r"((?:[A-Za-z][\w.-]{0,60}[-_])?(?:worker|node|trainer|train|master|launcher|server|rank|host"
    r"|pytorch|torch)s?[-_]?\d{1,4}|algo-\d{1,4}-\w{5})\s{1,20}\|(?:\x20|$)"
)
_COLUMN = re.compile(r"([A-Za-z][\w.-]{0,80}?[-_]?\d{1,4})\s{1,20}\|(?:\x20|$)")
_STERN = re.compile(
    r"([a-z][a-z0-9.-]{0,250}-(?:worker|master|launcher|replica|node|chief|server"
    r"|trainer)-\d{1,5}(?:-[a-z0-9]{4,8})?)"
    r" ([a-z][a-z0-9-]{0,62}) "
)
# pdsh's own word about a host, before that host's name: `pdsh@login: node-b: ssh exited …`.
_PDSH = re.compile(r"pdsh@[\w.-]{1,80}: (?=[\w.-]{1,80}: )")
_TREE = re.compile(r"([\w-]{1,60}(?:\.[\w-]{1,60}){1,4}) \[(?:stdout|stderr)\] ?")
_COMPOSER = re.compile(r"rank(\d{1,7})\[(\d{1,9})\](?=\[)", re.IGNORECASE)
_BARE_RANK = re.compile(r"rank(\d{1,7}): ", re.IGNORECASE)
_SYSLOG = re.compile(rf"({_HOST}) ([\w./()@-]{{1,80}}?)(?:\[(\d{{1,9}})\])?: ")
_CRI = re.compile(r"(?:stdout|stderr) [FP] ")
_TASK = re.compile(r"\s{0,6}(\d{1,6}):(?:\x20|$)")
_HOST_LABEL = re.compile(rf"({_HOST})(?:\s\((?:\d{{1,3}}\.){{3}}\d{{1,3}}\))?:(?:\x20|$)")
_NUMBERED = re.compile(r"\s{0,8}(\d{1,7})(?:: ?|\s{0,2}[|\u2502\u2192>]\x20?|\t|\. )")
_QUOTE = re.compile(r"(?:> ?){1,3}(?![>/])")
# A program's own mention of its rank, at the beginning or after the head of its log line. It stays
# in the line.
_OWN_RANK = re.compile(
    r"(?:\[(?:Rank|RANK|rank|Global rank|global_rank)[ :=]{1,2}(\d{1,7})\]|\((?:rank|Rank|RANK)["
    r" :=]{1,2}(\d{1,7})\)|(?:Rank|rank|RANK)[ :=#]{1,2}(\d{1,7})(?=[\s:|,\]-]|$))"
)
_GROUP_RANK = re.compile(r"\[PG (?:ID )?(\d{1,6})[^\]]{0,200}? Rank (\d{1,7})\]")
_OWN_LOCAL = re.compile(r"\[(?:GPU|gpu|cuda|CUDA|device|local[ _]rank)[ :=_-]{0,2}(\d{1,3})\]")
_HEAD_PART = re.compile(
    r"\s{0,4}(?:\[[^\]\n]{1,120}\]|\([^)\n]{1,80}\)|\{[^}\n]{1,200}\}|-|\||INFO|WARNING|WARN|ERROR|DEBUG"
    r"|CRITICAL)(?::|\s|$)"
)
_LEVELS = re.compile(
    r"info|warn|warning|error|debug|fatal|critical|trace|errno|step|epoch|iter|layer|batch|line|fold"
    r"|note"
)
_DAEMONS = re.compile(
    r"kernel|slurmstepd(?:-[\w.-]{1,80})?|slurmd|systemd|python3?|torchrun|srun|kubelet|dockerd|containerd"
)
_SOURCE = re.compile(r"\.(?:py|cc?|cpp|cu|cuh|h|hpp|pyx|rs|go|log|sh|yaml|json)$")
_LABEL_HOST = re.compile(
    r"(?:[A-Za-z][\w-]{0,60}\d{1,5}|[A-Za-z][\w-]{0,60}(?:\.[\w-]{1,60}){2,6}"
    r"|(?:\d{1,3}\.){3}\d{1,3})$"
)


_COMMON_WORDS = re.compile(
    r"(?:error|exception|warning|interrupt|exit)$|^(?:info|warn|debug|trace|critical|fatal|note"
    r"|step|epoch|iter|iteration|loss|train|training|eval|val|valid|test|batch|rank|gpu|time|srun"
    r"|slurmstepd(?:-[\w.-]{1,80})?|"
    r"python3?|torchrun|bash|sh|kernel|file|line|usage|http|https|root|main|__main__|nccl|cuda"
    r"|what|hint|help|output|input|using|version|name|device|model|torch|c10|host|hostname|pid"
    r"|wandb|mlflow|comet|clearml|neptune|accelerate|deepspeed|transformers|datasets|tokenizers"
    r"|lightning|megatron|nemo|vllm|sglang|ray|raylet|horovod|mpirun|mpiexec|orte|prte|ninja|make"
    r"|gcc|nvcc|ptxas|pip|git|docker|ssh|rsync|curl|aws|gcloud|kubectl)$"
    r"|\.(?:py|cpp|cc|cu|h|sh)$",
    re.IGNORECASE,
)


class _Found:
    """What the prefixes read so far say."""

    __slots__ = ("certain", "host", "local", "pid", "rank", "task", "when")

    def __init__(self) -> None:
        self.rank: int | None = None
        self.local: int | None = None
        self.host = ""
        self.pid: int | None = None
        self.certain = False
        self.task = False
        self.when: Stamp | None = None

    def is_rank(self, number: int, *, certain: bool = True) -> None:
        if number < MOST_RANK and (not self.certain or self.rank is None or self.task):
            self.rank, self.certain, self.task = number, certain or self.task, False

    def is_task(self, number: int) -> None:
        """The rank by srun's label; what names the rank itself, further in, knows better."""
        if number < MOST_RANK and self.rank is None:
            self.rank, self.certain, self.task = number, True, True

    def is_local(self, number: int) -> None:
        if self.local is None and 0 <= number < 4096:
            self.local = number


def read_prefixes(line: str, labels: Labels = NO_LABELS) -> Prefixes:
    """Read the prefixes of a plain line. Never raises; looks at the first few hundred characters.

    Prefixes may be nested in any order, at most six deep. Stamps before a prefix, and those that a
    container runtime or syslog wrote, are removed with it; the head of the program's own log line
    stays.
    """
    found = _Found()
    rest = line
    for _ in range(ROUNDS):
        taken = _take(rest, found, labels)
        if taken == 0:
            taken = _past_stamp(rest, found, labels)
        if taken == 0:
            break
        rest = rest[taken:]
    if not found.certain:
        _own(rest, found)
    rank = found.rank if found.rank is not None else found.local
    return Prefixes(rank, found.local, found.host, found.pid, rest, found.certain, found.when)


def learn_labels(lines: Iterable[str]) -> Labels:
    """Decide which ambiguous prefixes are labels, from some hundred consecutive plain lines."""
    sample = [line for line in list(lines)[:1000] if line.strip()]
    if len(sample) < 3:
        return NO_LABELS
    if _counts_up(sample) and not (_TASK.match(sample[0]) and sample[0].lstrip().startswith("0:")):
        return Labels(numbered=True)
    enough = 0.6 * len(sample)
    past = [_PDSH.sub("", _behind_stamp(line), count=1) for line in sample]
    tasks = [int(match.group(1)) for match in map(_TASK.match, past) if match]
    brackets = [int(match.group(1)) for match in map(_BRACKET.match, past) if match]
    pairs = [int(match.group(2)) for match in map(_MPI_PAIR.match, past) if match]
    named = [
        (match.group(1), int(match.group(2)))
        for match in map(_WORD_BRACKET.match, past)
        if match and not _LEVELS.fullmatch(match.group(1).lower())
    ]
    hosts = [
        match.group(1)
        for match in map(_HOST_LABEL.match, past)
        if match
        and _LABEL_HOST.match(match.group(1))
        and not _SOURCE.search(match.group(1))
        and not _DAEMONS.fullmatch(match.group(1))
    ]
    pods = [
        match.group(1)
        for match in (_COLUMN.match(line) or _STERN.match(line) for line in past)
        if match
    ]
    few = max(2, len(sample) // 2)
    words = [
        match.group(1)
        for match in map(_HOST_LABEL.match, past)
        if match and not match.group(1).isdecimal() and not _COMMON_WORDS.search(match.group(1))
    ]
    if len(words) >= max(6, 0.95 * len(sample)) and len(set(words)) <= 4:
        hosts = words  # hosts without a number in their names
    by_host = len(hosts) >= enough and len(set(hosts)) <= few
    return Labels(
        task=len(tasks) >= enough
        and (len(set(tasks)) <= few or set(tasks) == set(range(len(set(tasks))))),
        launches=any(_names_another_rank(line) for line in past),
        host=by_host,
        bracket=len(brackets) >= enough
        and len(set(brackets)) <= few
        and max(brackets, default=0) < 65536,
        pair=len(pairs) >= enough and len(set(pairs)) <= few,
        pod=len(pods) >= enough and len(set(pods)) <= few,
        word=named[0][0]
        if len(named) >= enough and len({word for word, _ in named}) == 1 and len(set(named)) <= few
        else "",
        hosts=frozenset(hosts) if by_host else frozenset(),
    )


def _names_another_rank(line: str) -> bool:
    """Whether another rank stands behind the label of a task: that task started several."""
    task = _TASK.match(line)
    if task is None or "ank" not in line[:400]:
        return False
    inner = read_prefixes(line[task.end() :])
    return inner.certain and inner.rank != int(task.group(1))


def _counts_up(sample: list[str]) -> bool:
    """Whether the lines are numbered consecutively, as in an editor or on a web page."""
    numbers = [int(match.group(1)) if match else None for match in map(_NUMBERED.match, sample)]
    steps = sum(
        1
        for first, second in zip(numbers, numbers[1:])
        if first is not None and second is not None and 1 <= second - first <= 3
    )
    return steps >= 0.8 * (len(sample) - 1)


def _behind_stamp(line: str) -> str:
    found = stamp(line)
    return line if found is None else line[found.end :].lstrip(" ")


def _take(line: str, found: _Found, labels: Labels) -> int:
    """Read one prefix into `found` and return its length, 0 where there is none."""
    blanks = len(line) - len(line.lstrip(" "))
    first = line[blanks : blanks + 1]
    if not first or blanks > 12:
        return 0
    if labels.numbered and (match := _NUMBERED.match(line)):
        return match.end()
    if blanks and first != "[":
        return _take_label(line, found, labels)
    if first == "[":
        taken = _take_bracket(line[blanks : blanks + 400], found, labels)
        return blanks + taken if taken else 0
    if first == ">":
        match = _QUOTE.match(line)
        return match.end() if match else 0
    if first == "(":
        return _take_ray(line[:300], found)
    return _take_word(line[:400], found) or _take_label(line, found, labels)


def _take_bracket(text: str, found: _Found, labels: Labels) -> int:
    if match := _RANK.match(text):
        if (
            match.group(2)
            or text.startswith(("[rank:", "[rank "))
            or match.group(0).startswith("[rank")
        ):
            found.is_rank(int(match.group(1)))
            return match.end()
    elif match := _MPI.match(text):
        found.is_rank(int(match.group(2)))
        return match.end()
    elif match := _POD.match(text):
        found.host = match.group(1)
        return match.end()
    elif match := _ROLE.match(text):
        word = match.group(1).lower().rstrip("_-")
        if _LEVELS.fullmatch(word):
            return 0
        if re.fullmatch(r"node|host|.{0,20}-(?:node|host)", word):
            found.host = match.group(1) + match.group(2)
        else:
            found.is_local(int(match.group(2)))
        return match.end()
    elif (
        (match := _HOST_ROLE.match(text))
        and not _SOURCE.search(match.group(1))
        and not match.group(1).isdecimal()
        and not _LEVELS.fullmatch(match.group(1).lower())
    ):
        found.host = match.group(1)
        found.is_local(int(match.group(2)))
        return match.end()
    return _take_doubtful(text, found, labels)


def _take_doubtful(text: str, found: _Found, labels: Labels) -> int:
    """Numbers in brackets: a rank only before certain words, or where most lines have them."""
    match = _OPENMPI.match(text)
    if match is not None:
        found.host, found.pid = match.group(1), int(match.group(2))
        return match.end()
    pair = _MPI_PAIR.match(text) if labels.pair else None
    number = _BRACKET.match(text) if labels.bracket and pair is None else None
    if pair is not None:
        found.is_rank(int(pair.group(2)))
        return pair.end()
    if number is not None:
        found.is_rank(int(number.group(1)))
        return number.end()
    named = _WORD_BRACKET.match(text) if labels.word else None
    if named is not None and named.group(1) == labels.word:
        found.is_rank(int(named.group(2)))
        return named.end()
    return 0


def _take_ray(text: str, found: _Found) -> int:
    match = _RAY.match(text)
    if match is None:
        return 0
    found.pid = int(match.group(2))
    found.host = match.group(3) or found.host
    if rank := _RAY_RANK.search(match.group(1)):
        found.is_rank(int(rank.group(1)))
    elif worker := _VLLM_WORKER.match(match.group(1)):
        found.is_rank(int(worker.group(1)), certain=False)
    return match.end()


def _take_word(text: str, found: _Found) -> int:
    """Prefixes that begin with a letter or digit and are recognised by their form alone."""
    if ":" in text and (match := _NCCL.match(text) or _NCCL_BARE.match(text)):
        found.host, found.pid = match.group(1), int(match.group(2))
        if match.re is _NCCL and int(match.group(4)) >= 0:
            found.is_local(int(match.group(4)))
        return match.end()
    if match := _PDSH.match(text):
        return match.end()
    if match := _COMPOSER.match(text):
        found.is_rank(int(match.group(1)))
        found.pid = int(match.group(2))
        return match.end()
    if match := _BARE_RANK.match(text):
        found.is_rank(int(match.group(1)))
        return match.end()
    if match := _COMPOSE.match(text) or _TREE.match(text) or _TORCHX.match(text):
        found.host = match.group(1)
        return match.end()
    return 0


def _take_label(line: str, found: _Found, labels: Labels) -> int:
    if labels.task and (match := _TASK.match(line)):
        if not labels.launches:
            found.is_task(int(match.group(1)))
        return match.end()
    if labels.pod and (match := _COLUMN.match(line) or _STERN.match(line)):
        found.host = match.group(1)
        return match.end()
    if (
        labels.host
        and (match := _HOST_LABEL.match(line))
        and (match.group(1) in labels.hosts or _LABEL_HOST.match(match.group(1)))
    ):
        found.host = match.group(1)
        return match.end()
    return 0


def _past_stamp(line: str, found: _Found, labels: Labels) -> int:
    """The length of a stamp that a runtime or a launcher wrote; 0 where it is the line's own."""
    when = stamp(line)
    found.when = when or found.when
    if when is None or not 0 < when.end < len(line):
        return 0
    behind = line[when.end :]
    gap = 1 if behind.startswith(" ") else 0
    text = behind[gap:]
    if match := _CRI.match(text):
        return when.end + gap + match.end()
    if (
        gap
        and when.kind in ("full", "no-year")
        and (match := _SYSLOG.match(text[:300]))
        and _is_syslog(match)
    ):
        found.host = match.group(1)
        if match.group(3) and match.group(2) != "kernel":
            found.pid = int(match.group(3))
        return when.end + gap + match.end()
    taken = _take(text, found, labels)
    if taken:
        return when.end + gap + taken
    # A runtime's stamp (`kubectl logs --timestamps`, `ts`) stands before any line; a logger's is
    # followed by a level, a name or a dash.
    zoned = line[: when.end].rstrip().endswith("Z") and when.kind == "full" and line[:1].isdecimal()
    if zoned and gap:
        return when.end + 1
    unheaded = text[:1] in ("\t", " ") or text.startswith(
        ("Traceback (", 'File "', "RuntimeError", "ValueError", "torch.")
    )
    return when.end + gap if gap and unheaded and when.kind == "full" else 0


def _is_syslog(match: re.Match[str]) -> bool:
    return bool(match.group(3)) or _DAEMONS.fullmatch(match.group(2)) is not None


def _own(rest: str, found: _Found) -> None:
    """The rank that the head of the line mentions; a group's rank where there is no better one."""
    text = rest[:300]
    if "ank" not in text and "ANK" not in text:
        if "[" in text[:60] and (match := _OWN_LOCAL.match(text.lstrip())):
            found.is_local(int(match.group(1)))
        return
    if match := _GROUP_RANK.search(text):
        if match.group(1) == "0" or "default_pg" in match.group(0):
            found.is_rank(int(match.group(2)), certain=False)
        return
    when = stamp(text)
    place = when.end if when is not None else 0
    if (
        text[:1] == "["
        and when is not None
        and text[when.end - 1] != "]"
        and "]" in text[when.end :]
    ):
        place = text.index("]", when.end) + 1  # [E1121 10:11:12.345 File.cpp:607] [Rank 3]
    elif re.match(r"\[[IWEF] ", text) and "]" in text:
        place = text.index("]") + 1  # [E ProcessGroupNCCL.cpp:475] [Rank 3]
    elif re.match(r"[IWEFV]\d{4} ", text) and "]" in text:
        place = text.index("]") + 1
    for _ in range(6):
        blanks = len(text[place:]) - len(text[place:].lstrip(" :|-"))
        match = _OWN_RANK.match(text, place + blanks)
        if match is not None:
            number = next(int(group) for group in match.groups() if group is not None)
            found.is_rank(number, certain=False)
            return
        part = _HEAD_PART.match(text, place)
        if part is None:
            return
        place = part.end() - (1 if text[part.end() - 1 : part.end()] == " " else 0)
