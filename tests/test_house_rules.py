"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, RunTool

TOOL = sorted((ROOT / "trainprobe").rglob("*.py"))
PROBES = sorted((ROOT / "probes").rglob("*.py"))
OLD_SYNTAX = (
    "collect",
    "system",
    "model",
    "import_lock",
    "case.py",
    "redact.py",
    "regular_files.py",
    "saved_case.py",
    "secret_forms.py",
    "errors.py",
    "__init__.py",
)
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
# Modules that belong to the job's own Python are imported inside the phase that needs them; this is what a probe may name.
ROUND_TRIPS = {ROOT / "probes" / "_dataset" / "checks.py"}
# Its unpickler finds no class, and runs in a child with limits; test_dump_files.py tries what it refuses.
PLAIN_UNPICKLER = ROOT / "trainprobe" / "collect" / "dump_files_child.py"
PROBE_MODULES = {"torch", "_backend", "_emit", "_given", "_memory"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every imported module with its line; relative imports keep their dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", TOOL, ids=name_of)
def test_the_tool_imports_no_torch(path: Path) -> None:
    assert [line for line, module in imported(tree_of(path)) if module.split(".")[0] == "torch"] == []


@pytest.mark.parametrize("path", [*TOOL, *PROBES], ids=name_of)
def test_nothing_evaluates_text_or_goes_through_a_shell(path: Path) -> None:
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            found += [f"{node.lineno}: shell=True" for word in node.keywords if word.arg == "shell"]
            safe_yaml = called == "yaml.load" and any(word.arg == "Loader" for word in node.keywords)
            if called in {"eval", "exec", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system", "os.popen"} and not safe_yaml:
                found.append(f"{node.lineno}: {called}")
        if isinstance(node, ast.Attribute) and node.attr in {"Loader", "UnsafeLoader", "FullLoader", "CLoader", "CUnsafeLoader", "CFullLoader"}:
            found.append(f"{node.lineno}: {node.attr} makes any object that the text asks for")
    unpickles = path in {*ROUND_TRIPS, PLAIN_UNPICKLER}  # what it has just pickled itself, in one process
    found += [f"{line}: {module}" for line, module in imported(tree_of(path)) if module in {"pickle", "shelve", "dill"} and not unpickles]
    assert found == []


def test_the_one_unpickler_of_strangers_files_finds_no_class() -> None:
    tree = tree_of(PLAIN_UNPICKLER)
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pickle"}
    assert used == {"pickle.Unpickler"}
    (unpickler,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    methods = {node.name: node.body for node in unpickler.body if isinstance(node, ast.FunctionDef)}
    assert set(methods) == {"find_class", "persistent_load"}
    assert all(isinstance(body[-1], ast.Raise) and len(body) == 1 for body in methods.values())


@pytest.mark.parametrize("path", [path for path in TOOL if "system" not in path.parts], ids=name_of)
def test_processes_start_and_are_waited_for_in_system_only(path: Path) -> None:
    tree = tree_of(path)
    found = [f"{line}: {module}" for line, module in imported(tree) if module in {"subprocess", "multiprocessing", "pty"}]
    starts = re.compile(r"fork|forkpty|wait\w*|posix_spawn\w*|exec\w+|spawn\w+")
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os"]
    found += [f"{node.lineno}: os.{node.attr}" for node in names if starts.fullmatch(node.attr)]
    assert found == []


@pytest.mark.parametrize("path", PROBES, ids=name_of)
def test_probes_need_the_standard_library_and_torch_only(path: Path) -> None:
    siblings = {sibling.stem for sibling in path.parent.glob("*.py")} | {folder.name for folder in (ROOT / "probes").iterdir() if folder.is_dir()}
    allowed = sys.stdlib_module_names | PROBE_MODULES | siblings
    assert [(line, module) for line, module in imported(tree_of(path)) if module.split(".")[0] not in allowed] == []


def old_syntax_files() -> list[Path]:
    package = ROOT / "trainprobe"
    return [*PROBES, *(path for path in TOOL if path.relative_to(package).parts[0] in OLD_SYNTAX)]


@pytest.mark.parametrize("path", old_syntax_files(), ids=name_of)
def test_what_runs_on_old_interpreters_keeps_to_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_rung_numbers_are_unique() -> None:
    numbers: dict[str, str] = {}
    for path in PROBES:
        header = re.search(r"^# /// trainprobe\n(.*?)^# ///$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        if header is None:
            continue
        rung = re.search(r"^#\s+rung:\s*(\S+)", header.group(1), re.MULTILINE)
        assert rung is not None, f"{name_of(path)} has a metadata block without a rung"
        assert rung.group(1) not in numbers, f"{name_of(path)} and {numbers[rung.group(1)]} are both rung {rung.group(1)}"
        numbers[rung.group(1)] = name_of(path)
    assert numbers


# The witness runs inside the user's program and must never break it: all of it is guarded, and its docstring says so once.
GUARDED_THROUGHOUT = ROOT / "probes" / "_witness"


@pytest.mark.parametrize("path", [path for path in (*TOOL, *PROBES) if GUARDED_THROUGHOUT not in path.parents], ids=name_of)
def test_a_broad_except_says_why(path: Path) -> None:
    """The reason stands on the line itself, or as a comment on the line before or after it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    unexplained = []
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = ast.unparse(node.type) if node.type else ""
        if caught in {"", "Exception", "BaseException"}:
            near = lines[max(0, node.lineno - 2) : node.lineno + 1]
            raises_again = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            if not any("#" in line for line in near) and not raises_again:
                unexplained.append(node.lineno)
    assert unexplained == []


def test_every_part_of_the_tool_stands_in_a_tower() -> None:
    """A module that no layer names would be checked by none."""
    layers = set(re.findall(r"\((\w+)\)", (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.importlinter]")[1]))
    parts = {path.stem for path in (ROOT / "trainprobe").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - layers == {"__init__", "__main__"}


@pytest.mark.parametrize("path", [*TOOL, *PROBES], ids=name_of)
def test_no_module_is_named_for_being_a_drawer(path: Path) -> None:
    name = name_of(path).replace("fabric_manager", "fabric")  # NVIDIA's service is called so
    assert not FORBIDDEN_NAMES & set(re.split(r"[_/.]", name))


POISON = 'raise SystemExit("the tool imported torch")\n'


@pytest.mark.parametrize("argv", [("--help",), ("causes",), ("causes", "rank-stuck"), ("diagnose", "--nproc", "1", "--only", "host")], ids=" ".join)
def test_a_poisoned_torch_is_never_imported(argv: tuple[str, ...], run_tool: RunTool, job_folder: Path) -> None:
    poisoned = job_folder / "poisoned"
    poisoned.mkdir()
    (poisoned / "torch.py").write_text(POISON)
    done = run_tool(*argv, env={"PYTHONPATH": f"{poisoned}:{ROOT}"})
    assert "the tool imported torch" not in done.stdout + done.stderr, f"\n{done}"
    assert done.exit_code == 0, f"\n{done}"


def test_explain_never_imports_torch(run_tool: RunTool, job_folder: Path) -> None:
    gathered = run_tool("diagnose", "--nproc", "1", "--only", "host")
    poisoned = job_folder / "poisoned"
    poisoned.mkdir()
    (poisoned / "torch.py").write_text(POISON)
    again = run_tool("explain", str(job_folder / "case"), env={"PYTHONPATH": f"{poisoned}:{ROOT}"})
    assert again.exit_code == gathered.exit_code, f"\n{again}"
    assert "the tool imported torch" not in again.stdout + again.stderr, f"\n{again}"
