"""The environment as each process has it: variables that --export keeps back, that SLURM does not
set, that the batch shell expands for all tasks, and the software that the script loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainprobe.sbatch.expanding import OWN_OF_TASK, frozen
from trainprobe.sbatch.findings import Check, Edits, Finding
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.numbers import counted
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.script import Invocation, in_container

ENVIRONMENT, SOFTWARE = CHECKS = Check("plan.environment"), Check("plan.software")
# sbatch(1), OUTPUT ENVIRONMENT VARIABLES: set only if one of these options is.
_ONLY_WITH = {
    "SLURM_CPUS_PER_TASK": ("cpus-per-task",),
    "SLURM_CPUS_PER_GPU": ("cpus-per-gpu",),
    "SLURM_NTASKS_PER_NODE": ("ntasks-per-node",),
    "SLURM_GPUS_PER_NODE": ("gpus-per-node",),
    "SLURM_GPUS_PER_TASK": ("gpus-per-task",),
    "SLURM_GPUS": ("gpus",),
    "SLURM_MEM_PER_NODE": ("mem",),
    "SLURM_MEM_PER_CPU": ("mem-per-cpu",),
}
_LAYOUT = {"nodes", "ntasks", "ntasks-per-node", "gpus", "gpus-per-node", "gres", "cpus-per-task"}
_OF_RANK = re.compile(
    r"-*(?:\w*[_-])?(?:rank|local|node|gpu|device|id|procid|proc)(?:[_-]\w*)?", re.IGNORECASE
)
_OF_SCHEDULERS = ("SLURM", "PBS_", "LSB_", "LS_", "OMPI_", "PMI", "PALS_", "MPI_")
_OF_MEETING = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
_OF_SYSTEM = re.compile(
    r"hostname|nvidia-smi|rocm-smi|env|printenv|date|echo|sleep|true|uname|lscpu|numactl|free|df|ls"
    r"|mkdir|rm|cp|cat|which|id|whoami|(?:ba|z|da)?sh|killall|pkill|singularity|apptainer|podman"
)
_RANK_VARIABLES = ("RANK", "LOCAL_RANK")
_OF_RANKS = (*_OF_MEETING, "LOCAL_RANK")
_OWN_ADDRESS = re.compile(r"-*(?:local-addr|(?:node|host|local|my)[_-]?(?:ip|addr|address|name))")
_WORLD = re.compile(r"--?(?:dist[_-])?world[_-]?size")
_SETS_UP = re.compile(r"module|ml|spack|micromamba|mamba|conda|load_\w+")
_BRINGS_ITS_OWN = re.compile(
    r"\.sif\b|\.simg\b|\.sqsh\b|container|singularity|apptainer|shifter|enroot|podman|docker"
    r"|conda run|mamba run|\buv run|poetry run|pixi run|_wrapper\b|--environment"
)
_HOOKS = ("source", ".", "eval")
# apptainer-exec(1) takes the variables around it along unless told otherwise, docker-run(1) and
# podman-run(1) those that are named
_TAKES_ALL = re.compile(r"apptainer|singularity")
_CONTAINER = re.compile(r"(?:.*/)?(?:apptainer|singularity|docker|podman)")
_GIVEN_BY = ("APPTAINERENV_", "SINGULARITYENV_")
_CLEANED = ("--cleanenv", "-e", "--containall", "-C")
_CLEANED_BY = ("APPTAINER_CLEANENV", "SINGULARITY_CLEANENV")


def check(plan: Plan) -> Iterator[Finding]:
    if not plan.launches:
        unknown = _steps_of_unknown_programs(plan)
        yield from unknown or [ENVIRONMENT.skip("The script starts no training")]
        yield SOFTWARE.skip("The script starts no training")
        return
    wrong = [
        *(found for launch in plan.launches for found in _kept_back(plan, launch)),
        *(found for launch in plan.launches for found in _left_outside(launch)),
        *_unset_by_slurm(plan),
        *(found for launch in plan.launches for found in _never_set(plan, launch)),
        *(found for launch in plan.launches for found in _expanded_once(launch)),
        *(found for launch in plan.launches for found in _world_size(plan, launch)),
        *(found for launch in plan.launches for found in _set_from_itself(plan, launch)),
    ]
    yield from wrong or [ENVIRONMENT.ok("The tasks get the variables that the script sets")]
    yield from _software(plan)


def loads(run: Invocation) -> bool:
    """Whether a command sets up software: modules, conda, a sourced file."""
    name, rest = run.words[0].rpartition("/")[2], run.words[1:]
    if name in _HOOKS:
        return True
    return bool(_SETS_UP.fullmatch(name)) and bool({"load", "activate", "use", "env"} & {*rest[:2]})


def _loading(plan: Plan) -> list[Invocation]:
    return [run for run in plan.script.commands if loads(run)]


def _kept_back(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """--export without ALL, of sbatch or of srun: the tasks get SLURM's own variables only."""
    step = launch.step
    if step is None or not step.limited or any(run.step is step for run in _loading(plan)):
        return
    own = {assigned.name for assigned in plan.script.assigned if not assigned.task}
    lost = [name for name in step.lost if name in own]
    above = [run.line for run in _loading(plan) if run.step is None and run.line <= launch.line]
    absolute = launch.run.words[0].startswith("/") or launch.run.words != step.words
    if not lost and absolute:
        return
    parts = [f"loads in line {above[0]}"] if above and not absolute else []
    parts += [f"exports ({', '.join(lost[:4])})"] if lost else []
    fix = "srun --export=ALL, or export SLURM_EXPORT_ENV=ALL in the script above the launch"
    edits = plan.before_launches("export SLURM_EXPORT_ENV=ALL")
    if step.limited.endswith("of srun"):
        pattern = r"--export(?:=|\s+)(\S+)"
        match = re.search(pattern, plan.script.line(step.command.line))
        edits = plan.swap(launch, pattern, f"--export=ALL,{match[1]}") if match else ()
        edits = () if match and match[1] == "NONE" else edits
        fix = "srun --export=ALL,…"
    line = plan.line_of("export") or step.command.line
    if parts:
        says = (
            f"{step.limited} keeps back from the tasks of line {launch.line} what the script"
            f" {' and '.join(parts)}: they get SLURM's own variables only"
        )
        yield ENVIRONMENT.fail(says, fix, line, step.limited, edits)
        return
    says = (
        f"{step.limited} gives the tasks of line {launch.line} SLURM's own variables only, no PATH:"
        f" {launch.run.words[0]} may not be found"
    )
    yield ENVIRONMENT.likely(says, fix, line, step.limited, edits)


def _left_outside(launch: Launch) -> Iterator[Finding]:
    """A container that gets nothing of the environment around it, where the ranks need some."""
    own, step = launch.run.command.words, launch.step
    found, written = _container_in(own), own
    if found is None and step is not None:
        found, written = _container_in(step.words), step.command.words
    if found is None or launch.run.file:
        return
    environ = launch.run.environment()
    (name, *options), inside = found
    given, closed_by = set(), name
    if _TAKES_ALL.fullmatch(name):
        closing = [
            *(f"{name} {word}" for word in options if word in _CLEANED),
            *(f"{one}=1" for one in _CLEANED_BY if environ.get(one, "0") not in ("", "0")),
        ]
        closed_by = closing[0] if closing else ""
        given = {one.partition("ENV_")[2] for one in environ if one.startswith(_GIVEN_BY)}
    given |= _named_for_container(name, options)
    if not closed_by or "*" in given:
        return
    kept = inside if written is own else written
    text = " ".join(word for word in kept if word.startswith("'"))  # expanded in the image
    given.update(re.findall(r"(?:^|[\s;&'])(?:export\s+)?([A-Z_]+)=", text))
    needed = re.findall(r"\$\{?((?:SLURM|MASTER)_[A-Z_]+|WORLD_SIZE|RANK|LOCAL_RANK)\b", text)
    needed += [one for one in environ if one in _OF_RANKS and launch.program == "python"]
    lost = sorted(set(needed) - given)
    if lost:
        says = (
            f"{closed_by} in line {launch.line} keeps the environment out of the image:"
            f" {', '.join(lost[:5])} {'is' if len(lost) == 1 else 'are'} not set there"
        )
        fix = f"leave out {closed_by.removeprefix(f'{name} ')}"
        if not _TAKES_ALL.fullmatch(name):
            fix = f"{name} run {' '.join(f'-e {one}' for one in lost[:5])}"
        yield ENVIRONMENT.fail(says, fix, launch.line, closed_by)


def _container_in(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]] | None:
    """The words that start a container, the first of them its program, and those inside."""
    at = next((n for n, word in enumerate(words) if _CONTAINER.fullmatch(word)), None)
    inside = in_container(list(words[at:])) if at is not None else None
    if at is None or inside is None:
        return None
    outside = words[at : len(words) - len(inside)]
    return (outside[0].rpartition("/")[2], *outside[1:]), inside


def _named_for_container(name: str, options: Sequence[str]) -> set[str]:
    """The variables that options pass into an image; `*` where they pass all or those of a file."""
    found: set[str] = set()
    for word, following in zip(options, [*options[1:], ""], strict=True):
        option, has_value, value = word.partition("=")
        if option in ("--env-file", "--env-host"):
            return {"*"}
        if option == "--env" or (option == "-e" and not _TAKES_ALL.fullmatch(name)):
            given = value if has_value else following
            found.update(part.partition("=")[0].strip("\"'") for part in given.split(","))
    return found


def _steps_of_unknown_programs(plan: Plan) -> list[Finding]:
    """A command that no environment of the system has, started in a step that gets none of what
    the script loads.
    """
    for run in plan.script.commands:
        step = run.step
        if step is None or not step.limited or run.file or _OF_SYSTEM.fullmatch(run.words[0]):
            continue
        above = [one.line for one in _loading(plan) if one.step is None and one.line < run.line]
        inside = any(one.step is step for one in _loading(plan))
        if not above or inside or not re.fullmatch(r"[\w.+-]+", run.words[0]):
            continue
        says = (
            f"{step.limited} keeps back from the tasks of line {run.line} what the script loads in"
            f" line {above[-1]}: {run.words[0]} may not be found, or lack its environment"
        )
        fix = "srun --export=ALL, or export SLURM_EXPORT_ENV=ALL in the script above it"
        line = plan.line_of("export") or run.line
        return [ENVIRONMENT.likely(says, fix, line, step.limited)]
    return []


def _set_from_itself(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """`export MASTER_ADDR=$MASTER_ADDR`, where nothing has set it before."""
    environ = launch.run.environment()
    for name in _OF_MEETING:
        itself = f"${{{name}}}"
        used = environ.get(name) if launch.program == "python" else None
        if used != itself and itself not in launch.options.values():
            continue
        if plan.login.environ.get(name):
            continue
        places = [one for one in plan.script.assigned if one.name == name]
        if not places or any(one.value != itself for one in places):
            continue
        other = next(
            (
                one.name
                for one in plan.script.assigned
                if one.name != name and one.name.upper() == name
            ),
            "",
        )
        line = places[0].line
        says = f"{name} in line {line} is set from itself, and nothing sets it before: it is empty"
        right = f"export {name}=${other}" if other else f"export {name}=…"
        edits = plan.swap_in(line, f"{name}={places[0].raw}", f"{name}=${other}") if other else ()
        made = ENVIRONMENT.fail if other else ENVIRONMENT.likely
        yield made(says, right, line, name, edits)


def _unset_by_slurm(plan: Plan) -> Iterator[Finding]:
    """A variable that SLURM sets only for an option which the job does not have."""
    if not _LAYOUT & plan.options.keys():
        return  # the options come from sbatch's command line
    own = {assigned.name for assigned in plan.script.assigned}
    told: set[str] = set()
    uses = [(run.line, run.command.words, run) for run in plan.script.commands if run.step is None]
    assigned = [(one.line, (one.raw,), None) for one in plan.script.assigned if not one.task]
    for line, words, run in [*uses, *assigned]:
        if run is not None and run.words[0] in ("echo", "printf", "[", "[[", "test", "if"):
            continue
        text = " ".join(re.sub(r"'[^']*'", "", word) for word in words)
        for name, options in _ONLY_WITH.items():
            if name in told or name in own or any(one in plan.options for one in options):
                continue
            if name in plan.login.environ or not _used_plainly(name, text):
                continue
            told.add(name)
            option = options[0]
            says = f"${name} in line {line} is empty: SLURM sets it only with --{option}"
            fix = f"#SBATCH --{option}=…, or ${{{name}:-…}}"
            harmless = name == "SLURM_CPUS_PER_TASK" and "OMP_NUM_THREADS" in plan.script.line(line)
            in_launch = run is not None and any(
                launch.line == line or launch.run.command == run.command for launch in plan.launches
            )
            made = ENVIRONMENT.fail if in_launch else ENVIRONMENT.likely
            yield (ENVIRONMENT.warn if harmless else made)(says, fix, line, name)


def _used_plainly(name: str, text: str) -> bool:
    if re.search(rf"\$(?:\{{{name}\}}|{name}\b)", text):
        return True
    return bool(re.search(rf"\$\(\([^)]*(?<![\w{{$]){name}\b(?!:)", text))


def _never_set(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """A variable in the launch that the script sets only below it, or nowhere."""
    command = launch.run.command
    if launch.run.file:
        return  # its variables may be set in that file
    sourced = command.nested or any(
        run.words[0] in _HOOKS for run in plan.script.commands if run.line < launch.line
    )
    text = " ".join(launch.options.values())
    for name in dict.fromkeys(re.findall(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", text)):
        if name.startswith(_OF_SCHEDULERS) or name in plan.login.environ or name == "RANDOM":
            continue
        where = _set_in(plan, name)
        below = [line for line in where if line > command.last]
        if where and len(below) == len(where) and not command.nested:
            says = (
                f"${name} in line {launch.line} is empty: the script sets it in line {below[0]},"
                " below"
            )
            yield ENVIRONMENT.fail(says, f"set {name} above the launch", launch.line, name)
        elif not where and not sourced and plan.login.environ and "_" in name:
            says = f"${name} in line {launch.line} is set nowhere in the script"
            yield ENVIRONMENT.likely(says, f"export {name}=… above the launch", launch.line, name)


def _set_in(plan: Plan, name: str) -> list[int]:
    """The lines that give a variable a value in any way of the shell."""
    pattern = re.compile(
        rf"(?:^|[\s;(&|]){name}(?:\[[^\]]*\])?\+?="
        rf"|\b(?:for|read|mapfile|readarray|select|getopts|printf -v)\b[^\n;]*\b{name}\b"
        rf"|\$\{{{name}:?="
    )
    return [
        number
        for number, line in enumerate(plan.script.lines, start=1)
        if not line.lstrip().startswith("#") and pattern.search(line)
    ]


def _expanded_once(launch: Launch) -> Iterator[Finding]:
    """A variable of a task, or the name of its host, that the batch shell has expanded already."""
    if not launch.several_tasks:
        return
    in_task = "srun bash -c '…', with single quotes, so that each task expands it"
    arguments = [*launch.named_values]
    environ = launch.run.environment()
    arguments += [
        (name, value)
        for name, value in environ.items()
        if name not in _RANK_VARIABLES and value in map(frozen, OWN_OF_TASK)
    ]
    for name, value in arguments:
        variable = next((one for one in OWN_OF_TASK if frozen(one) in value), "")
        if not variable:
            continue
        says = (
            f"${variable} of {name or 'an argument'} in line {launch.line} is expanded by the batch"
            f" shell, where it is 0: all {launch.shape.all_tasks} tasks get 0"
        )
        rank = _OF_RANK.fullmatch(name) or name == "CUDA_VISIBLE_DEVICES"
        made = ENVIRONMENT.fail if rank else ENVIRONMENT.warn
        yield made(says, in_task, launch.line, variable)
    words = launch.step.words if launch.step else ()
    for name, value in [*launch.options.items(), *launch.named_values]:
        named = _OWN_ADDRESS.fullmatch(name) and re.match(r"\$\(\s*(?:/bin/)?hostname", value)
        if named and any(value in word for word in words) and launch.shape.nodes > 1:
            says = (
                f"$(hostname) of {name} in line {launch.line} is the batch host for all"
                f" {launch.shape.nodes} nodes: the batch shell expands it"
            )
            yield ENVIRONMENT.likely(says, in_task, launch.line, value)


def _world_size(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """WORLD_SIZE of plain Python under srun, where each task is one rank. torchrun sets its own."""
    tasks = launch.shape.all_tasks
    looped = launch.in_loop
    if launch.program != "python" or not launch.several_tasks or looped or not launch.counted:
        return
    value = launch.run.environment().get("WORLD_SIZE", "")
    name = "WORLD_SIZE"
    for argument, given in launch.named_values:
        if _WORLD.fullmatch(argument):
            name, value = argument, given
    if not value.isdecimal() or int(value) == tasks or plan.about(launch).get("spawns"):
        return
    assigned = plan.assignment("WORLD_SIZE") if name == "WORLD_SIZE" else None
    line = assigned.line if assigned else launch.line
    effect = f"rank {value} and above are not part of it"
    if int(value) > tasks:
        effect = "they would wait for ever for the others"
    says = (
        f"{name} in line {line} is {value}, and line {launch.line} starts"
        f" {counted(tasks, 'rank')}: {effect}"
    )
    edits: Edits = ()
    if assigned is not None:
        edits = plan.swap_in(line, f"WORLD_SIZE={assigned.raw}", "WORLD_SIZE=$SLURM_NTASKS")
    known = bool(plan.about(launch)) or name == "WORLD_SIZE"
    made = ENVIRONMENT.fail if known else ENVIRONMENT.likely
    yield made(says, "WORLD_SIZE=$SLURM_NTASKS", line, value, edits)


def _software(plan: Plan) -> Iterator[Finding]:
    launches = [launch for launch in plan.launches if not launch.run.command.conditional]
    if not launches:
        yield SOFTWARE.skip("The launch depends on a condition")
        return
    loading = _loading(plan)
    last = max(launch.run.command.last for launch in launches)
    first = min(launch.line for launch in launches)
    below = [run for run in loading if run.line > last and not run.command.nested]
    above = [run for run in loading if run.line <= last]
    if below:
        says = (
            f"Line {below[0].line} loads software below the launch of line {first}, which starts"
            " without it"
        )
        made = SOFTWARE.warn if above else SOFTWARE.likely
        yield made(says, "move it above the launch", below[0].line)
        return
    own_path = any(assigned.name in ("PATH", "VIRTUAL_ENV") for assigned in plan.script.assigned)
    if above or own_path or any(_names_its_own(plan, launch) for launch in launches):
        where = f" (line {above[0].line})" if above else ""
        yield SOFTWARE.ok(f"The script names its software{where}")
        return
    login_shell = re.match(r"#!.*\s-\w*l", plan.script.line(1))
    inherits = plan.options.get("export") is None or "ALL" in (plan.option("export") or "").upper()
    says = f"The script loads no module and no environment before line {first}"
    fix = "module load …, or source …/bin/activate, above the launch"
    if inherits or login_shell:
        says += ": the ranks take the software of the shell from which it is submitted"
        yield SOFTWARE.warn(says, fix, first)
    else:
        says += f", and {plan.options['export'].spelled or '--export'} passes none on"
        yield SOFTWARE.likely(says, fix, first)


def _names_its_own(plan: Plan, launch: Launch) -> bool:
    """Whether a launch has a full path, a container, or a tool that brings its environment."""
    options = [*plan.options, *(launch.step.options if launch.step else ())]
    return (
        launch.run.words[0].startswith(("/", "./", "$"))
        or any(name.startswith("container") for name in options)
        or bool(_BRINGS_ITS_OWN.search(" ".join(launch.run.command.words)))
    )
