"""Signs that the memory of the host ran out: who was killed, what says so, what was refused."""

from __future__ import annotations

import re

from trainprobe.causes.phrases import size
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import LATE_POINTS, Statement
from trainprobe.facts import LogEvent, Output, RankEnding
from trainprobe.model.facts import Fact
from trainprobe.signatures.messages import message

REFUSED = message("host-memory.refused")
WORDING = message("host-memory")
FULL = 0.95  # of the limit: from here on the kernel reclaims, then kills
MOST = 0.7  # of the limit before the first step: what training adds is seldom less than the rest
GONE = ("actor-died", "child-died")  # events that tell of a process that is gone, and not of what
# Events of signatures/ in which a scheduler or a person ends the job.
CANCELLED = ("preempted", "requeued")
# Bars of weights that are being read, and words of what comes after.
BAR = re.compile(r"Loading (?:(?:safetensors |pt )?checkpoint shards|weights): {1,4}(\d{1,3})%")
LATER = re.compile(r"\b(?:loss|lr|grad_norm|step|epoch|it/s)\b", re.IGNORECASE)


def killed(scene: Scene) -> tuple[RankEnding, ...]:
    """The suspects that SIGKILL ended, sent neither by us nor by the launcher."""
    own = [end for end in scene.endings(scene.suspects) if not (end.by_us or end.by_launcher)]
    return tuple(
        end
        for end in own
        if end.how == "oom_killed" or (end.how == "signalled" and end.signal_name == "SIGKILL")
    )


def proof(scene: Scene) -> LogEvent | None:
    """A line that reports a kill for memory; one of the kernel must name a pid of the job."""
    pids = {end.pid for end in scene.endings(scene.world) if end.pid}
    for event in scene.events("oom-killer", "evicted"):
        if event.event == "evicted" and event.captured.get("resource") != "memory":
            continue
        pid = event.captured.get("pid") or event.captured.get("victim")
        if pid is None or not pids or int(pid) in pids:
            return event
    return None


def kill_report(scene: Scene) -> LogEvent | None:
    """A line that reports SIGKILL, or a process of the job that is gone."""
    return next(
        (
            event
            for event in scene.events("sigkill", "worker-sigkill", *GONE)
            if not _announced(scene, event)
        ),
        None,
    )


def _announced(scene: Scene, event: LogEvent) -> bool:
    """Had a launcher said before that it kills all that are left?"""
    return any(
        said.kills_all and (said.place or 0) < (event.place or 0) for said in scene.of(LogEvent)
    )


def limit_of(scene: Scene) -> float | None:
    """The limit of the job's memory in bytes, as it was read or as somebody told it."""
    if scene.memory is not None and scene.memory.limit_bytes:
        return scene.memory.limit_bytes
    given = scene.given("memory.limit_bytes")
    return given.number if given is not None else None


def pressure(scene: Scene, refused: Statement | None) -> Weighings:
    """What the cgroup counted and how full it was."""
    memory, ends = scene.memory, killed(scene)
    rise = memory.oom_kill_rise if memory is not None else None
    if rise is None:
        rise = next((end.oom_rise for end in ends if end.oom_rise is not None), None)
    if rise:
        says = f"The cgroup counted {rise} out-of-memory kills in this run"
        yield weighing(13, "host-pressure", says, memory)
    elif rise == 0:
        says = "The cgroup's count of out-of-memory kills did not rise"
        yield weighing(-26 if refused is None else -6, "host-pressure", says, memory, *ends)
    if (
        memory is not None
        and memory.limit_bytes
        and (memory.peak_bytes or 0) >= FULL * memory.limit_bytes
    ):
        says = f"Memory use peaked at {size(memory.peak_bytes)} of {size(memory.limit_bytes)}"
        yield weighing(6, "host-pressure", says, memory)


def after_imports(scene: Scene) -> Weighings:
    """Memory of one host's ranks after their imports beside its limit, by `MEM:` lines."""
    hosts: dict[str, dict[str, LogEvent]] = {}
    for event in scene.of(LogEvent):
        if event.event == "import-memory" and event.captured.get("limit_mib", "").isdecimal():
            hosts.setdefault(event.host, {})[event.captured.get("pid", "")] = event
    for host, last in hosts.items():
        held = sum(int(event.captured["rss_mib"]) for event in last.values()) * 2**20
        limit = min(int(event.captured["limit_mib"]) for event in last.values()) * 2**20
        if limit and held >= MOST * limit:
            where = f" on {host}" if host else ""
            says = (
                f"After their imports {len(last)} processes{where} held {size(held)}, each counted"
                f" whole, of {size(limit)}"
            )
            yield weighing(6, "environment-and-limits", says, *last.values())
            return


def of_the_kernel(scene: Scene) -> Weighings:
    """A kill that only the kernel's log shows, without any other failure."""
    first = scene.first_failure
    kills = (
        scene.oom_kills
        if first is not None
        and first.what == "kernel"
        and not killed(scene)
        and proof(scene) is None
        else ()
    )
    for kill in kills[:1]:
        says = f"The kernel killed process {kill.pid} ({kill.name}) for want of memory"
        yield weighing(26, "kernel-log", says, kill)


def loading_bar(scene: Scene) -> tuple[int, Fact] | None:
    """How far loading was, in percent, if the output ends while it loads."""
    found: list[tuple[int, Fact]] = []
    for output in scene.of(Output):
        if output.rank is None or output.rank in scene.suspects:
            bars = list(BAR.finditer(output.tail))
            if bars and int(bars[-1].group(1)) < 100:
                found.append((int(bars[-1].group(1)), output))
            elif bars or LATER.search(output.tail):
                return None
    if not found:
        events = [
            (int(event.captured["percent"]), event)
            for event in scene.events("loading-weights")
            if event.captured.get("percent", "").isdecimal()
        ]
        best = max(events, key=lambda one: one[0], default=None)
        return best if best is not None and best[0] < 100 else None
    return max(found, key=lambda one: one[0])


def strength(refused: Statement) -> int:
    """Points of a refusal; std::bad_alloc may also be an address-space limit or a bug."""
    if refused.late:
        return LATE_POINTS
    if re.search(WORDING, refused.text):
        return 13
    if "bad_alloc" in refused.match.group(0):
        return 6
    if re.search(r"\bmmap\b", refused.text):
        return 3  # addresses, or mappings, of which a process may have 65530
    return 10
