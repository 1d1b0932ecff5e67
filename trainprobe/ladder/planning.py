"""Make the plan: check the request against this machine. Whatever cannot be carried out is reported
before anything starts.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Literal

from trainprobe import plugins
from trainprobe.collect.collectors.gpus import read_gpus
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.config import Settings
from trainprobe.errors import UsageError
from trainprobe.ladder import probes
from trainprobe.ladder.cells import NODE_RANK, NODES, RANKS, ROWS
from trainprobe.ladder.plan import LINT, Ask, Plan, rungs_of
from trainprobe.ladder.thresholds import Thresholds
from trainprobe.model.probes import ProbeSpec
from trainprobe.model.request import DiagnoseRequest
from trainprobe.nodes.transports import Way, ssh_way, way_in_allocation
from trainprobe.targets import interpreter, script
from trainprobe.targets.allocations import allocation_around
from trainprobe.targets.interpreter import Interpreter

GPUS_S = 5.0
DEFAULT_NPROC = 2


def make_plan(
    request: DiagnoseRequest,
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    way: Way | None = None,
) -> Plan:
    """Decide what will be climbed. `way` leads to the nodes that the request names, None finds it.

    Raises UsageError for whatever in the request cannot be carried out on this machine.
    """
    environ = dict(os.environ if environ is None else environ)
    cwd = os.getcwd()
    way = way_to(request, environ) if way is None else way
    nodes = way.names if request.nodes and way is not None else ()
    gpus_seen = look_for_gpus()
    gpus = visible_gpus(len(gpus_seen.data.get("devices") or ()), environ)
    gpus = (request.gpus or gpus) if nodes else gpus  # what a login node has says nothing of them
    nproc = _world(request, gpus)
    _check_sizes(request)
    _check_stress(request)
    if request.resume is not None and request.case is not None:
        raise UsageError(
            "--resume continues in the folder of its case, but --case names another.",
            "Leave --case out.",
        )
    command = request.argv if request.form == "command" else ()
    python = interpreter.find(
        request.interpreter, command, environ, request.imports or interpreter.USUAL_STACK
    )
    argv = _argv(request, python, environ)
    found = _script(request, python, cwd)
    added = plugins.probe_folders()
    folders, unusable = probes.usable(added.found)
    specs = probes.find((*folders, *request.probe_dirs))
    imports = _imports(request, python, found)
    no_gpu = _no_gpu(gpus_seen, environ)
    ask = Ask(
        nproc=nproc,
        gpus=gpus,
        gpus_requested=request.gpus,
        no_gpu_because=no_gpu,
        form=request.form,
        interpreter=python,
        imports=imports,
        sizes_of_command=(
            "one"
            if request.form == "command"
            and not any((NODES if nodes else RANKS) in word for word in request.argv)
            else "all"
        ),
        only=request.only,
        skip=request.skip,
        dataset=request.dataset,
        model=request.model,
        ranks=request.ranks,
        rows=_rows_of_command(request),
        nodes=len(nodes),
    )
    return Plan(
        nproc=nproc,
        gpus=gpus,
        gpus_requested=request.gpus,
        device=_device(request, python, nproc, gpus, no_gpu),
        form=request.form,
        argv=argv,
        cwd=cwd,
        interpreter=python,
        script=found,
        imports=imports,
        rungs=rungs_of(specs, ask),
        only=request.only,
        skip=request.skip,
        timeout_s=request.timeout_s,
        deadlines_s=_deadlines(settings, specs),
        thresholds=Thresholds(settings.at_most, settings.at_least),
        environ=_with_interpreter_first(environ, python),
        notes=(*added.trouble, *unusable),
        gpus_seen=gpus_seen,
        witness=settings.witness,
        lint=settings.lint and LINT not in request.skip,
        ranks=request.ranks,
        rows=request.rows,
        ablate=request.ablate,
        knobs=request.knobs,
        resume=request.resume,
        dataset=request.dataset,
        collate=request.collate,
        batch_size=request.batch_size,
        workers=request.workers,
        model=request.model,
        sample=request.sample,
        bench_steps=request.bench_steps,
        fuzz=request.fuzz,
        seed=request.seed,
        planned=request.planned,
        probe_dirs=request.probe_dirs,
        config=request.config,
        nodes=nodes,
        way=way,
    )


def way_to(request: DiagnoseRequest, environ: Mapping[str, str]) -> Way | None:
    """The way to the nodes of the request: the batch system's where they belong to the allocation
    around us, else ssh. None where the request names none.

    Raises UsageError for what cannot be done over nodes, and where `all` is asked for outside of an
    allocation.
    """
    if not request.nodes:
        return None
    _check_nodes(request)
    if request.nodes == ("all",):
        try:
            return way_in_allocation(environ)
        except UsageError as error:
            raise UsageError(
                error.says,
                "Name the nodes to reach them over ssh: --nodes node1,node2; or start inside"
                " a job.",
            ) from error
    around = allocation_around(environ)
    if around is not None and set(request.nodes) <= set(around.names):
        return way_in_allocation(environ, request.nodes)
    return ssh_way(request.nodes)


def _check_nodes(request: DiagnoseRequest) -> None:
    if request.ablate:
        raise UsageError(
            "--ablate changes knobs on one machine, but --nodes asks for several.",
            "Leave one of them out.",
        )
    if request.ranks:
        raise UsageError(
            "--ranks gives numbers of ranks on one machine; with --nodes the sizes are 1, 2, 4 ..."
            " nodes.",
            "Leave --ranks out; --nproc is the number on each node.",
        )
    command = " ".join(request.argv)
    if (
        request.form == "command"
        and NODES in command
        and NODE_RANK not in command
        and "--rdzv" not in command
        and "--node-rank" not in command
    ):
        raise UsageError(
            f"The command has {NODES}, but nothing tells the nodes apart: it has no {NODE_RANK}.",
            f"Add --node-rank {NODE_RANK}, or a --rdzv-endpoint.",
        )


def look_for_gpus() -> LookResult:
    """Ask NVML, unless nothing on this machine could answer."""
    if not any(
        os.path.exists(path) for path in ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg")
    ):
        return refused("unavailable", "this machine has no NVIDIA GPU (no driver is loaded)")
    return read_gpus(GPUS_S)


def visible_gpus(devices: int, environ: Mapping[str, str]) -> int:
    """Return how many of the machine's GPUs a process here would see: CUDA_VISIBLE_DEVICES hides
    the others.
    """
    wanted = environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return devices
    count = 0
    for word in (part.strip() for part in wanted.split(",")):
        # CUDA stops at the first name that it does not know.
        if not word or word == "-1" or (word.isdecimal() and int(word) >= devices):
            break
        count += 1
    return min(count, devices)


def _world(request: DiagnoseRequest, gpus: int) -> int:
    if request.gpus is not None and request.gpus > gpus:
        here = f"{gpus} GPU{'' if gpus == 1 else 's'}" if gpus else "no GPU"
        ways = [
            *([f"`--gpus {gpus}`"] if gpus else []),
            f"`--nproc {request.gpus}` for gloo ranks on this machine",
        ]
        raise UsageError(
            f"--gpus {request.gpus} was asked for, but this machine has {here}.",
            f"Use {' or '.join(ways)}.",
        )
    return request.gpus or max(request.nproc or 0, *request.ranks, 0) or gpus or DEFAULT_NPROC


def _device(
    request: DiagnoseRequest, python: Interpreter, nproc: int, gpus: int, no_gpu: str
) -> Literal["cpu", "cuda"]:
    """GPUs where torch can use them and no number of ranks says otherwise, unless the user
    chose. Raises UsageError for a choice that is not here.
    """
    able = bool(gpus) and bool(python.cuda)
    if request.device == "cpu" and request.gpus is not None:
        raise UsageError(
            f"--gpus {request.gpus} asks for ranks on GPUs, but --device cpu for none.",
            f"Use --nproc {request.gpus} with --device cpu.",
        )
    if request.device == "cuda" and not able:
        why = (
            no_gpu
            if not gpus
            else (
                f"the torch of {python.path} is built without CUDA"
                if python.torch
                else python.reason or "there is no torch"
            )
        )
        raise UsageError(
            f"--device cuda was asked for, but {why}.", "Leave --device out, or use --device cpu."
        )
    if request.device == "cuda" and nproc > gpus:
        raise UsageError(
            f"--device cuda was asked for {nproc} ranks, but this machine has {gpus}"
            f" GPU{'' if gpus == 1 else 's'}.",
            f"Use --gpus {gpus}.",
        )
    if request.device:
        return request.device
    return "cuda" if able and request.nproc is None else "cpu"


def _check_sizes(request: DiagnoseRequest) -> None:
    """Check that the command has {rows} and {ranks} where the request varies them."""
    if request.form == "none":
        return
    command = " ".join(request.argv)
    if request.rows and ROWS not in command and not request.dataset:
        do = (
            f"Put {ROWS} where your script takes the number of rows, as `--max_train_samples"
            f" {ROWS}`, or name the data with --dataset."
        )
        raise UsageError(
            "--rows was given, but nothing in the command says where the number of rows belongs:"
            f" it has no {ROWS}.",
            do,
        )
    if ROWS in command and not request.rows:
        raise UsageError(
            f"The command has {ROWS}, but no --rows says how many.", "Add --rows 2,100,1000."
        )
    if len(request.ranks) > 1 and request.form == "command" and RANKS not in command:
        do = (
            f"Put {RANKS} where your launcher takes the number of ranks, as `torchrun"
            f" --nproc-per-node {RANKS}`."
        )
        raise UsageError(
            "--ranks was given, but nothing in the command says where the number of ranks"
            f" belongs: it has no {RANKS}.",
            do,
        )
    most = max(request.ranks, default=0)
    if request.gpus is not None and most > request.gpus:
        raise UsageError(
            f"--ranks goes up to {most}, and --gpus says {request.gpus}.",
            "Give as many GPUs as the largest number of ranks, or leave --gpus out.",
        )


def _check_stress(request: DiagnoseRequest) -> None:
    """Options of the model's stress test need a model."""
    given = (
        ("--sample", request.sample or None),
        ("--bench-steps", request.bench_steps),
        ("--fuzz", request.fuzz),
        ("--seed", request.seed),
    )
    option = next((name for name, value in given if value is not None), "")
    if option and not request.model:
        raise UsageError(
            f"{option} is for the stress test of a model, but no --model was given.",
            "Add --model pkg.module:factory.",
        )


def _rows_of_command(request: DiagnoseRequest) -> tuple[int, ...]:
    """Rows are for the command where it says so with {rows}; otherwise they are for the user's
    data alone.
    """
    return request.rows if any(ROWS in word for word in request.argv) else ()


def _no_gpu(seen: LookResult, environ: Mapping[str, str]) -> str:
    if seen.data.get("devices"):
        return (
            f"CUDA_VISIBLE_DEVICES={environ.get('CUDA_VISIBLE_DEVICES', '')} hides every GPU of"
            " this machine"
        )
    return seen.reason or "this machine has no GPU"


def _argv(
    request: DiagnoseRequest, python: Interpreter, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the words to start; raises UsageError when the command's program cannot be found."""
    if request.form != "command":
        return request.argv
    program = request.argv[0]
    beside = os.path.join(os.path.dirname(python.path), program)
    if os.sep in program or shutil.which(program, path=environ.get("PATH")):
        if os.sep in program and not os.path.isfile(program):
            raise UsageError(
                f"The program {program} does not exist.", "Check the command after `--`."
            )
        if os.sep in program and not os.access(program, os.X_OK):
            raise UsageError(
                f"The program {program} is not executable.", "Check the command after `--`."
            )
        if python.chosen_by != "--python" or os.sep in program or not os.access(beside, os.X_OK):
            return request.argv
    if os.access(beside, os.X_OK):  # torchrun of an environment that is not activated
        return (beside, *request.argv[1:])
    raise UsageError(
        f"The program {program} is not on the PATH.",
        "Check the command after `--`, or name its environment with --python.",
    )


def _script(request: DiagnoseRequest, python: Interpreter, cwd: str) -> script.Script | None:
    if request.form == "none":
        return None
    words = request.argv[:1] if request.form == "launch" else request.argv[1:]
    path = (
        os.path.join(cwd, words[0]) if request.form == "launch" else script.in_command(words, cwd)
    )
    if path is None:
        return None
    if not os.path.isfile(path):
        says = (
            f"{words[0]} is a folder, not a script."
            if os.path.isdir(path)
            else f"The script {words[0]} does not exist."
        )
        raise UsageError(says, "Check the path after `--`.")
    found = script.read(path, python.path)
    fault = found.syntax_error
    if fault is not None:
        text = f" in `{fault.text}`" if fault.text else ""
        raise UsageError(
            f"{fault.file}:{fault.line}: {fault.says}{text}; Python {python.version} cannot run"
            " this script.",
            "Correct the line first.",
        )
    return found


def _imports(
    request: DiagnoseRequest, python: Interpreter, found: script.Script | None
) -> tuple[str, ...]:
    """Those asked for; else those of the script, with the optional ones that are installed; else
    torch and the usual stack.
    """
    if request.imports is not None:
        return request.imports
    if found is not None and not found.reason:
        there = interpreter.installed(python.path, found.optional) if found.optional else ()
        names = tuple(dict.fromkeys((*found.imports, *there)))
        if names:
            return names
    return tuple(
        name
        for name in interpreter.USUAL_STACK
        if name in python.installed and (name != "torch" or python.torch)
    )


def _deadlines(settings: Settings, specs: Sequence[ProbeSpec]) -> dict[str, float]:
    known = {spec.name for spec in specs}
    for name in settings.rung_timeouts_s:
        if name not in known:
            raise UsageError(
                f"The settings give a timeout for {name}, which is not a rung.",
                f"There are: {', '.join(sorted(known))}.",
            )
    return dict(settings.rung_timeouts_s)


def _with_interpreter_first(environ: Mapping[str, str], python: Interpreter) -> dict[str, str]:
    """With --python, its folder comes first on the PATH, so that `torchrun` and `python` in the
    command are those of that environment.
    """
    folder = os.path.dirname(python.path)
    if python.chosen_by != "--python" or re.fullmatch(r"/(usr/)?(local/)?bin", folder):
        return dict(environ)
    return {
        **environ,
        "PATH": os.pathsep.join([folder, environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")]),
    }
