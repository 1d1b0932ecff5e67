"""What a command line alone says."""

from __future__ import annotations

import pytest

from trainprobe.nodes.bundle import Bundle, carrying
from trainprobe.nodes.transports import here_way, ours
from trainprobe.system.own_programs import folder_of_probes
from trainprobe.targets.numbers import Shape, places, shape_of
from trainprobe.targets.programs import is_compiler, is_tool, launcher_kind, option, program_of


@pytest.mark.parametrize(
    ("command", "kind", "name", "rest"),
    [
        ("python -u -W ignore train.py --lr 1", "script", "train.py", ("--lr", "1")),
        ("/env/bin/python3.12 -um pkg.train x", "module", "pkg.train", ("x",)),
        (
            "python -X faulthandler -m debugpy --listen 5678 train.py -v",
            "script",
            "train.py",
            ("-v",),
        ),
        ("python -m cProfile -o out -m pkg.train 1", "module", "pkg.train", ("1",)),
        ("python -c pass train.py", "code", "pass", ("train.py",)),
        ("python -", "stdin", "-", ()),
        ("python", "stdin", "", ()),
        ("./train.py --x", "script", "./train.py", ("--x",)),
        ("bash run.sh", "", "bash", ("run.sh",)),
    ],
)
def test_the_program_of_a_command_line(
    command: str, kind: str, name: str, rest: tuple[str, ...]
) -> None:
    program = program_of(command.split())

    assert (program.kind, program.name, program.rest) == (kind, name, rest)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("python /env/bin/torchrun train.py", "torchrun"),
        ("python -m torch.distributed.launch train.py", "torchrun"),
        ("python /env/bin/accelerate launch train.py", "accelerate"),
        ("python /env/bin/accelerate config", ""),
        ("python -m accelerate.commands.launch train.py", "accelerate"),
        ("/opt/openmpi/bin/mpirun -np 2 python train.py", "mpirun"),
        ("python train.py --launcher torchrun", ""),
        ("vim torchrun", ""),
    ],
)
def test_launchers(command: str, kind: str) -> None:
    assert launcher_kind(command.split()) == kind


@pytest.mark.parametrize(
    "command",
    [
        "python -m pytest -x",
        "python /env/bin/jupyter-lab",
        "python -m trainprobe attach 1",
        "python /work/trainprobe/system/keeper_process.py",
    ],
)
def test_tools(command: str) -> None:
    assert is_tool(command.split())
    assert not is_tool(["python", "train.py", *command.split()])


def test_a_worker_of_pytest_xdist_is_a_tool() -> None:
    assert is_tool(["python", "-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"])
    assert not is_tool(["python", "-u", "-c", "import train; train.main()"])


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(ours("ready", "--hosts", "node1"), id="on another node"),
        pytest.param(
            carrying(here_way("node1"), Bundle(b"")).node("node1", ("look-here",)).argv,
            id="sent along",
        ),
        pytest.param(("python", "-I", "-S", f"{folder_of_probes()}/ready_gemm.py"), id="a probe"),
    ],
)
def test_this_tool_is_a_tool_however_it_was_started(argv: tuple[str, ...]) -> None:
    assert is_tool(["python", *argv[1:]])


def test_code_that_uses_the_heartbeat_is_no_tool() -> None:
    assert not is_tool(
        ["python", "-c", "import trainprobe, train; train.main(trainprobe.heartbeat)"]
    )


def test_compilers() -> None:
    assert is_compiler(["/usr/bin/x86_64-linux-gnu-g++-12"], "g++-12")
    assert is_compiler([], "cc1plus")
    assert not is_compiler(["python", "gcc.py"], "python")


@pytest.mark.parametrize(
    "words",
    [
        ["--nproc_per_node=2"],
        ["--nproc-per-node", "2"],
        ["--nproc-per-node", "1", "--nproc_per_node", "2"],
    ],
)
def test_options_with_either_dash_and_the_last_one_counts(words: list[str]) -> None:
    assert option(words, "nproc-per-node") == "2"
    assert option([*words, "--nproc"], "nnodes") == ""


@pytest.mark.parametrize(
    ("kind", "command", "env", "shape"),
    [
        (
            "torchrun",
            "torchrun --nproc-per-node=4 --nnodes=2 --node-rank=1 t.py",
            {},
            Shape(4, 2, 1),
        ),
        ("torchrun", "torchrun t.py", {"PET_NPROC_PER_NODE": "8"}, Shape(8, 1, 0)),
        (
            "torchrun",
            "torchrun --nproc-per-node gpu --nnodes 1:4 t.py",
            {},
            Shape(None, None, None),
        ),
        (
            "accelerate",
            "accelerate launch --num_processes 8 --num_machines 2 --machine_rank 1 t.py",
            {},
            Shape(4, 2, 1, 8),
        ),
        ("deepspeed", "deepspeed --num_gpus 4 t.py", {}, Shape(4, 1, 0)),
        ("deepspeed", "launch --world_info=!! t.py", {}, Shape(None, 1, 0)),
        ("mpirun", "mpirun -np 4 python t.py", {}, Shape(total=4)),
    ],
)
def test_the_shape_that_a_launcher_was_asked_for(
    kind: str, command: str, env: dict[str, str], shape: Shape
) -> None:
    assert shape_of(kind, command.split(), env) == shape


@pytest.mark.parametrize(
    ("handles", "at"),
    [
        ((6, 8, 11, 13), (0, 1, 2, 3)),
        ((6, 11, 13), (0, 2, 3)),
        ((6, 8, 20), None),
        ((6, 11), None),
        ((6,), (0,)),
        ((6, 12, 18), (0, 1, 2)),
        ((8, 6), (0, 1)),
    ],
)
def test_the_places_of_spawned_children(
    handles: tuple[int, ...], at: tuple[int, ...] | None
) -> None:
    assert places([f"spawn_main(tracker_fd=4, pipe_handle={handle})" for handle in handles]) == at
