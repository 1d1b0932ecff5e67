from __future__ import annotations

import fcntl
import runpy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeCgroup
from tests.probes.conftest import PROBES, ProbeRun, RunProbe


def told(done: ProbeRun, **labels: object) -> list[Mapping[str, Any]]:
    return [
        one
        for one in done.events
        if one.get("name") == "import"
        and all(one.get(key) == value for key, value in labels.items())
    ]


@pytest.fixture
def modules(tmp_path: Path) -> Callable[..., Mapping[str, str]]:
    def make(**sources: str) -> Mapping[str, str]:
        folder = tmp_path / "modules"
        folder.mkdir()
        for name, source in sources.items():
            (folder / f"{name}.py").write_text(source)
        return {"PYTHONPATH": str(folder)}

    return make


Modules = Callable[..., Mapping[str, str]]


def test_imports_that_work_are_measured_alone_and_together(
    run_probe: RunProbe, modules: Modules
) -> None:
    env = modules(heavy="block = b'x' * (30 * 2**20)\n", light="")
    done = run_probe("import_memory", "--imports", "heavy,light", "--nproc", "2", env=env)
    assert (done.exit_code, done.answer) == (0, "yes"), done.output
    heavy, light = told(done, how="alone")
    assert heavy["growth_bytes"] > 25 * 2**20 > light["growth_bytes"]
    assert heavy["touched_cuda"] is False
    assert heavy["threads"] == 1
    together = told(done, how="together")
    assert [one["rank"] for one in together] == [0, 1]
    assert {one["module"] for one in together} == {"heavy,light"}
    (rss,) = done.of("measure", name="imports_together_rss")
    assert rss["value"] > 60 * 2**20
    assert rss["threshold"] > rss["value"]


def test_an_import_that_hangs_has_a_name_and_a_line(run_probe: RunProbe, modules: Modules) -> None:
    env = modules(
        inner="import time\ndef nap():\n    time.sleep(60)\nnap()\n",
        outer="import inner\n",
        fine="",
    )
    done = run_probe("import_memory", "--imports", "outer,fine", "--timeout-s", "1", env=env)
    assert done.answer == "no"
    (hung,) = told(done, module="outer")
    assert hung["outcome"] == "timed_out"
    assert hung["signal"] is None
    assert hung["last_frame"].endswith("inner.py:3 in nap")
    assert [frame["function"] for frame in hung["frames"]] == ["<module>", "<module>", "nap"]
    assert [one["outcome"] for one in told(done, module="fine")] == ["passed"]


@pytest.mark.parametrize(
    ("source", "outcome", "kind"),
    [
        ("import no_such_module\n", "failed", "ModuleNotFoundError"),
        ("raise ValueError('bad build')\n", "failed", "ValueError"),
        ("x = (\n", "failed", "SyntaxError"),
        ("import sys\nsys.exit(0)\n", "failed", "SystemExit"),
        ("raise MemoryError\n", "failed", "MemoryError"),
    ],
)
def test_an_import_that_raises(
    source: str, outcome: str, kind: str, run_probe: RunProbe, modules: Modules
) -> None:
    done = run_probe("import_memory", "--imports", "broken", env=modules(broken=source))
    (one,) = told(done)
    assert (one["event"], one["outcome"], one["error_type"]) == ("fail", outcome, kind)


def test_an_import_that_crashes_or_leaves(run_probe: RunProbe, modules: Modules) -> None:
    env = modules(
        null="import ctypes\nctypes.string_at(0)\n",
        leaves="import os\nos._exit(0)\n",
        aborts=(
            "import os, sys\nsys.stderr.write('std::bad_alloc')\nsys.stderr.flush()\nos.abort()\n"
        ),
    )
    done = run_probe("import_memory", "--imports", "null,leaves,aborts", env=env)
    null, leaves, aborts = told(done)
    assert (null["outcome"], null["signal"], null["frames"][0]["line"]) == ("crashed", 11, 2)
    assert (leaves["outcome"], leaves["signal"], leaves["exit_code"]) == ("crashed", None, 0)
    assert (aborts["outcome"], aborts["signal"]) == ("crashed", 6)
    assert "std::bad_alloc" in aborts["error"]


def test_imports_that_fit_once_but_not_for_every_rank(
    run_probe: RunProbe, modules: Modules, memory_cgroup: MakeCgroup
) -> None:
    folder = memory_cgroup(220 * 2**20)
    env = modules(heavy="block = bytearray(b'x') * (80 * 2**20)\n")
    done = run_probe(
        "import_memory",
        "--imports",
        "heavy",
        "--nproc",
        "4",
        env=env,
        shell=f'echo $$ > "{folder}/cgroup.procs"',
    )
    assert done.answer == "no", done.output
    assert [one["outcome"] for one in told(done, how="alone")] == ["passed"]
    killed = told(done, how="together", outcome="oom_killed")
    assert killed
    assert all(one["cgroup_oom_rise"] >= 1 and one["module"] == "heavy" for one in killed)


@pytest.mark.parametrize("names", ["", " , ", "os;print(1)", "a b", "1a"])
def test_no_module_names(names: str, run_probe: RunProbe) -> None:
    assert (
        run_probe("import_memory", "--imports", names, env={"TRAINPROBE_IMPORTS": ""}).answer
        == "cannot"
    )


def test_more_ranks_are_planned_than_fit(
    run_probe: RunProbe, modules: Modules, memory_cgroup: MakeCgroup
) -> None:
    folder = memory_cgroup(300 * 2**20)
    env = {
        **modules(heavy="block = bytearray(b'x') * (80 * 2**20)\ndel block\n", light=""),
        "TRAINPROBE_PLANNED_RANKS": "8",
    }
    done = run_probe(
        "import_memory",
        "--imports",
        "light,heavy",
        "--nproc",
        "2",
        env=env,
        shell=f'echo $$ > "{folder}/cgroup.procs"',
    )
    assert done.answer == "no", done.output
    assert {one["outcome"] for one in told(done)} == {"passed"}
    (ahead,) = done.of("fail", name="import.foreseen")
    assert (ahead["ranks"], ahead["limit_bytes"]) == (8, 300 * 2**20)
    assert (
        80 * 2**20 < ahead["each_bytes"] < 110 * 2**20
    )  # the peak counts, though it is freed again
    fits = run_probe(
        "import_memory",
        "--imports",
        "light,heavy",
        "--nproc",
        "2",
        "--planned",
        "3",
        env=env,
        shell=f'echo $$ > "{folder}/cgroup.procs"',
    )
    assert fits.answer == "yes", fits.output


def test_the_module_that_starts_threads_is_named(run_probe: RunProbe, modules: Modules) -> None:
    inner = (
        "import threading, time\nfor _ in range(3):\n    threading.Thread(target=time.sleep,"
        " args=(99,), daemon=True).start()\n"
    )
    done = run_probe(
        "import_memory",
        "--imports",
        "outer,fine",
        env=modules(outer="import inner\n", inner=inner, fine=""),
    )
    assert done.answer == "yes"
    (check,) = done.of("note", check="fork.threads_at_import")
    assert (check["status"], check["module"], check["by"], check["count"]) == (
        "warn",
        "outer",
        "inner",
        3,
    )


def test_waits_for_locks_are_counted(run_probe: RunProbe, modules: Modules, tmp_path: Path) -> None:
    lock = tmp_path / "the.lock"
    source = (
        f"import fcntl, time\nfile = open({str(lock)!r}, 'w')\nfcntl.flock(file,"
        " fcntl.LOCK_EX)\ntime.sleep(0.4)\nfcntl.flock(file, fcntl.LOCK_UN)\n"
    )
    done = run_probe(
        "import_memory", "--imports", "guarded", "--nproc", "3", env=modules(guarded=source)
    )
    assert done.answer == "yes", done.output
    (alone,) = told(done, how="alone")
    assert alone["lock_wait_s"] == 0.0
    waited = sorted(one["lock_wait_s"] for one in told(done, how="together"))
    assert waited[0] < 0.3 < waited[1] < waited[2]
    assert {path for one in told(done, how="together") for path in one["lock_paths"]} == {str(lock)}
    (most,) = done.of("measure", name="import.lock_wait_s")
    assert most["value"] == waited[2]


def test_a_lock_that_never_comes_is_named(
    run_probe: RunProbe, modules: Modules, tmp_path: Path
) -> None:
    lock = tmp_path / "held.lock"
    env = modules(
        guarded=f"import fcntl\nfile = open({str(lock)!r}, 'w')\nfcntl.flock(file, fcntl.LOCK_EX)\n"
    )
    with lock.open("w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        done = run_probe("import_memory", "--imports", "guarded", "--timeout-s", "1", env=env)
    (one,) = told(done)
    assert (one["outcome"], one["lock_paths"]) == ("timed_out", [str(lock)])


def test_compilers_that_an_import_starts_are_seen(
    run_probe: RunProbe, modules: Modules, tmp_path: Path
) -> None:
    compiler = tmp_path / "cc1plus"
    compiler.write_text(
        f"#!{sys.executable}\nimport time\nblock = b'x' * (40 * 2**20)\ntime.sleep(0.6)\n"
    )
    compiler.chmod(0o700)
    source = (
        f"import subprocess\nfor child in [subprocess.Popen([{str(compiler)!r}]) for _ in"
        " range(2)]:\n    child.wait()\n"
    )
    done = run_probe("import_memory", "--imports", "builds", env=modules(builds=source))
    (one,) = told(done)
    assert one["compilers"] == 2, one
    assert one["build_bytes"] > 70 * 2**20
    assert one["programs"] == {"cc1plus": 2}


GUARDED = """
import light
import trainprobe
with trainprobe.import_lock():
    import heavy
"""


def test_what_the_script_imports_under_a_lock_is_imported_so_here(
    run_probe: RunProbe, modules: Modules, memory_cgroup: MakeCgroup, tmp_path: Path
) -> None:
    folder = memory_cgroup(260 * 2**20)
    env = modules(
        heavy="import time\nblock = bytearray(b'x') * (90 * 2**20)\ntime.sleep(0.2)\ndel block\n",
        light="",
    )
    script = tmp_path / "fit.py"
    script.write_text(GUARDED)
    shell = f'echo $$ > "{folder}/cgroup.procs"'
    cured = run_probe(
        "import_memory",
        "--imports",
        "light,heavy",
        "--nproc",
        "4",
        "--planned",
        "8",
        "--script",
        str(script),
        env=env,
        shell=shell,
    )
    assert cured.answer == "yes", cured.output
    assert {tuple(one["guarded"]) for one in told(cured, how="together")} == {("heavy",)}
    script.write_text("import light\nimport heavy\n")
    ill = run_probe(
        "import_memory",
        "--imports",
        "light,heavy",
        "--nproc",
        "4",
        "--script",
        str(script),
        env=env,
        shell=shell,
    )
    assert ill.answer == "no"
    assert told(ill, how="together", outcome="oom_killed")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (GUARDED, {"heavy": 1}),
        (
            (
                "from trainprobe import import_lock\nwith import_lock(slots=3):\n    from"
                " heavy.part import it\n"
            ),
            {"heavy": 3},
        ),
        ("@import_lock()\ndef load():\n    import heavy\n", {"heavy": 1}),
        ("with filelock.FileLock('/x'):\n    import a, b.c\nimport a\n", {"b": 1}),
        ("with threading.Lock():\n    import heavy\n", {}),
        ("with open('x'):\n    import heavy\n", {}),
        ("with (\n", {}),
    ],
)
def test_locks_around_imports_are_read_from_the_script(
    source: str, found: Mapping[str, int], tmp_path: Path
) -> None:
    script = tmp_path / "fit.py"
    script.write_text(source)
    assert (
        runpy.run_path(str(PROBES / "_import_memory" / "import_locks.py"))["guarded"](str(script))
        == found
    )


def test_what_lies_beside_the_script_is_imported_and_not_blamed_for_what_it_lacks(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    script = tmp_path / "fit.py"
    script.write_text(
        "import json\nimport near, needy\nif __name__ == '__main__':\n    import never\n"
    )
    (tmp_path / "near.py").write_text("block = b'x' * (30 * 2**20)\n")
    (tmp_path / "needy.py").write_text("import os\nrank = os.environ['THE_RANK']\n")
    (tmp_path / "never.py").write_text("raise SystemExit\n")
    done = run_probe("import_memory", "--imports", "json", "--nproc", "2", "--script", str(script))
    assert done.answer == "yes", done.output
    assert [(one["module"], one["outcome"]) for one in told(done, how="alone")] == [
        ("json", "passed"),
        ("near", "passed"),
        ("needy", "not_measured"),
    ]
    assert {one["module"] for one in told(done, how="together")} == {"json,near"}
