"""A node on which the environment's Python cannot start is left out; where it starts nowhere no
node is to blame.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.test_ready_nodes import ready
from tests.conftest import ROOT

LIBRARIES = f"export PYTHONPATH={ROOT}:{Path(pytest.__file__).parents[1]}"


def an_interpreter(folder: Path) -> Path:
    """One of its own, which can be covered without touching that of the tests."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--copies", str(folder / "own")], check=True
    )
    return folder / "own" / "bin" / "python"


@contextmanager
def covered(cluster: Cluster, python: Path, content: bytes, *hosts: int) -> Iterator[None]:
    """On these hosts something else lies where the interpreter is."""
    cover = python.with_name("cover")
    cover.write_bytes(content)
    cover.chmod(0o755)
    try:
        for host in hosts:
            done = cluster[host].run("mount", "--bind", str(cover), str(python))
            assert done.returncode == 0, done.stderr
        yield
    finally:
        for host in hosts:
            cluster[host].run("umount", str(python))


@pytest.mark.root
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"#!/no/such/interpreter\n", id="missing"),
        pytest.param(b"\x7fELF\x02\x01\x01" + bytes(57), id="other-machine"),
        pytest.param(
            b"#!/bin/sh\necho 'python: error while loading shared libraries: libx.so.1: cannot open"
            b" shared object file' >&2\nexit 127\n",
            id="library",
        ),
    ],
)
def test_a_node_where_python_cannot_start_is_left_out(
    content: bytes, cluster: Cluster, tmp_path: Path
) -> None:
    python = an_interpreter(tmp_path)
    with covered(cluster, python, content, 3):
        code, report, said = ready(
            cluster, tmp_path / "ill", before=LIBRARIES, more="--timeout 30", python=str(python)
        )
    assert (code, report["readiness"]["exclude"]) == (10, ["node3"]), said
    assert (tmp_path / "ill" / "bad").read_text(encoding="ascii") == "node3\n"


@pytest.mark.root
@pytest.mark.soak
def test_a_node_without_the_jobs_python_is_left_out_although_the_tool_starts_there(
    cluster: Cluster, tmp_path: Path
) -> None:
    python = an_interpreter(tmp_path)
    with covered(cluster, python, b"#!/no/such/interpreter\n", 3):
        code, report, said = ready(
            cluster, tmp_path / "ill", before=LIBRARIES, more=f"--timeout 30 --python {python}"
        )
    assert (code, report["readiness"]["exclude"]) == (10, ["node3"]), said
    assert report["causes"][0]["id"] == "import-failure", said


@pytest.mark.root
def test_a_node_without_a_module_of_the_script_is_left_out(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The script is not run."""
    folder = tmp_path / "modules" / "only_here"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    script, empty = tmp_path / "train.py", tmp_path / "empty"
    script.write_text(f"import only_here\nopen({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    empty.mkdir()
    before = f"{LIBRARIES}:{folder.parent}"
    cluster[2].run("mount", "--bind", str(empty), str(folder.parent))
    try:
        more = f"--timeout 45 --script {script} --python {sys.executable}"
        code, report, said = ready(cluster, tmp_path / "ill", before=before, more=more)
    finally:
        cluster[2].run("umount", str(folder.parent))
    assert (code, report["readiness"]["exclude"]) == (10, ["node2"]), said
    assert "does not find only_here, which train.py imports" in " ".join(said.split())
    assert not (tmp_path / "ran").exists()
