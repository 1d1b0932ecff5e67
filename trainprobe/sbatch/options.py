"""Options of sbatch and srun, as getopt_long reads them: long names may be shortened, a value
follows `=`, a blank, or the letter itself.

Names after sbatch(1) and srun(1) of SLURM 22.05 to 24.11.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass


def _table(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


_LETTERS = _table("""
    A:account B:extra-node-info C:constraint D:chdir F:nodefile G:gpus J:job-name L:licenses
    M:clusters N:nodes S:core-spec a:array b:begin c:cpus-per-task d:dependency e:error i:input
    m:distribution n:ntasks o:output p:partition q:qos t:time w:nodelist x:exclude r:relative
    T:threads
""")
_BARE_LETTERS = _table("""
    H:hold O:overcommit Q:quiet V:version h:help s:oversubscribe v:verbose l:label u:unbuffered
    E:preserve-env X:disable-status Z:no-allocate
""")
_OPTIONAL_LETTERS = {"k": "no-kill", "I": "immediate", "K": "kill-on-bad-exit"}
_VALUED = set(_LETTERS.values()) | set(
    """
    acctg-freq batch bb bbf cluster-constraint comment container container-id cores-per-socket
    cpu-freq cpus-per-gpu deadline delay-boot export export-file extra gid gpu-bind gpu-freq
    gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint kill-on-invalid-dep
    mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network
    ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode power prefer
    priority profile reservation resources segment signal sockets-per-node switches thread-spec
    threads-per-core time-min tmp uid wait-all-nodes wckey wrap tres-bind tres-per-task
    container-image container-mounts container-name container-workdir container-env
    container-writable consolidate-segments oom-kill-step
    """.split()
)
_OTHER_NAMES = {"tasks-per-node": "ntasks-per-node"}
_MAY_BE_EMPTY = "mail-user"  # then the job's owner gets the mail
_OPTIONAL = set(
    """
    exclusive get-user-env nice propagate no-kill ignore-pbs wait immediate kill-on-bad-exit
    resv-ports bcast compress send-libs x11 spread-job container-mount-home container-remap-root
    """.split()
)
_BARE = set(_BARE_LETTERS.values()) | set(
    """
    contiguous parsable reboot requeue no-requeue test-only use-min-nodes usage hetjob packjob
    stepmgr no-bell no-shell exact overlap pty quit-on-interrupt multi-prog preserve-env whole
    no-container-mount-home no-container-remap-root
    """.split()
)
_STEP_VALUED = set(
    """
    accel-bind bcast-exclude cpu-bind epilog prolog het-group pack-group jobid mpi msg-timeout
    slurmd-debug task-epilog task-prolog treewidth
    """.split()
)
_STEP_ONLY = _STEP_VALUED | set(
    """
    relative threads immediate kill-on-bad-exit resv-ports bcast compress send-libs x11 exact
    overlap pty quit-on-interrupt multi-prog label unbuffered preserve-env disable-status
    no-allocate
    """.split()
)
LONG = _VALUED | _OPTIONAL | _BARE | _STEP_VALUED

# sbatch(1), INPUT ENVIRONMENT VARIABLES: they override the script; the command line overrides them.
FROM_ENVIRONMENT = {
    f"SBATCH_{name}": option
    for name, option in _table(
        """
        ACCOUNT:account ARRAY_INX:array CONSTRAINT:constraint CPUS_PER_GPU:cpus-per-gpu ERROR:error
        EXCLUSIVE:exclusive EXPORT:export GPUS:gpus GPUS_PER_NODE:gpus-per-node
        GPUS_PER_TASK:gpus-per-task GRES:gres JOB_NAME:job-name MEM_PER_CPU:mem-per-cpu
        MEM_PER_GPU:mem-per-gpu MEM_PER_NODE:mem NO_REQUEUE:no-requeue OPEN_MODE:open-mode
        OUTPUT:output PARTITION:partition QOS:qos REQUEUE:requeue RESERVATION:reservation
        SIGNAL:signal TIMELIMIT:time OVERCOMMIT:overcommit
        """
    ).items()
}


@dataclass(frozen=True)
class Option:
    """One option. `line` is that of the script, 0 for the command line, -1 for the environment;
    `where` names it for a sentence.
    """

    name: str
    value: str
    line: int = 0
    where: str = ""
    spelled: str = ""


@dataclass(frozen=True)
class ParsedOptions:
    """The options at the front of a list of arguments, the arguments after them, and a sentence
    for each argument that is not an option. `foreign` are long options that are not SLURM's own
    and that a plugin of the site may add (spank(8)).
    """

    options: tuple[Option, ...]
    rest: tuple[str, ...] = ()
    flaws: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


_Parsed = tuple[list[tuple[str, str]], str, int]
"""Names with values, a flaw, and how many of the following arguments were used."""


def options_of(
    arguments: Sequence[str], *, step: bool = False, line: int = 0, where: str = ""
) -> ParsedOptions:
    """Read the options at the front of `arguments`. `step` accepts those of srun."""
    options: list[Option] = []
    flaws: list[str] = []
    foreign: list[str] = []
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "-":
        argument = arguments[at]
        at += 1
        if argument == "--":
            break
        following = arguments[at] if at < len(arguments) else None
        if _of_plugin(argument, step=step):
            foreign.append(argument.partition("=")[0][:60])
            following_value = following is not None and "=" not in argument
            at += following_value and not str(following).startswith("-")
            continue
        if argument.startswith("--"):
            pairs, flaw, used = _long(argument[2:], following, step=step)
        else:
            pairs, flaw, used = _short(argument[1:], following, step=step)
        at += used
        if flaw:
            flaws.append(flaw)
        options += [Option(name, value, line, where, argument) for name, value in pairs]
    return ParsedOptions(tuple(options), tuple(arguments[at:]), tuple(flaws), tuple(foreign))


def _of_plugin(argument: str, *, step: bool) -> bool:
    """Whether this may be an option of a site's plugin: neither SLURM's nor near one of them."""
    name = argument[2:].partition("=")[0]
    return (
        argument.startswith("--")
        and len(name) > 2
        and _full_name(name, step=step) is None
        and name not in LONG
        and not any(known.startswith(name) for known in LONG)
        and not difflib.get_close_matches(name.lower().replace("_", "-"), LONG, 1, 0.8)
    )


def _long(text: str, following: str | None, *, step: bool) -> _Parsed:
    prefix, has_value, value = text.partition("=")
    name = _full_name(prefix, step=step)
    if name is None:
        return [], f"--{prefix[:60]} is not an option of {'srun' if step else 'sbatch'}", 0
    if name in _BARE:
        return [(name, "")], f"--{name} takes no value" if has_value else "", 0
    if name in _OPTIONAL:
        return [(name, value)], "", 0
    if has_value:
        empty = not value and name != _MAY_BE_EMPTY
        return [(name, value)], f"--{name} has no value" if empty else "", 0
    if following is None:
        return [(name, "")], f"--{name} has no value", 0
    return [(name, following)], "", 1


def _full_name(prefix: str, *, step: bool) -> str | None:
    prefix = _OTHER_NAMES.get(prefix, prefix)
    allowed = LONG if step else LONG - _STEP_ONLY
    if prefix in allowed:
        return prefix
    matches = [name for name in allowed if prefix and name.startswith(prefix)]
    return matches[0] if len(matches) == 1 else None


def _short(letters: str, following: str | None, *, step: bool) -> _Parsed:
    pairs: list[tuple[str, str]] = []
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter == "W":
            value = letters or following or "" if step else ""
            return [*pairs, ("wait", value)], "", int(step and not letters)
        if letter in _OPTIONAL_LETTERS:
            return [*pairs, (_OPTIONAL_LETTERS[letter], letters)], "", 0
        if letter in _BARE_LETTERS:
            pairs.append((_BARE_LETTERS[letter], ""))
        elif letter not in _LETTERS:
            return pairs, f"-{letter} is not an option of {'srun' if step else 'sbatch'}", 0
        elif letters:
            flaw = f"-{letter}= is read as a value that begins with =" if letters[0] == "=" else ""
            return [*pairs, (_LETTERS[letter], letters.removeprefix("="))], flaw, 0
        else:
            flaw = f"-{letter} has no value" if following is None else ""
            return [*pairs, (_LETTERS[letter], following or "")], flaw, 1
    return pairs, "", 0
