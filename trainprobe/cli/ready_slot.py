"""`trainprobe ready --slot prolog` and its like: the checks of a node from where SLURM calls them,
at little cost.

An entry of its own, without typer, causes and report pages: five hundred prologs start at once. Its
options are those of `ready`, its rule is that of the whole judgement
(trainprobe/checks/outcome.py). Whatever goes wrong here is no reason to take a node away, unless
that was asked for.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainprobe.errors import TrainprobeError, UsageError

if TYPE_CHECKING:
    from trainprobe.checks.outcome import ProgramResult
    from trainprobe.model.diagnosis import Report
    from trainprobe.ready.local_checks import CheckResult
    from trainprobe.ready.slots import Inconclusive, Slot
    from trainprobe.site import Site

SLOT = "TRAINPROBE_SLOT"
FLAGS = ("--quick", "--quiet", "--no-color")
VALUES = (
    "--slot",
    "--format",
    "--output",
    "--inconclusive",
    "--timeout",
    "--json",
    "--case",
    "--drain",
)
GRACE_S = 1.5  # after its hard stop this process itself is given up


@dataclass(frozen=True)
class SlotOptions:
    """The command line, read."""

    slot: str
    format_name: str = "text"
    output_file: str = ""
    inconclusive: Inconclusive | None = None
    stop_s: float | None = None
    json_to: str = ""
    case: str = ""
    quiet: bool = False
    drain: tuple[str, ...] = ()


@dataclass
class Settled:
    """The exit code as far as it is known: what the site wants of a node that could not be
    looked at, then what the checks came to.
    """

    code: int = 0
    argv: Sequence[str] = ()
    format_code: int | None = None  # the own exit code of the format on stdout, once it is out


def is_for_a_slot(argv: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Is this `ready` in one of the administrators' slots?"""
    if argv[:1] != ["ready"] or any(word in ("-h", "--help") for word in argv):
        return False
    slots = [argv[place + 1] for place, word in enumerate(argv[:-1]) if word == "--slot"] + [
        word[7:] for word in argv if word.startswith("--slot=")
    ]
    return (slots[-1] if slots else environment.get(SLOT, "step")) in (
        "prolog",
        "epilog",
        "healthcheck",
        "taskprolog",
    )


def ready_slot(argv: Sequence[str]) -> int:
    """Run the checks of a slot and return its exit code: 10 where the node must be taken away,
    else 0.
    """
    sys.dont_write_bytecode = True  # the tool may lie on a disk that all nodes share
    began = time.monotonic()
    options = read(argv, os.environ)
    settled = Settled(argv=argv)
    try:
        return _in_slot(options, began, settled)
    except (TrainprobeError, OSError) as error:
        return _could_not(f"The node could not be looked at: {error}", settled)
    except Exception as error:  # noqa: BLE001 - a fault of ours must not take a node away from everybody
        return _could_not(
            f"A fault of trainprobe itself: {type(error).__name__}:"
            f" {' '.join(str(error).split())[:300]}.",
            settled,
        )


def _could_not(sentence: str, settled: Settled) -> int:
    """Give the reason, also in the chosen format where it has words for an error, and return the
    exit code: a monitor takes silence for health.
    """
    from trainprobe.report.formats import failure_of

    sentence = _without_secrets(sentence)
    _say(sentence)
    if settled.format_code is not None:
        return settled.format_code
    instead = failure_of(settled.argv, sentence)
    if instead is None:
        return settled.code
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(instead[0])
        sys.stdout.flush()
    return instead[1]


def _in_slot(options: SlotOptions, began: float, settled: Settled) -> int:
    from trainprobe.ready.slots import (
        NOT_READY,
        environment_of,
        inconclusive_of,
        slot_of,
        stop_after,
    )
    from trainprobe.site import read_site

    slot, site = slot_of(options.slot), read_site()
    for note in site.notes:
        _say(note)
    if slot.name == "taskprolog" and os.environ.get("SLURM_LOCALID", "0") != "0":
        return 0
    inconclusive = inconclusive_of(slot, site, options.inconclusive)
    settled.code = NOT_READY if inconclusive == "fail" else 0
    stop_s = stop_after(slot, site, options.stop_s)
    os.chdir("/")
    surrounding, own = dict(os.environ), environment_of(slot, os.environ, site)
    os.environ.clear()
    os.environ.update(own)
    watchdog = threading.Timer(stop_s + GRACE_S, _give_up, (stop_s, settled))
    watchdog.daemon = True
    watchdog.start()
    try:
        report = _looked(
            options, slot, site, stop_s - (time.monotonic() - began), inconclusive, settled
        )
    finally:
        watchdog.cancel()
        os.environ.clear()
        os.environ.update(surrounding)
    if _host() in options.drain and settled.code == NOT_READY:
        _drain(report)
    return settled.code if settled.format_code is None else settled.format_code


def read(argv: Sequence[str], environment: Mapping[str, str]) -> SlotOptions:
    """Return what the words after `trainprobe` ask for. Raises UsageError."""
    from trainprobe.report.formats import choose

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
            raise UsageError(
                f"{name} is no option of ready in the slot {found['--slot']}.",
                f"There are: {', '.join((*VALUES, *FLAGS))}.",
            )
    output_file = _whole_path(found.get("--output", ""))
    return SlotOptions(
        found["--slot"],
        choose("readiness", found.get("--format"), output_file).name,
        output_file,
        (
            "fail"
            if _one_of("--inconclusive", found.get("--inconclusive", "pass"), ("pass", "fail"))
            == "fail"
            else "pass"
            if "--inconclusive" in found
            else None
        ),
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


def _looked(
    options: SlotOptions,
    slot: Slot,
    site: Site,
    stop_s: float,
    inconclusive: Inconclusive,
    settled: Settled,
) -> Report:
    """Look, settle the exit code, tell and keep. What is told and kept may hang on a disk: the
    code is known by then.
    """
    from trainprobe.checks.outcome import doubts_of, rows_of
    from trainprobe.ready.local_checks import CheckTask, run_checks
    from trainprobe.ready.slots import exit_of
    from trainprobe.report.slot_report import slot_report

    told: list[CheckResult] = []
    began = time.time()
    run_checks(
        CheckTask(
            "quick",
            slot.name,
            max(1.0, stop_s),
            env=dict(os.environ),
            leave_out=site.leave_out,
            alone=slot.own_environment,
        ),
        told.append,
    )
    programs = _programs(told)
    report = slot_report(
        programs, host=_host(), slot=slot.name, budget="quick", looked_s=time.time() - began
    )
    rows = rows_of(programs)
    settled.code = exit_of(rows, doubts_of(programs, rows), inconclusive)
    _tell(options, slot, report, settled)
    _keep(options, slot, site, told)
    return report


def _programs(told: Sequence[CheckResult]) -> list[ProgramResult]:
    """What was told, without what looks like a secret."""
    from trainprobe.checks.outcome import ProgramResult
    from trainprobe.redact import Redactor

    redactor = Redactor(os.environ)
    return [
        ProgramResult(
            one.source, one.outcome, redactor.text(one.reason)[0], redactor.data(one.data)[0]
        )
        for one in told
        if one.kind == "checks"
    ]


def _keep(options: SlotOptions, slot: Slot, site: Site, told: Sequence[CheckResult]) -> None:
    """A case where one was asked for, and one where the site keeps them. What cannot be kept is
    said and changes nothing.
    """
    if not options.case and not site.keep_in:
        return
    from trainprobe.ready.case_folders import keep, new_folder, place_in, prune

    for folder in (options.case, place_in(site, host=_host(), slot=slot.name)):
        if folder:
            try:
                if folder != options.case:
                    new_folder(folder)
                keep(
                    told,
                    folder=folder,
                    host=_host(),
                    slot=slot.name,
                    budget="quick",
                    argv=("trainprobe", "ready", "--slot", slot.name),
                )
            except (TrainprobeError, OSError) as error:
                _say(f"No case was kept: {error}")
    prune(site)


def _drain(report: Report) -> None:
    """Only where it was asked for: the health check has to do it by itself, a prolog does it by
    its exit code.
    """
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


def _tell(options: SlotOptions, slot: Slot, report: Report, settled: Settled) -> None:
    """The text goes to stderr, which SLURM logs; another format to stdout, except where SLURM
    reads that.
    """
    from trainprobe.report.format import Layout
    from trainprobe.report.formats import choose
    from trainprobe.report.slot_report import slot_text

    layout = Layout(ended_at=time.time())
    chosen, as_json = choose("readiness", options.format_name), choose("readiness", "json")
    if options.json_to not in ("", "-"):
        _write(options.json_to, as_json.renders["readiness"](report, layout))
    if options.output_file not in ("", "-"):
        _write(options.output_file, chosen.renders["readiness"](report, layout))
        chosen = choose("readiness", "text")
    if not options.quiet or settled.code or report.verdict != "healthy":
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(slot_text(report))
            sys.stderr.flush()
    if options.json_to == "-":
        chosen = as_json
    with contextlib.suppress(OSError, ValueError):
        if slot.speaks_to_slurm:
            sys.stdout.write(
                f"print trainprobe: {report.verdict}: {report.says}\n"
                if report.verdict != "healthy"
                else ""
            )
        elif chosen.name != "text":
            sys.stdout.write(chosen.renders["readiness"](report, layout))
        sys.stdout.flush()
    if chosen.exit_code is not None:
        settled.format_code = chosen.exit_code(report)


def _write(path: str, text: str) -> None:
    """Whole or not at all: whoever collects it reads while it is written."""
    fresh = f"{path}.{os.getpid()}.new"
    try:
        fd = os.open(
            fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666
        )  # root follows nobody's link
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
