"""The commands that a report prints, each built from the request that was made, so that it works as
it stands.

What only the reader knows stands in angle brackets: `trainprobe explain <OUTPUT>`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from trainprobe.causes.scene import Scene
from trainprobe.facts import HostCheck, LogJob, Plan, Reach, ReadyPlan, Rung
from trainprobe.facts.cell_measures import size_of
from trainprobe.model.diagnosis import Weighing
from trainprobe.model.node_names import folded

OF_A_MODEL = ("model_stress", "model_load")
OF_THE_DATA = ("scaled_dataset",)
OF_THE_COMMAND = "user_script"
NEXT_RUN = "   # once the job runs again"
_FILLED_IN = re.compile(r"\{(?:ranks|rows|nodes)\}")
_KILLS = re.compile(r"\bkill(?! -CONT)((?: -\w+)*(?: \d+)+)")
# A step that begins so only looks, or acts on a process alone; anything else is for the next run.
_ON_WHAT_RUNS = re.compile(
    r"(?:on [\w.-]+:"
    r" )?(?:trainprobe|ps|py-spy|cat|ls|df|ss|fuser|flock|kill|grep|strace|nvidia-smi|dmesg"
    r"|sudo)\s|quit"
    r" it\b"
)


def shell(words: Iterable[str]) -> str:
    """Return a command line that a shell reads as `words`; `{ranks}` and the like stay."""
    return " ".join(
        (
            word
            if shlex.quote(_FILLED_IN.sub("N", word)) == _FILLED_IN.sub("N", word)
            else shlex.quote(word)
        )
        for word in words
    )


def job(scene: Scene) -> str:
    """The job's own command as somebody would type it; empty where there is none."""
    plan, ranks = scene.plan, str(max(scene.group.world_size, 1))
    rows = size_of(scene.cell).rows
    words = [
        word.replace("{ranks}", ranks).replace("{rows}", "{rows}" if rows is None else str(rows))
        for word in plan.argv
    ]
    if words and plan.form == "launch":
        each = ["--nproc-per-node", str(plan.nproc)] if plan.nodes else ["--nproc-per-node", ranks]
        over = (
            ["--nnodes", str(len(plan.nodes)), "--node-rank", "<N>", "--master-addr", plan.nodes[0]]
            if plan.nodes
            else []
        )
        torchrun = (
            [plan.interpreter_path, "-m", "torch.distributed.run"]
            if _python(plan)
            else ["torchrun"]
        )
        return f"{shell(torchrun)} {' '.join(over)}{' ' if over else ''}{shell((*each, *words))}"
    return shell(words)


def again(scene: Scene, weighings: Sequence[Weighing] = (), steps: Sequence[str] = ()) -> str:
    """The command that shows whether the cause is gone, once `steps` are done.

    It repeats the rung of this group and those whose evidence carried the cause, of which
    `weighings` tell. A job of which only logs are left has to run again first; so has a live one
    that `steps` end or change.
    """
    if scene.facts.one(LogJob) is not None:
        return "trainprobe explain <OUTPUT>   # what the next run prints"
    reach = scene.facts.one(Reach)
    goes_on = _goes_on(scene, steps)
    if reach is not None:
        if reach.by == "slurm" and not goes_on:  # the next run is another job
            return re.sub(r"--slurm \S+", "--slurm <JOB>", reach.command) + NEXT_RUN
        return reach.command
    if scene.live is not None:
        return f"trainprobe attach {live_pid(scene)}" if goes_on else f"trainprobe attach{NEXT_RUN}"
    if scene.group.unready:
        ready = scene.facts.one(ReadyPlan)
        if ready is not None and ready.by == "sbatch":
            return "trainprobe ready --sbatch <SCRIPT>"
        over_ssh = ready is not None and ready.by == "ssh"
        if ready is not None and over_ssh:
            return f"trainprobe ready --nodes {folded(ready.nodes)}"
        return "trainprobe ready"
    return diagnose(
        scene, (*carriers(scene, weighings), *((scene.group.probe,) if scene.group.probe else ()))
    )


def carriers(scene: Scene, weighings: Sequence[Weighing]) -> tuple[str, ...]:
    """The rungs below this group's in which the evidence for a cause was found, lowest first."""
    ids = {each for one in weighings if one.points > 0 for each in one.evidence}
    rungs = {rung.cell: rung for rung in scene.facts.of(Rung)}
    own = next((rung.rung for rung in rungs.values() if rung.cell == scene.cell), None)
    cells = {
        fact.cell
        for fact in scene.facts.of(HostCheck)
        if fact.cell in rungs and ids & set(fact.evidence)
    }
    found = {
        rungs[cell].rung: rungs[cell].probe
        for cell in cells
        if own is None or rungs[cell].rung < own
    }
    return tuple(found[place] for place in sorted(found) if scene.group.probe)


def diagnose(
    scene: Scene,
    only: Sequence[str],
    *,
    rows: Sequence[int] = (),
    workers: int | None = None,
    command: bool = True,
) -> str:
    """`trainprobe diagnose` with the rungs `only` (all of them where it is empty), as it was asked
    for otherwise.

    Of sizes it takes the smallest that failed, not the whole grid, or `rows`. `workers` is what is
    planned in place of what was.
    """
    plan, group = scene.plan, scene.group
    size = size_of(group.cell)
    on_gpus = plan.gpus_requested is not None or plan.device == "cuda"
    ranks = max(plan.nproc, 1) if plan.nodes else max(group.world_size, plan.nproc, 1)
    words = ["trainprobe", "diagnose"]
    if _python(plan):
        words += ["--python", plan.interpreter_path]
    if plan.nodes:
        words += ["--nodes", folded(plan.nodes)]
    if size.rows is not None and not plan.nodes:
        words += ["--ranks", str(size.ranks), "--rows", str(size.rows)]
        words += ["--device", "cpu"] if plan.device == "cpu" and plan.gpus else []
    else:
        words += ["--gpus" if on_gpus else "--nproc", str(ranks)]
        words += (
            ["--rows", ",".join(map(str, rows or plan.rows))]
            if rows or (size.rows is None and _takes_rows(plan, only))
            else []
        )
    words += ["--only", ",".join(only)] if only else []
    words += [word for folder in plan.probe_dirs for word in ("--probe-dir", folder)]
    words += ["--config", plan.config] if plan.config else []
    planned = dict(plan.planned) | ({} if workers is None else {"workers": workers})
    if "import_memory" in only and plan.imports:
        words += ["--imports", ",".join(plan.imports)]
        planned = (
            {"ranks": planned["ranks"]}
            if only == ("import_memory",) and "ranks" in planned
            else planned
        )
    if (set(only) & set(OF_A_MODEL)) and plan.model:
        words += ["--model", plan.model, *(_of_a_model(plan) if "model_stress" in only else ())]
    if set(only) & set(OF_THE_DATA) and plan.dataset:
        words += ["--dataset", plan.dataset, *(("--collate", plan.collate) if plan.collate else ())]
        words += ["--batch-size", str(plan.batch_size)] if plan.batch_size else []
        words += ["--workers", ",".join(map(str, plan.workers))] if plan.workers else []
    if planned and (
        set(only) & {"import_memory", *OF_THE_DATA, OF_THE_COMMAND} or workers is not None
    ):
        words += ["--planned", ",".join(f"{name}={value}" for name, value in planned.items())]
    line = shell(words)
    if set(only) & set(OF_A_MODEL) and not plan.model:
        line += " --model <MODULE:NAME>"
    if plan.argv and command:
        return f"{line} -- {shell(plan.argv)}"
    return f"{line} -- <COMMAND>" if OF_THE_COMMAND in only and command else line


def live_pid(scene: Scene) -> str:
    """A pid to give to `trainprobe attach`: the launcher's, else that of a rank that was seen."""
    # stacks in files name no process
    return str(next((pid for pid in _pids_of_job(scene) if pid and pid > 0), "<PID>"))


def _pids_of_job(scene: Scene) -> list[int | None]:
    launcher = scene.live.launcher_pid if scene.live is not None else None
    ranks = [
        process.pid
        for rank in (*scene.ranks, *scene.world)
        if (process := scene.process(rank)) is not None
    ]
    return [launcher, *ranks, *(thread.pid for thread in scene.threads(scene.world))]


def is_command(step: str) -> bool:
    """Whether a step is a command that only looks, or acts on one process."""
    return _ON_WHAT_RUNS.match(step) is not None


def _goes_on(scene: Scene, steps: Sequence[str]) -> bool:
    """Is the job still there after `steps`, which only look or end other processes?"""
    ended = {word for step in steps for kills in _KILLS.findall(step) for word in kills.split()}
    mine = {str(pid).partition("@")[0] for pid in _pids_of_job(scene) if pid}
    return all(_ON_WHAT_RUNS.match(step) for step in steps) and not ended & mine


def _python(plan: Plan) -> bool:
    return plan.interpreter_chosen_by == "--python" and bool(plan.interpreter_path)


def _takes_rows(plan: Plan, only: Sequence[str]) -> bool:
    """Whether the command would be refused without --rows, or its data is asked at them."""
    return bool(plan.rows) and (
        any("{rows}" in word for word in plan.argv)
        or bool(plan.dataset and set(only) & set(OF_THE_DATA))
    )


def _of_a_model(plan: Plan) -> list[str]:
    """The options that the stress test was given."""
    given = (
        ("--sample", plan.sample or None),
        ("--bench-steps", plan.bench_steps),
        ("--fuzz", plan.fuzz),
        ("--seed", plan.seed),
    )
    return [word for option, value in given if value is not None for word in (option, str(value))]
