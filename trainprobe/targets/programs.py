"""What a process is by its command line: launcher, wrapper, tool, compiler or script."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.system.own_programs import folder_of_probes
from trainprobe.targets.process_table import PYTHON

SPAWNED = re.compile(r"multiprocess(?:ing)?\.spawn import spawn_main")
# What takes over the children of a process that has ended.
ADOPTERS = frozenset(
    """
    systemd init tini dumb-init docker-init catatonit containerd-shim conmon s6-svscan launchd
    """.split()
)
FORKED_BY_SERVER = re.compile(r"multiprocess(?:ing)?\.forkserver import main")
TRACKER = re.compile(r"multiprocess(?:ing)?\.resource_tracker import main")
PIPE_HANDLE = re.compile(r"pipe_handle=(\d{1,9})\b")

# Module or basename of the program → kind of launcher.
LAUNCHERS = {
    "torchrun": "torchrun",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "torch.distributed.elastic.multiprocessing": "torchrun",
    "ft_launcher": "torchrun",
    "nvidia_resiliency_ext.fault_tolerance.launcher": "torchrun",
    "torchtune": "torchrun",
    "tune": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed": "deepspeed",
    "ds": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
    "deepspeed.launcher.runner": "deepspeed",
    "colossalai": "torchrun",
    "composer": "torchrun",
    "composer.cli.launcher": "torchrun",
    "mpirun": "mpirun",
    "mpiexec": "mpirun",
    "mpiexec.hydra": "mpirun",
    "orterun": "mpirun",
    "prterun": "mpirun",
    "orted": "mpirun",
    "prted": "mpirun",
    "hydra_pmi_proxy": "mpirun",
    "horovodrun": "mpirun",
    "slurmstepd": "slurm",
    "raylet": "ray",
}
NOT_PYTHON = frozenset(
    """
    mpirun mpiexec mpiexec.hydra orterun prterun orted prted hydra_pmi_proxy slurmstepd raylet
    """.split()
)
COMPILERS = frozenset(
    """
    nvcc cicc ptxas fatbinary nvlink cudafe++ cc1 cc1plus gcc g++ cc c++ clang clang++ clang-cpp
    collect2 ld lld ld.lld as ninja cmake make hipcc ld.gold
    """.split()
)
COMPILE_WORKER = re.compile(r"_inductor[/.]compile_worker|torch[/.]_inductor.*compile_worker")
# Python programs that are no training, even where they have torch in memory.
TOOLS = frozenset(
    """
    pytest py.test _pytest pip pip3 uv conda mamba jupyter jupyter-lab jupyter-notebook
    jupyter-server jupyterlab jupyterhub jupyterhub-singleuser notebook tensorboard black ruff
    mypy dmypy pylsp pyright jedi-language-server ipython ipython3 trainprobe py-spy nvitop
    gpustat glances supervisord ansible http.server venv virtualenv pre-commit sphinx-build
    mkdocs lint-imports twine build tox nox poetry pdm hatch coverage cProfile pydoc wandb
    mlflow collect_env torch.utils.collect_env torch.utils.bottleneck huggingface-cli hf
    unattended-upgrades networkd-dispatcher
    """.split()
)
SHELLS = frozenset(
    """
    sh bash dash zsh fish ksh csh tcsh tmux screen sshd login su sudo systemd init
    """.split()
)
# Modules and programs that run the script named behind them in their own process or as a child.
RUNS_ANOTHER = frozenset(
    """
    debugpy pdb cProfile profile trace coverage kernprof line_profiler memory_profiler scalene
    viztracer
    """.split()
)
_OUR_CODE = ("from trainprobe.cli import main", "trainprobe: the bundle did not come whole")
# The worker of pytest-xdist, which execnet starts.
_TEST_WORKER = "import sys;exec(eval(sys.stdin.readline()))"
PYTHON_OPTIONS_WITH_WORD = frozenset({"-W", "-X", "--check-hash-based-pycs"})


@dataclass(frozen=True)
class Program:
    """A Python command: `kind` is script, module, code, stdin or ""; `rest` its arguments."""

    kind: str = ""
    name: str = ""
    rest: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The name without folder, or the module's full name."""
        return os.path.basename(self.name) if self.kind == "script" else self.name


def program_of(argv: Sequence[str]) -> Program:
    """Return what `argv` runs, behind a debugger or profiler started with `-m`."""
    if not argv:
        return Program()
    if PYTHON.fullmatch(os.path.basename(argv[0].removeprefix("-"))) is None:
        return (
            Program("script", argv[0], tuple(argv[1:]))
            if argv[0].endswith(".py")
            else Program("", argv[0], tuple(argv[1:]))
        )
    place = 1
    while place < len(argv):
        word = argv[place]
        if word == "-m" and place + 1 < len(argv):
            return _behind(Program("module", argv[place + 1], tuple(argv[place + 2 :])))
        if word.startswith("-m") and len(word) > 2 and not word.startswith("--"):
            return _behind(Program("module", word[2:], tuple(argv[place + 1 :])))
        if word == "-c":
            return Program(
                "code", argv[place + 1] if place + 1 < len(argv) else "", tuple(argv[place + 2 :])
            )
        if word == "-":
            return Program("stdin", "-", tuple(argv[place + 1 :]))
        if not word.startswith("-"):
            return _behind(Program("script", word, tuple(argv[place + 1 :])))
        if re.fullmatch(r"-[a-zA-Z]*[cm]", word) and place + 1 < len(argv):  # -um module, -Ic code
            kind = "module" if word.endswith("m") else "code"
            return _behind(Program(kind, argv[place + 1], tuple(argv[place + 2 :])))
        place += 2 if word in PYTHON_OPTIONS_WITH_WORD else 1
    return Program("stdin")


def _behind(program: Program) -> Program:
    """`python -m debugpy --listen 5678 train.py --lr 1` runs train.py."""
    if program.base not in RUNS_ANOTHER:
        return program
    for place, word in enumerate(program.rest):
        if word == "-m" and place + 1 < len(program.rest):
            return Program("module", program.rest[place + 1], program.rest[place + 2 :])
        if word.endswith(".py") and not word.startswith("-"):
            return Program("script", word, program.rest[place + 1 :])
    return program


def launcher_kind(argv: Sequence[str]) -> str:
    """Return torchrun, accelerate, deepspeed, mpirun, slurm or ray, else ""."""
    if not argv:
        return ""
    base = os.path.basename(argv[0]).rstrip(":")
    if base in NOT_PYTHON:
        return LAUNCHERS[base]
    program = program_of(argv)
    if program.kind not in ("script", "module"):
        return ""
    if program.base == "accelerate":
        return "accelerate" if "launch" in program.rest[:1] else ""
    if program.base in ("tune", "colossalai") and "run" not in program.rest[:1]:
        return ""
    return LAUNCHERS.get(program.base, "")


def is_tool(argv: Sequence[str]) -> bool:
    """Whether it is a tool (test runner, notebook server, installer …) and no training."""
    program = program_of(argv)
    if program.kind == "code" and program.name == _TEST_WORKER:
        return True
    first = program.base.split(".")[0]
    return program.base in TOOLS or first in TOOLS or is_ours(argv)


def is_ours(argv: Sequence[str]) -> bool:
    """Whether it is this tool, also as sent by another node, or a program or probe of it."""
    program = program_of(argv)
    if program.kind == "code":
        return any(text in program.name for text in _OUR_CODE)
    return "trainprobe" in program.name.split("/")[-3:] or (
        program.kind == "script" and program.name.startswith(f"{folder_of_probes()}/")
    )


def is_compiler(argv: Sequence[str], name: str) -> bool:
    """A compiler, or a worker of torch.compile's pool; by `name` without a command."""
    base = os.path.basename(argv[0]) if argv else name
    plain = re.sub(r"^(?:x86_64|aarch64)-linux-gnu-|-\d+(?:\.\d+)*$", "", base)
    return plain in COMPILERS or is_compile_worker(argv)


def is_helper(argv: Sequence[str]) -> bool:
    """A process of Python's own machinery that is nobody's worker."""
    return _any_word(TRACKER, argv)


def is_spawned(argv: Sequence[str]) -> bool:
    """Whether Python's multiprocessing spawned it."""
    return _any_word(SPAWNED, argv)


def is_forked_by_server(argv: Sequence[str]) -> bool:
    """Whether it is multiprocessing's fork server, or forked by that."""
    return _any_word(FORKED_BY_SERVER, argv)


def is_compile_worker(argv: Sequence[str]) -> bool:
    return _any_word(COMPILE_WORKER, argv)


def _any_word(pattern: re.Pattern[str], argv: Sequence[str]) -> bool:
    return any(pattern.search(word) for word in argv[:8])


def option(arguments: Sequence[str], *names: str) -> str:
    """Return the value of the last `--name V`, `--name=V` or `-n V` among `words`, with `-` and `_`
    alike; empty where there is none.

    Names are given without dashes; those of one letter are short options.
    """
    wanted = {("-" if len(name) == 1 else "--") + name.replace("_", "-") for name in names}
    found = ""
    for place, word in enumerate(arguments):
        if not word.startswith("-"):
            continue
        head, equals, value = word.partition("=")
        if head.replace("_", "-") not in wanted and "-" + head.replace("_", "-") not in wanted:
            continue
        if equals:
            found = value
        elif place + 1 < len(arguments) and not arguments[place + 1].startswith("--"):
            found = arguments[place + 1]
    return found


def whole(text: str) -> int | None:
    """Return the number that `text` is, None for anything else (`auto`, `1:4`, an empty string)."""
    return int(text) if text.isdecimal() and len(text) < 10 else None
