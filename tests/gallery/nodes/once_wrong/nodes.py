"""Nodes that cannot start what the others can, at which `trainprobe ready` looks."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.hosts import Host
from tests.gallery.nodes.once_wrong.situation import (
    Look,
    Seen,
    Situation,
    called,
    ends,
    leaves_out,
    users,
    with_report,
)
from tests.gallery.nodes.stand import Stand
from tests.gallery.nodes.ways import ROOT

LIBRARIES = sysconfig.get_path("purelib")
STEPD = "/usr/sbin/slurmstepd"
NO_PROGRAM = "#!/no/such/interpreter\n"


def ready(stand: Stand, *words: str, python: str = sys.executable, **more: str) -> Look:
    """`trainprobe ready --quick WORDS` in an allocation of all nodes, made from a login node."""
    env = {**users(stand), **more}

    def look(folder: Path) -> Seen:
        typed = (python, "-m", "trainprobe", "ready", "--quick", *words, *with_report(folder))
        return called(["salloc", "--quiet", "--nodes=4", *typed], folder, env)

    return look


@contextlib.contextmanager
def covered(host: Host, file: Path, by: Path) -> Iterator[None]:
    """On this host something else lies there."""
    done = host.run("mount", "--bind", str(by), str(file))
    if done.returncode != 0:
        raise RuntimeError(f"{file} could not be covered: {done.stderr.strip()}")
    try:
        yield
    finally:
        host.run("umount", str(file))


def broken_program(folder: Path) -> Path:
    file = folder / "broken"
    file.write_text(NO_PROGRAM, encoding="utf-8")
    file.chmod(0o755)
    return file


@contextlib.contextmanager
def no_step(stand: Stand, folder: Path) -> Iterator[Look]:
    with covered(stand["node3"], Path(STEPD), broken_program(folder)):
        yield ready(stand)


@contextlib.contextmanager
def no_python(stand: Stand, folder: Path) -> Iterator[Look]:
    """The environment's Python is there on all nodes but one."""
    own = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--copies", own], check=True)
    python = own / "bin" / "python"
    with covered(stand["node3"], python, broken_program(folder)):
        yield ready(stand, python=str(python), PYTHONPATH=f"{ROOT}:{LIBRARIES}")


@contextlib.contextmanager
def no_module(stand: Stand, folder: Path) -> Iterator[Look]:
    modules = folder / "modules"
    (modules / "tokens").mkdir(parents=True)
    (modules / "tokens" / "__init__.py").touch()
    (folder / "empty").mkdir()
    script = folder / "train.py"
    script.write_text("import tokens\nraise SystemExit(1)\n", encoding="utf-8")
    with covered(stand["node2"], modules, folder / "empty"):
        path = f"{ROOT}:{LIBRARIES}:{modules}"
        yield ready(stand, "--script", str(script), "--python", sys.executable, PYTHONPATH=path)


@contextlib.contextmanager
def _library(stand: Stand, folder: Path, elsewhere: str) -> Iterator[Look]:
    """A module of the script needs a library that the variable leads to; on node4 the variable
    leads to this folder instead.
    """
    own = folder / "lib"
    own.mkdir()
    (folder / "fast.c").write_text("int fast(void) { return 1; }\n", encoding="ascii")
    (folder / "kernels.c").write_text(
        "#include <Python.h>\nint fast(void);\n"
        'static struct PyModuleDef m = {PyModuleDef_HEAD_INIT, "kernels", 0, -1, 0};\n'
        "PyMODINIT_FUNC PyInit_kernels(void) { fast(); return PyModule_Create(&m); }\n",
        encoding="ascii",
    )
    include = sysconfig.get_path("include")
    for argv in (
        ["fast.c", "-o", "lib/libfast.so"],
        ["kernels.c", "-I", include, "-Llib", "-lfast", "-o", "kernels.so"],
    ):
        subprocess.run(["gcc", "-shared", "-fPIC", *argv], cwd=folder, check=True)
    script = folder / "train.py"
    script.write_text("import kernels\nraise SystemExit(1)\n", encoding="utf-8")
    path = f"{ROOT}:{LIBRARIES}:{folder}"
    given = {"PYTHONPATH": path, "LD_LIBRARY_PATH": str(own)}
    stand.restart(stand["node4"], LD_LIBRARY_PATH=elsewhere or str(own))
    try:
        yield ready(stand, "--script", str(script), "--python", sys.executable, **given)
    finally:
        stand.restart(stand["node4"])


@contextlib.contextmanager
def no_library(stand: Stand, folder: Path) -> Iterator[Look]:
    with _library(stand, folder, "/opt/elsewhere/lib") as look:
        yield look


@contextlib.contextmanager
def same_library(stand: Stand, folder: Path) -> Iterator[Look]:
    """The healthy twin: the variable is set on all nodes alike."""
    with _library(stand, folder, "") as look:
        yield look


NODES = (
    Situation(
        "srun cannot launch",
        "`ready`: srun cannot launch on a node (slurmstepd does not start)",
        "node named, but exit 3 and not excluded: the published job.sbatch starts anyway",
        "exit 10, node3 left out",
        no_step,
        leaves_out("node3"),
    ),
    Situation(
        "no Python",
        "`ready`: the environment's Python is missing on a node",
        "node named, but exit 3 and not excluded",
        "exit 10, node3 left out",
        no_python,
        leaves_out("node3"),
    ),
    Situation(
        "no module",
        "`ready --script`: module missing on a node",
        "exit 0, missed",
        "exit 10, node2 left out, the module named",
        no_module,
        leaves_out("node2", words=("tokens",)),
    ),
    Situation(
        "LD_LIBRARY_PATH differs",
        "`ready --script`: LD_LIBRARY_PATH differs, so that a library is not found",
        "exit 0, missed",
        "exit 10, node4 left out, the variable named",
        no_library,
        leaves_out("node4", words=("LD_LIBRARY_PATH",)),
    ),
    Situation(
        "LD_LIBRARY_PATH alike",
        "the healthy twin: the same script, LD_LIBRARY_PATH alike",
        "not in the list of that day",
        "exit 0, no node left out",
        same_library,
        ends(0, words=("HEALTHY",), never=("leave out",)),
    ),
)
