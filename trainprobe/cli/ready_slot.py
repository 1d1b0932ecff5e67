"""`trainprobe ready --slot prolog` and its like: the checks of a node from where SLURM calls them, at little cost.

An entry of its own, without typer, causes and report pages: five hundred prologs start at once. Its options are those of `ready`, its rule is that
of the whole judgement (trainprobe/checks/settled.py). Whatever goes wrong here is no reason to take a node away, unless that was asked for.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainprobe.errors import TrainprobeError, UsageError

if TYPE_CHECKING:
    from trainprobe.checks.settled import ProgramTold
    from trainprobe.model.diagnosis import Report
    from trainprobe.ready.here import Told
    from trainprobe.ready.slots import Inconclusive, Slot
    from trainprobe.site import Site

SLOT = "TRAINPROBE_SLOT"
FORMATS = ("text", "json", "junit", "prometheus", "nagios")
FLAGS = ("--quick", "--quiet", "--no-color")
VALUES = ("--slot", "--format", "--inconclusive", "--timeout", "--json", "--case", "--drain")
GRACE_S = 1.5  # after its hard stop this process itself is given up


@dataclass(frozen=True)
class Asked:
    """The command line, read."""

    slot: str
    form: str = "text"
    inconclusive: Inconclusive | None = None
    stop_s: float | None = None
    json_to: str = ""
    case: str = ""
    quiet: bool = False
    drain: tuple[str, ...] = ()


@dataclass
class Settled:
    """The exit code as far as it is known: what the site wants of a node that could not be looked at, then what the checks came to."""

    code: int = 0
    nagios: bool = False
    nagios_code: int = 3  # until a report says something else
    printed: bool = False  # the one line that a monitor reads is out


def is_for_a_slot(argv: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Is this `ready` in one of the administrators' slots?"""
    if argv[:1] != ["ready"] or any(word in ("-h", "--help") for word in argv):
        return False
    asked = [argv[place + 1] for place, word in enumerate(argv[:-1]) if word == "--slot"] + [word[7:] for word in argv if word.startswith("--slot=")]
    return (asked[-1] if asked else environment.get(SLOT, "step")) in ("prolog", "epilog", "healthcheck", "taskprolog")


def ready_slot(argv: Sequence[str]) -> int:
    """Run the checks of a slot and return its exit code: 10 where the node must be taken away, else 0."""
    sys.dont_write_bytecode = True  # the tool may lie on a disk that all nodes share
    began = time.monotonic()
    asked = read(argv, os.environ)
    settled = Settled(nagios=asks_for_nagios(argv))
    try:
        return _in_slot(asked, began, settled)
    except (TrainprobeError, OSError) as error:
        return _could_not(f"The node could not be looked at: {error}", settled)
    except Exception as error:  # noqa: BLE001 - a fault of ours must not take a node away from everybody
        return _could_not(f"A fault of trainprobe itself: {type(error).__name__}: {' '.join(str(error).split())[:300]}.", settled)


def asks_for_nagios(argv: Sequence[str]) -> bool:
    return "--format=nagios" in argv or any(pair == ("--format", "nagios") for pair in itertools.pairwise(argv))


def _could_not(sentence: str, settled: Settled) -> int:
    """Say why, to a monitor in its own form, and return the exit code: silence would read as health."""
    _say(sentence)
    if not settled.nagios:
        return settled.code
    if not settled.printed:
        write_unknown(sentence)
    return settled.nagios_code


def write_unknown(sentence: str) -> None:
    """Print the line of a monitor that could not check."""
    text = _without_secrets(sentence).translate(str.maketrans("|\n", "/ "))
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"TRAINPROBE UNKNOWN - {text}\n")
        sys.stdout.flush()


def _in_slot(asked: Asked, began: float, settled: Settled) -> int:
    from trainprobe.ready.slots import NOT_READY, environment_of, inconclusive_of, slot_of, stop_after
    from trainprobe.site import read_site

    slot, site = slot_of(asked.slot), read_site()
    for note in site.notes:
        _say(note)
    if slot.name == "taskprolog" and os.environ.get("SLURM_LOCALID", "0") != "0":
        return 0
    inconclusive = inconclusive_of(slot, site, asked.inconclusive)
    settled.code = NOT_READY if inconclusive == "fail" else 0
    stop_s = stop_after(slot, site, asked.stop_s)
    os.chdir("/")
    surrounding, own = dict(os.environ), environment_of(slot, os.environ, site)
    os.environ.clear()
    os.environ.update(own)
    watchdog = threading.Timer(stop_s + GRACE_S, _give_up, (stop_s, settled))
    watchdog.daemon = True
    watchdog.start()
    try:
        report = _looked(asked, slot, site, stop_s - (time.monotonic() - began), inconclusive, settled)
    finally:
        watchdog.cancel()
        os.environ.clear()
        os.environ.update(surrounding)
    if _host() in asked.drain and settled.code == NOT_READY:
        _drain(report)
    return settled.nagios_code if asked.form == "nagios" else settled.code


def read(argv: Sequence[str], environment: Mapping[str, str]) -> Asked:
    """Return what the words after `trainprobe` ask for. Raises UsageError."""
    found: dict[str, str] = {"--slot": environment.get(SLOT, "")}
    words = list(argv[1:])
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name in FLAGS and not equals:
            found[name] = "yes"
        elif name in VALUES:
            if not equals and not words:
                raise UsageError(f"{name} needs a value.", "See trainprobe ready --help.")
            found[name] = value if equals else words.pop(0)
        else:
            raise UsageError(f"{name} is no option of ready in the slot {found['--slot']}.", f"There are: {', '.join((*VALUES, *FLAGS))}.")
    return Asked(
        found["--slot"],
        _one_of("--format", found.get("--format", "text"), FORMATS),
        "fail" if _one_of("--inconclusive", found.get("--inconclusive", "pass"), ("pass", "fail")) == "fail" else "pass" if "--inconclusive" in found else None,
        _seconds(found["--timeout"]) if "--timeout" in found else None,
        _whole_path(found.get("--json", "")),
        _whole_path(found.get("--case", "")),
        "--quiet" in found,
        tuple(name.strip() for name in found.get("--drain", "").split(",") if name.strip()),
    )


def _whole_path(given: str) -> str:
    """The checks run in /, and a path is meant from where we were called."""
    with contextlib.suppress(OSError):  # where we were called from is gone
        return os.path.abspath(given) if given not in ("", "-") else given
    return given


def _looked(asked: Asked, slot: Slot, site: Site, stop_s: float, inconclusive: Inconclusive, settled: Settled) -> Report:
    """Look, settle the exit code, tell and keep. What is told and kept may hang on a disk: the code is known by then."""
    from trainprobe.checks.settled import doubts_of, rows_of
    from trainprobe.ready.here import Wanted, run_checks
    from trainprobe.ready.slots import exit_of
    from trainprobe.report.slot_report import slot_report

    told: list[Told] = []
    began = time.time()
    run_checks(Wanted("quick", slot.name, max(1.0, stop_s), env=dict(os.environ), leave_out=site.leave_out, alone=slot.own_environment), told.append)
    programs = _programs(told)
    report = slot_report(programs, host=_host(), slot=slot.name, budget="quick", looked_s=time.time() - began)
    rows = rows_of(programs)
    settled.code = exit_of(rows, doubts_of(programs, rows), inconclusive)
    _tell(asked, slot, report, settled)
    _keep(asked, slot, site, told)
    return report


def _programs(told: Sequence[Told]) -> list[ProgramTold]:
    """What was told, without what looks like a secret."""
    from trainprobe.checks.settled import ProgramTold
    from trainprobe.redact import Redactor

    redactor = Redactor(os.environ)
    return [ProgramTold(one.source, one.outcome, redactor.text(one.reason)[0], redactor.data(one.data)[0]) for one in told if one.kind == "checks"]


def _keep(asked: Asked, slot: Slot, site: Site, told: Sequence[Told]) -> None:
    """A case where one was asked for, and one where the site keeps them. What cannot be kept is said and changes nothing."""
    if not asked.case and not site.keep_in:
        return
    from trainprobe.ready.kept import keep, new_folder, place_in, prune

    for folder in (asked.case, place_in(site, host=_host(), slot=slot.name)):
        if folder:
            try:
                if folder != asked.case:
                    new_folder(folder)
                keep(told, folder=folder, host=_host(), slot=slot.name, budget="quick", argv=("trainprobe", "ready", "--slot", slot.name))
            except (TrainprobeError, OSError) as error:
                _say(f"No case was kept: {error}")
    prune(site)


def _drain(report: Report) -> None:
    """Only where it was asked for: the health check has to do it by itself, a prolog does it by its exit code."""
    from trainprobe.ready.drain import drain, refuse_drain
    from trainprobe.ready.slots import PATH
    from trainprobe.site import read_site

    try:
        refuse_drain(read_site(), os.geteuid())
    except UsageError as error:
        _say(str(error))
        return
    for sentence in drain((_host(),), report.says, {"PATH": PATH, **os.environ}).says:
        _say(sentence)


def _tell(asked: Asked, slot: Slot, report: Report, settled: Settled) -> None:
    """The text goes to stderr, which SLURM logs; another form to stdout, except where SLURM reads that."""
    from trainprobe.report.forms import in_form
    from trainprobe.report.slot_report import slot_text

    if asked.json_to and asked.json_to != "-":
        _write(asked.json_to, in_form(report, "json", time.time()))
    if not asked.quiet or settled.code or report.verdict != "healthy":
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(slot_text(report))
            sys.stderr.flush()
    form = "json" if asked.json_to == "-" else asked.form
    with contextlib.suppress(OSError, ValueError):
        if slot.speaks_to_slurm:
            sys.stdout.write(f"print trainprobe: {report.verdict}: {report.says}\n" if report.verdict != "healthy" else "")
        elif form != "text":
            sys.stdout.write(in_form(report, form, time.time()))
        sys.stdout.flush()
        if asked.form == "nagios":
            from trainprobe.report.nagios import nagios_code

            settled.nagios_code, settled.printed = nagios_code(report), True


def _write(path: str, text: str) -> None:
    """Whole or not at all: whoever collects it reads while it is written."""
    fresh = f"{path}.{os.getpid()}.new"
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)  # root follows nobody's link
    except OSError as error:
        _say(f"{path} could not be written: {error.strerror}.")
        return
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(fresh, path)
    except OSError as error:
        _say(f"{path} could not be written: {error.strerror}.")
        with contextlib.suppress(OSError):
            os.unlink(fresh)


def _give_up(stop_s: float, settled: Settled) -> None:
    """This process hangs itself; the keeper, a process of its own, ends what runs below."""
    os._exit(_could_not(f"Not all was done within {stop_s:g} s.", settled))


def _host() -> str:
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"trainprobe: {_without_secrets(sentence)}\n")
        sys.stderr.flush()


def _without_secrets(sentence: str) -> str:
    from trainprobe.redact import Redactor, clean

    return clean(Redactor(os.environ).text(sentence)[0])


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise UsageError(f"{name} is one of {', '.join(choices)}, not {value[:40]!r}.")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 3600:
        raise UsageError(f"--timeout needs seconds from 1 to 3600, not {text[:40]!r}.")
    return value
