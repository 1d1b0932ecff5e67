"""The commands as one typer application."""

from __future__ import annotations

import contextlib
import copy
from typing import Annotated

import typer
from typer.models import CommandInfo

from trainprobe import __version__
from trainprobe.cli.attach import attach
from trainprobe.cli.bundle_tool import bundle_tool
from trainprobe.cli.causes import causes
from trainprobe.cli.collect_env import collect_env
from trainprobe.cli.completion import completion_of
from trainprobe.cli.demo import demo
from trainprobe.cli.diagnose import diagnose
from trainprobe.cli.doctor import doctor
from trainprobe.cli.explain import explain
from trainprobe.cli.lint import lint
from trainprobe.cli.node_commands import checks_here, climb_here, look_here, probe_here
from trainprobe.cli.ready import ready
from trainprobe.cli.report import report
from trainprobe.cli.run_job import run
from trainprobe.errors import UsageError

app = typer.Typer(
    name="trainprobe",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command(
    options_metavar="[OPTIONS] [-- SCRIPT|COMMAND [ARGS]...]",
    short_help="Climb a ladder of checks, up to your own command.",
    context_settings={"allow_extra_args": True},
)(diagnose)
app.command(short_help="Look at a job that runs: who holds it up, and why.")(attach)
app.command(
    options_metavar="[OPTIONS] [-- SBATCH-OPTIONS]",
    short_help="Check nodes before a job starts: is one of them unfit?",
    context_settings={"allow_extra_args": True},
)(ready)
app.command(
    options_metavar="[OPTIONS] -- COMMAND [ARGS]...",
    short_help="Run a job and watch it: report when it stalls or fails.",
    context_settings={"allow_extra_args": True},
)(run)
app.command(short_help="Say from what is left of a job what failed first, and why.")(explain)
app.command(short_help="Write the page of a saved case, for a browser.")(report)
app.command(name="collect-env", short_help="Print what surrounds a job here, for explain --env.")(
    collect_env
)
app.command(short_help="Read training code for what will hang or crash it.")(lint)
app.command()(causes)
app.command(short_help="Say what trainprobe can see here, and what to type where it cannot.")(
    doctor
)
app.command(short_help="Start a small job that hangs, and see what attach says of it.")(demo)
app.command(name="bundle-tool", short_help="Write the part that looks at a node as one file.")(
    bundle_tool
)
app.command(short_help="Print what makes the tab key complete commands and options.")(
    completion_of(lambda: app)
)
app.command(name="look-here", hidden=True)(look_here)
app.command(name="checks-here", hidden=True)(checks_here)
app.command(name="climb-here", hidden=True)(climb_here)
app.command(name="probe-here", hidden=True)(probe_here)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"trainprobe {__version__}\n{_runs_on()}")
        raise typer.Exit


def _runs_on() -> str:
    """Python, the system, and the packages on which it depends what can be seen."""
    import platform
    from importlib import metadata

    found = []
    for package in ("py-spy", "psutil", "nvidia-ml-py", "hyperscan"):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"no {package}")
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"Python {platform.python_version()} on {system}; {', '.join(found)}"


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Find the rank, the cause and the fix of a PyTorch training job that hangs, crashes or does
    not start.

    \b
    Start here:
      trainprobe diagnose --nproc 4
      trainprobe diagnose --gpus 8 -- train.py --config base.yaml
      trainprobe attach 48213
      trainprobe ready
      trainprobe run -- torchrun --nproc-per-node 8 train.py
      trainprobe explain slurm-1234.out logs/
      trainprobe lint train.py
      trainprobe causes rank-stuck
      trainprobe demo
    """  # noqa: D301 - \b keeps the lines of the example apart
    del version


def command_line(argv: list[str]) -> int:
    """Run one command and return its exit code; raises UsageError where the command line does
    not parse.
    """
    argv = argv or ["--help"]
    dashes = argv.index("--") if "--" in argv else len(argv)
    # no option can take a value that may be left out, or `--deep 4711` would take the pid for one
    argv = ["--deep-auto" if word == "--deep=auto" else word for word in argv[:dashes]] + argv[
        dashes:
    ]
    try:
        result = _with_only(argv[0])(
            args=argv,
            prog_name="trainprobe",
            standalone_mode=False,
            obj={"after_dashes": len(argv) - dashes - 1},
        )
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as problem:
        # typer has moved its usage errors between modules; their method identifies them
        message = getattr(problem, "format_message", None)
        if message is None:
            raise
        says = " ".join(str(message()).split()).rstrip(".")
        command = f"{argv[0]} " if argv[0] in command_names() else ""
        raise UsageError(
            says if says.endswith("?") else f"{says}.", f"See trainprobe {command}--help."
        ) from None
    return result if isinstance(result, int) else 0


def command_names() -> list[str]:
    """Return the commands, hidden ones too, in the order of the help."""
    return [_name(command) for command in app.registered_commands]


def _with_only(name: str) -> typer.Typer:
    """The application with the options of the command `name` only; the others are just listed.
    Reading all options takes longer than importing typer.
    """
    made = copy.copy(app)
    made.registered_commands = [
        command if _name(command) == name else _listed(command)
        for command in app.registered_commands
    ]
    return made


def _listed(command: CommandInfo) -> CommandInfo:
    shown = copy.copy(command)
    shown.name, shown.help, shown.callback = (
        _name(command),
        command.help or (command.callback.__doc__ if command.callback else ""),
        lambda: None,
    )
    return shown


def _name(command: CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback else "")


def help_of(command: str = "") -> str:
    """Return the help text of `command`, 100 columns wide, or of the whole; docs/cli.md shows
    it.
    """
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(typer.Exit):
        app(
            args=[*([command] if command else []), "--help"],
            prog_name="trainprobe",
            standalone_mode=False,
            terminal_width=100,
        )
    return text.getvalue()
