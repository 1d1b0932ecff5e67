"""Words that the shell or the launcher reads as something else than is meant: what a launcher takes
for the program, a misspelt option of it, a list in one option, `$(name)` of a variable.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from trainprobe.sbatch import numbers
from trainprobe.sbatch.expanding import ELEMENT_END, elements_of
from trainprobe.sbatch.findings import Check, Finding
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.script import Invocation

TASKS, ENVIRONMENT = CHECKS = Check("plan.tasks"), Check("plan.environment")
_INTERPRETER = re.compile(r"(?:.*/)?(?:python[0-9.]*|(?:ba)?sh|srun|torchrun)")
_NO_NAME = re.compile(r"[\\/\s]*")
_LIST_IN_OPTION = re.compile(r"(-[\w-]+)=\"?\$\{(\w+)\[@\](?::[^:}]+(?::(\d+))?)?\}\"?")
_SUBSTITUTED = re.compile(r"\$\(\s*([A-Za-z_]\w*)\s*\)|`\s*([A-Za-z_]\w*)\s*`")
_OPTIONS = {
    "torchrun": """
        duplicate-stderr-filters duplicate-stdout-filters event-log-handler help local-addr log-dir
        local-ranks-filter logs-specs master-addr master-port max-restarts module monitor-interval
        nnodes no-python node-rank nproc-per-node numa-binding rdzv-backend rdzv-conf rdzv-endpoint
        rdzv-id redirects role run-path shutdown-timeout signals-to-handle standalone start-method
        tee use-env virtual-local-rank
    """.split(),
    "accelerate": """
        config-file cpu debug dynamo-backend dynamo-mode enable-cpu-affinity env gpu-ids
        gradient-accumulation-steps gradient-clipping help log-dir machine-rank main-process-ip
        main-process-port main-training-function max-restarts mixed-precision module
        monitor-interval multi-gpu no-python num-cpu-threads-per-process num-machines num-processes
        quiet rdzv-backend rdzv-conf role same-network tee use-deepspeed use-fsdp
    """.split(),
}
"""Long options after torch/distributed/run.py of torch 2.4 to 2.13, and the general ones of
accelerate/commands/launch.py 1.x, which takes no abbreviations.
"""
_ALIKE = 0.75
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_OF_SCHEDULERS = ("SLURM", "PBS", "LSB", "TMPDIR")
_COMMANDS = set(
    "date hostname pwd whoami nproc uname arch id tty logname ls env users uuid".split()
)
"""Commands after whose names variables are called."""


def check(plan: Plan) -> Iterator[Finding]:
    for launch in plan.launches:
        yield from _program(launch)
        yield from _unset_program(plan, launch)
        yield from _misspelt(launch)
    yield from _lists(plan)
    yield from _commands_of_variables(plan)


def _program(launch: Launch) -> Iterator[Finding]:
    """The first word behind a launcher's options is the program, which it gives to Python."""
    target, plain = launch.script, {"no-python", "m", "module"} & launch.options.keys()
    if launch.program == "python" or plain or not (launch.arguments or target):
        return
    if _INTERPRETER.fullmatch(target):
        says = (
            f"{launch.place} takes the word {target} for the program, and gives it to Python: no"
            " such file"
        )
        yield TASKS.fail(says, f"leave out {target}, or --no-python", launch.line, target)
    elif _NO_NAME.fullmatch(target):
        says = (
            f"{launch.place} takes {target.strip() or 'a blank'} for the program: the line must end"
            " with a backslash and nothing behind it, to go on in the next one"
        )
        yield TASKS.fail(says, "\\ as the last character of the line", launch.line, target)


def _unset_program(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """The program is a variable that the script never sets, while it sets others that it never
    uses: they were meant.
    """
    named = _VARIABLE.fullmatch(launch.script)
    names = {assigned.name for assigned in plan.script.assigned}
    if named is None or named[1] in names or named[1].startswith(_OF_SCHEDULERS):
        return
    unused = [
        one.name
        for one in plan.script.assigned
        if not re.search(rf"\$\{{?{one.name}\b", plan.script.text)
        and one.raw.strip("\"'").endswith(".py")
    ]
    if unused:
        says = (
            f"{launch.place} takes ${named[1]} for the program, which the script sets nowhere; it"
            f" sets {unused[0]} and never uses it"
        )
        yield TASKS.likely(says, f"${unused[0]} in place of ${named[1]}", launch.line, named[1])


def _misspelt(launch: Launch) -> Iterator[Finding]:
    """An option that the launcher does not have, close to one that it has: it ends with a usage
    error. One that is like none of them may be of another version.
    """
    known = _OPTIONS.get(launch.program, [])
    for name in launch.options:
        begins = [one for one in known if one.startswith(name)]
        if len(name) < 3 or name in known or (begins and launch.program == "torchrun"):
            continue
        meant = begins or difflib.get_close_matches(name, known, 1, _ALIKE)
        if meant:
            says = f"{launch.place} has the option --{name}, which {launch.program} does not know"
            yield TASKS.fail(says, f"--{meant[0]}", launch.line, name)


def _lists(plan: Plan) -> Iterator[Finding]:
    """`--option="${LIST[@]}"` is one word for each element: the option gets the first only."""
    told = set()
    for run in plan.script.commands:
        for word in run.command.words:
            found = _LIST_IN_OPTION.fullmatch(word)
            if (
                found is None
                or word in told
                or not (count := _length(plan, run, *found.group(2, 3)))
            ):
                continue
            told.add(word)
            says = (
                f"{found[1]} in line {run.line} gets the first element of {found[2]} only:"
                f" [@] makes {count} words, and the second is taken for the program or its argument"
            )
            fix = f'{found[1]}="$(IFS=,; echo "${{{found[2]}[*]}}")"'
            yield TASKS.fail(says, fix, run.line, found[2])


def _length(plan: Plan, run: Invocation, name: str, slice_length: str | None) -> int:
    """How many words an array gives, 0 where that is not known to be more than one."""
    elements = run.values.get(elements_of(name), "")
    count = elements.count(ELEMENT_END)
    if "$" in elements:
        count = plan.job.nodes if "show hostname" in elements else 0
    most = numbers.whole(slice_length) if slice_length else None
    count = min(count, most) if most is not None else count
    return count if count > 1 else 0


def _commands_of_variables(plan: Plan) -> Iterator[Finding]:
    """`$(NAME)` runs a command of that name; `$NAME` reads the variable."""
    own = {one.name: one.raw for one in reversed(plan.script.assigned)}
    texts = [(one.line, one.raw) for one in plan.script.assigned]
    texts += [(run.line, word) for run in plan.script.commands for word in run.command.words]
    told: set[str] = set()
    for line, text in texts:
        for found in _SUBSTITUTED.finditer(text):
            name = found[1] or found[2]
            function = rf"(?m)^\s*(?:function\s+{name}\b|{name}\s*\(\))"
            if (
                name not in own
                or name in told | _COMMANDS
                or found[0] in own[name]
                or re.search(function, plan.script.text)
            ):
                continue
            told.add(name)
            says = f"{found[0]} in line {line} runs a command {name}; the variable is ${{{name}}}"
            sure = "_" in name or name.isupper()
            made = ENVIRONMENT.fail if sure else ENVIRONMENT.likely
            edits = plan.swap_in(line, found[0], f"${{{name}}}")
            yield made(says, f"${{{name}}}", line, found[0], edits)
