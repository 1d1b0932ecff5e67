"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, SOAK, RunTool

TOOL = sorted((ROOT / "trainprobe").rglob("*.py"))
PROBES = sorted((ROOT / "probes").rglob("*.py"))
OLD_SYNTAX = (
    "collect",
    "system",
    "model",
    "callbacks",
    "heartbeat.py",
    "import_lock",
    "case.py",
    "redact.py",
    "regular_files.py",
    "saved_case.py",
    "secret_forms.py",
    "secret_services.py",
    "errors.py",
    "__init__.py",
)
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
# Modules that belong to the job's own Python are imported inside the phase that needs them; this is
# what a probe may name.
ROUND_TRIPS = {ROOT / "probes" / "_scaled_dataset" / "consistency.py"}
# Its unpickler finds no class, and runs in a child with limits; test_dump_files.py tries what it
# refuses.
PLAIN_UNPICKLER = ROOT / "trainprobe" / "collect" / "dump_files_child.py"
PROBE_MODULES = {"torch", "_emit"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every imported module with its line; relative imports keep their dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def imports_of(path: Path, modules: dict[str, Path]) -> set[str]:
    """The tool's modules that a module imports when it is loaded or when its functions run; what
    stands under `if TYPE_CHECKING:` is for readers and type checkers alone.
    """
    found: set[str] = set()
    todo: list[ast.AST] = [tree_of(path)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name_of(path)}:{node.lineno} imports by a relative name"
            source = node.module or ""
            members = {f"{source}.{alias.name}" for alias in node.names}
            found |= (members & set(modules)) or {source}
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        else:
            todo += ast.iter_child_nodes(node)
    return found & set(modules)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count, so that none of them hides a circle."""
    modules = {
        name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
        for path in TOOL
    }
    imports = {name: imports_of(path, modules) for name, path in modules.items()}
    while True:  # what imports no module that is left, or is imported by none, is in no circle
        used = set().union(*imports.values())
        left = {
            name: others & set(imports)
            for name, others in imports.items()
            if others and name in used
        }
        if len(left) == len(imports):
            break
        imports = {name: others & set(left) for name, others in left.items()}
    circles = {name: sorted(others) for name, others in imports.items()}
    assert circles == {}


def dotted(node: ast.expr) -> str:
    """`a.b.c` of such an expression; the empty text of any other."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
    return ""


def found_in(paths: Iterable[Path], find: Callable[[Path], Iterable[str]]) -> list[str]:
    """What `find` says of each file, with the file's name before it."""
    return [f"{name_of(path)}: {text}" for path in paths for text in find(path)]


def test_the_tool_imports_no_torch() -> None:
    def torch_imports(path: Path) -> Iterator[str]:
        for line, module in imported(tree_of(path)):
            if module.split(".")[0] == "torch":
                yield f"line {line}"

    assert found_in(TOOL, torch_imports) == []


EVALUATORS = {
    "eval", "exec", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system", "os.popen",
}  # fmt: skip
UNSAFE_LOADERS = {
    "Loader", "UnsafeLoader", "FullLoader", "CLoader", "CUnsafeLoader", "CFullLoader",
}  # fmt: skip


def test_nothing_evaluates_text_or_goes_through_a_shell() -> None:
    def evaluations(path: Path) -> Iterator[str]:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call):
                called = dotted(node.func)
                if any(word.arg == "shell" for word in node.keywords):
                    yield f"{node.lineno}: shell=True"
                has_loader = any(word.arg == "Loader" for word in node.keywords)
                if called in EVALUATORS and not (called == "yaml.load" and has_loader):
                    yield f"{node.lineno}: {called}"
            if isinstance(node, ast.Attribute) and node.attr in UNSAFE_LOADERS:
                yield f"{node.lineno}: {node.attr} makes any object that the text asks for"
        if path not in {*ROUND_TRIPS, PLAIN_UNPICKLER}:
            for line, module in imported(tree_of(path)):
                if module in {"pickle", "shelve", "dill"}:
                    yield f"{line}: {module}"

    assert found_in([*TOOL, *PROBES], evaluations) == []


def test_the_one_unpickler_of_strangers_files_finds_no_class() -> None:
    tree = tree_of(PLAIN_UNPICKLER)
    used = {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pickle"
    }
    assert used == {"pickle.Unpickler"}
    (unpickler,) = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "pickle.Unpickler" in map(dotted, node.bases)
    )
    methods = {node.name: node.body for node in unpickler.body if isinstance(node, ast.FunctionDef)}
    assert set(methods) == {"find_class", "persistent_load"}
    assert all(isinstance(body[-1], ast.Raise) and len(body) == 1 for body in methods.values())


def test_processes_start_and_are_waited_for_in_system_only() -> None:
    starts = re.compile(r"fork|forkpty|wait\w*|posix_spawn\w*|exec\w+|spawn\w+")

    def process_calls(path: Path) -> Iterator[str]:
        for line, module in imported(tree_of(path)):
            if module in {"subprocess", "multiprocessing", "pty"}:
                yield f"{line}: {module}"
        for node in ast.walk(tree_of(path)):
            match node:
                case ast.Attribute(value=ast.Name(id="os"), attr=name) if starts.fullmatch(name):
                    yield f"{node.lineno}: os.{name}"

    assert found_in((path for path in TOOL if "system" not in path.parts), process_calls) == []


def test_probes_need_the_standard_library_and_torch_only() -> None:
    folders = {folder.name for folder in (ROOT / "probes").iterdir() if folder.is_dir()}

    def foreign_imports(path: Path) -> Iterator[str]:
        siblings = {sibling.stem for sibling in path.parent.glob("*.py")}
        allowed = sys.stdlib_module_names | PROBE_MODULES | siblings | folders
        for line, module in imported(tree_of(path)):
            if module.split(".")[0] not in allowed:
                yield f"{line}: {module}"

    assert found_in(PROBES, foreign_imports) == []


def test_what_runs_on_old_interpreters_keeps_to_python_3_9() -> None:
    package = ROOT / "trainprobe"
    old = [path for path in TOOL if path.relative_to(package).parts[0] in OLD_SYNTAX]
    for path in [*PROBES, *old]:
        ast.parse(path.read_text(encoding="utf-8"), name_of(path), feature_version=(3, 9))


def test_rung_numbers_are_unique() -> None:
    numbers: dict[str, str] = {}
    for path in PROBES:
        header = re.search(
            r"^# /// trainprobe\n(.*?)^# ///$",
            path.read_text(encoding="utf-8"),
            re.MULTILINE | re.DOTALL,
        )
        if header is None:
            continue
        rung = re.search(r"^#\s+rung:\s*(\S+)", header.group(1), re.MULTILINE)
        assert rung is not None, f"{name_of(path)} has a metadata block without a rung"
        assert rung.group(1) not in numbers, (
            f"{name_of(path)} and {numbers[rung.group(1)]} are both rung {rung.group(1)}"
        )
        numbers[rung.group(1)] = name_of(path)
    assert numbers


# The witness runs inside the user's program and must never break it: all of it is guarded, and its
# docstring says so once.
GUARDED_THROUGHOUT = ROOT / "probes" / "_witness"


def test_a_broad_except_says_why() -> None:
    """The reason stands on the line itself, or as a comment on the line before or after it."""

    def unexplained(path: Path) -> Iterator[str]:
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = ast.unparse(node.type) if node.type else ""
            if caught in {"", "Exception", "BaseException"}:
                near = lines[max(0, node.lineno - 2) : node.body[0].lineno]
                raises_again = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
                if not any("#" in line for line in near) and not raises_again:
                    yield f"line {node.lineno}"

    guarded = (path for path in (*TOOL, *PROBES) if GUARDED_THROUGHOUT not in path.parents)
    assert found_in(guarded, unexplained) == []


def test_every_part_of_the_tool_stands_in_a_tower() -> None:
    """A module that no layer names would be checked by none."""
    layers = set(
        re.findall(
            r"\((\w+)\)",
            (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.importlinter]")[1],
        )
    )
    parts = {
        path.stem
        for path in (ROOT / "trainprobe").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts - layers == {"__init__", "__main__"}


def test_no_module_is_named_for_being_a_drawer() -> None:
    names = {path: name_of(path).replace("fabric_manager", "fabric") for path in (*TOOL, *PROBES)}
    assert [
        name for name in names.values() if FORBIDDEN_NAMES & set(re.split(r"[_/.]", name))
    ] == []


def test_the_list_of_soak_tests_names_tests_that_exist() -> None:
    entries = SOAK.read_text(encoding="utf-8").splitlines()
    assert entries[2:] == sorted(entries[2:])
    for entry in entries[2:]:
        path, _, name = entry.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8"), entry


POISON = 'raise SystemExit("the tool imported torch")\n'


@pytest.mark.parametrize(
    "argv",
    [
        ("--help",),
        ("causes",),
        ("causes", "rank-stuck"),
        ("diagnose", "--nproc", "1", "--only", "host"),
    ],
    ids=" ".join,
)
def test_a_poisoned_torch_is_never_imported(
    argv: tuple[str, ...], run_tool: RunTool, job_folder: Path
) -> None:
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


REPORTING = ("diagnose", "attach", "explain", "ready", "lint")
THROW_AWAY = """
from trainprobe.api import Format, of_reports
def render(result, layout):
    return "thrown away\\n"
FORMAT = Format("throwaway", "a test", ".gone", {**of_reports(render), "findings": render})
"""


def test_a_format_is_one_file_that_every_reporting_command_offers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainprobe.cli import run
    from trainprobe.report.format import COMMANDS

    info = tmp_path / "gone-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gone\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[trainprobe.formats]\nthrowaway = gone_format\n")
    (tmp_path / "gone_format.py").write_text(THROW_AWAY)
    monkeypatch.syspath_prepend(tmp_path)
    commands = {name.split()[0] for names in COMMANDS.values() for name in names}
    assert commands == set(REPORTING)
    # A command's help is made when its module is imported, which another test may have done.
    asks = "import sys; from trainprobe.cli.app import help_of; print(help_of(sys.argv[1]))"
    for command in REPORTING:
        said = subprocess.run(
            [sys.executable, "-c", asks, command],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "throwaway" in said.stdout, command
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    case = ROOT / "tests" / "cases" / "rank-stuck"
    for argv in (["lint", str(script)], ["explain", str(case)]):
        run([*argv, "--format", "throwaway", "--quiet"])
        assert capsys.readouterr().out == "thrown away\n"
        run([*argv, "--output", str(tmp_path / "report.gone"), "--quiet"])
        assert (tmp_path / "report.gone").read_text() == "thrown away\n"
        capsys.readouterr()
    sys.modules.pop("gone_format", None)
