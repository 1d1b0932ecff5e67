"""What is recorded when a cell is over: how its processes ended, what they wrote, and what the
kernel and the source show about it.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainprobe.case import Case
from trainprobe.collect.collectives import read_journals
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import kernel_log
from trainprobe.collect.collectors.error_file import look_at_error_file
from trainprobe.collect.collectors.output import Stream, look_at_common_output, look_at_output
from trainprobe.collect.collectors.source import Site, look_at_source, sites_in_text
from trainprobe.collect.flight_recorder import look_at_flight_recorder
from trainprobe.collect.members import Member, host_name
from trainprobe.ladder import events
from trainprobe.ladder.outcome import failed
from trainprobe.ladder.team import Mate
from trainprobe.ladder.watch import Watch, error_logs
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Ended, Evidence

KERNEL_LOG_S = 3.0
# ILL ABRT BUS FPE KILL SEGV: the kernel log may know more about these.
FATAL_SIGNALS = frozenset({4, 6, 7, 8, 9, 11})
EVENTS_PER_WITNESS = 400
# "exitcode  : -9 (pid: 4242)" (torch/distributed/elastic/multiprocessing/errors) and "failed
# (exitcode: -9) local_rank: 1 (pid: 4242)".
_LAUNCHER_SAYS = re.compile(r"exitcode\s*: (-?\d{1,3})\)?[^\n]{0,80}?\(pid: (\d{1,9})\)")


@dataclasses.dataclass(frozen=True)
class Settled:
    """`endings` by process, after all corrections; `events` by rank, for probes."""

    team: tuple[Mate, ...]
    endings: Mapping[Member, Ended]
    events: Mapping[int | None, events.Events]

    def of_ranks(self) -> dict[int, Ended]:
        """The first process of each rank: a later one is a restart of it."""
        found: dict[int, Ended] = {}
        for mate in self.team:
            if mate.is_rank and mate.member.rank is not None:
                found.setdefault(mate.member.rank, self.endings[mate.member])
        return found

    def of_launcher(self) -> Ended | None:
        launchers = (mate.member for mate in self.team if mate.member.role == "launcher")
        return next((self.endings[member] for member in launchers), None)


def settle(watch: Watch, *, deadline_phase: str = "") -> Settled:
    """Record everything about a cell whose processes are gone. `deadline_phase` names the deadline
    that ended it, "" for none.
    """
    watch.keeper.poll()
    watch.signs.read()
    team = watch.team()
    by_rank = {rank: events.read(path) for rank, path in watch.launch.events.items()}
    endings = _endings(watch, team, by_rank, deadline_phase)
    case, cell = watch.case, watch.launch.cell
    watch.cgroups.look(case, cell, "after")
    if any(failed(ended) and ended.signal in FATAL_SIGNALS for ended in endings.values()):
        job = JobView(data={"began": watch.began_at}, cell=cell)
        (log,) = collect(case, kernel_log.COLLECTOR, job, KERNEL_LOG_S)
        endings = _killed_for_memory(watch, endings, log)
    for mate in team:
        ended = endings[mate.member]
        if mate.member.role in ("rank", "launcher") or failed(ended):
            _record_end(watch, mate, ended)
    for rank, item in by_rank.items():
        member = next((mate.member for mate in team if mate.member.rank == rank), Member(rank, 0))
        _record_events(watch, member, item, "probe")
    _record_witnesses(watch, team)
    texts = _record_outputs(watch, team)
    _record_files(watch, team)
    sites = [site for rank, text in texts for site in sites_in_text(text, rank)]
    look_at_source(case, cell, [*sites, *_sites_of_witnesses(case, cell)], cwd=watch.looks.cwd)
    return Settled(team, endings, by_rank)


def _endings(
    watch: Watch,
    team: Sequence[Mate],
    by_rank: Mapping[int | None, events.Events],
    deadline_phase: str,
) -> dict[Member, Ended]:
    """Fill in exit statuses that only the launcher printed, and the deadline that ended the other
    processes.
    """
    codes = _codes_of_launcher(watch)
    endings: dict[Member, Ended] = {}
    for mate in team:
        ended = mate.ended or Ended(
            "exited", reason="it was still there when the cell ended", seen_by="nobody", by_us=True
        )
        if ended.seen_by == "nobody" and not ended.by_us and mate.member.pid in codes:
            code = codes[mate.member.pid]
            known = {"at": ended.at, "took_s": ended.took_s, "seen_by": "launcher"}
            ended = (
                Ended("signalled", signal=-code, **known)  # type: ignore[arg-type]
                if code < 0
                else Ended("exited", code=code, **known)  # type: ignore[arg-type]
            )
        if deadline_phase and ended.by_us and mate.is_rank and ended.how != "unkillable":
            item = by_rank.get(mate.member.rank)
            if item is None or not item.answer[0]:
                phase = (item.open_phase if item else "") or deadline_phase
                ended = dataclasses.replace(ended, how="timed_out", phase=phase)
        endings[mate.member] = ended
    return endings


def _codes_of_launcher(watch: Watch) -> dict[int, int]:
    if not watch.launch.command:
        return {}
    try:
        with open(watch.launch.specs[0].stdout, encoding="utf-8", errors="replace") as file:
            file.seek(max(0, os.path.getsize(watch.launch.specs[0].stdout) - 2**18))
            text = file.read()
    except OSError:
        return {}
    return {int(pid): int(code) for code, pid in _LAUNCHER_SAYS.findall(text)}


def _killed_for_memory(
    watch: Watch, endings: Mapping[Member, Ended], log: Evidence
) -> dict[Member, Ended]:
    """A SIGKILL from elsewhere came from the kernel when its log names the pid, or the cgroup's
    count of such kills rose.
    """
    rows = (row for row in log.data.get("lines") or () if isinstance(row, dict))
    lines = [str(row.get("text", "")) for row in rows]
    found = dict(endings)
    for member, ended in endings.items():
        pid = member.pid
        if ended.how != "signalled" or ended.signal != 9 or ended.by_us:
            continue
        kill = rf"[Kk]ill(?:ed)? process {pid}\b|\bpid={pid}\b.*oom|oom.*\bpid={pid}\b"
        named = any(re.search(kill, line) for line in lines)
        if named or (watch.cgroups.rise_of(pid) or 0) > 0:
            found[member] = dataclasses.replace(ended, how="oom_killed")
    return found


def _record_end(watch: Watch, mate: Mate, ended: Ended) -> None:
    data: dict[str, Any] = {
        **to_json(ended),
        "started_at": mate.started_at,
        "cgroup_oom_rise": watch.cgroups.rise_of(mate.member.pid or None),
    }
    if mate.member.role in ("loader-worker", "child"):
        data["cmdline"] = mate.cmdline[:500]
    subject, cell = mate.member.subject, watch.launch.cell
    watch.case.add("rank.ended", subject=subject, cell=cell, source="keeper", data=data)


def _record_events(watch: Watch, member: Member, item: events.Events, source: str) -> None:
    data = {
        "events": list(item.events),
        "bad_lines": item.bad_lines,
        "bad_sample": item.bad_sample,
        "cut": item.cut,
    }
    watch.case.add(
        "probe.events",
        subject=member.subject,
        cell=watch.launch.cell,
        source=source,
        outcome="partial" if item.bad_lines else "ok",
        reason=f"{item.bad_lines} lines are not events" if item.bad_lines else "",
        data=data,
    )


def _record_witnesses(watch: Watch, team: Sequence[Mate]) -> None:
    if not watch.launch.witness_dir:
        return
    members = {mate.member.pid: mate.member for mate in team}
    for pid, path in sorted(watch.signs.files().items()):
        member = members.get(pid) or Member(watch.signs.by_pid[pid].rank, pid, "child")
        if member.role in ("rank", "launcher"):
            item, half = events.read(path), EVENTS_PER_WITNESS // 2
            if len(item.events) > EVENTS_PER_WITNESS:
                ends = (*item.events[:half], *item.events[-half:])
                item = dataclasses.replace(item, events=ends, cut=True)
            _record_events(watch, member, item, "witness")
    read_journals(watch.case, watch.launch.cell, watch.launch.witness_dir, host_name())


def _record_outputs(watch: Watch, team: Sequence[Mate]) -> list[tuple[int | None, str]]:
    """Record every stream and return the texts by rank, for the places in the source that they
    name.
    """
    case, cell, signs = watch.case, watch.launch.cell, watch.signs
    by_rank = {mate.member.rank: mate.member for mate in team if mate.is_rank}
    by_pid = {mate.member.pid: mate.member for mate in reversed(team)}
    logs = watch.find_logs()
    records: list[Evidence] = []
    for spec in watch.launch.specs:
        child = watch.keeper.children[spec.key]
        member = by_pid.get(child.pid or 0) or Member(spec.rank, 0)
        first, last = signs.first_output_at or None, signs.output_at.get(spec.rank) or None
        common = spec.stdout == spec.stderr
        for name, path in (
            [("both", spec.stdout)]
            if common
            else [("stdout", spec.stdout), ("stderr", spec.stderr)]
        ):
            stream = Stream(path, name, first, last, child.cut_bytes)
            if common and watch.launch.command and member.role == "launcher":
                ranks = [] if logs else list(by_rank.values())
                records += look_at_common_output(case, cell, member, stream, ranks)
            else:
                records.append(look_at_output(case, cell, member, stream))
    for rank, name, path in logs:
        first, last = signs.first_output_at or None, signs.output_at.get(rank) or None
        member = by_rank.get(rank) or Member(rank, 0)
        records.append(look_at_output(case, cell, member, Stream(path, name, first, last)))
    return [
        (record.subject.rank, f"{record.data.get('head', '')}\n{record.data.get('tail', '')}")
        for record in records
    ]


def _record_files(watch: Watch, team: Sequence[Mate]) -> None:
    ranks = {
        mate.member.rank: mate.member
        for mate in team
        if mate.is_rank and mate.member.rank is not None
    }
    launch = watch.launch
    for rank, path in {**launch.error_files, **error_logs(launch.logs, launch.first)}.items():
        if os.path.exists(path):
            look_at_error_file(watch.case, launch.cell, ranks.get(rank) or Member(rank, 0), path)
    if launch.dumps:
        prefix = os.path.join(launch.dumps, "rank_")
        look_at_flight_recorder(watch.case, launch.cell, prefix, list(ranks.values()))


def _sites_of_witnesses(case: Case, cell: str) -> list[Site]:
    """The places that events and journals of this cell name: frames of exceptions, exits, calls of
    collectives.
    """
    found = []
    for look in case.evidence:
        if look.cell == cell and look.kind in ("probe.events", "collectives"):
            rows = [*(look.data.get("events") or ()), *(look.data.get("calls") or ())[-20:]]
            found += [
                Site(file, line, function, look.subject.rank)
                for row in rows
                for file, line, function in _places(row)
            ]
    return found


def _rows(frames: Any) -> list[Any]:
    """Frames as the user's processes wrote them, none where the value has another shape."""
    return frames if isinstance(frames, list) else []


def _places(row: Any) -> list[tuple[str, int, str]]:
    if not isinstance(row, dict):
        return []
    handled = row.get("handling")
    frames = [
        row,
        row.get("where"),
        *_rows(row.get("frames")),
        *_rows(handled.get("frames") if isinstance(handled, dict) else ()),
    ]
    return [
        (frame["file"], frame["line"], str(frame.get("function", "")))
        for frame in frames
        if isinstance(frame, dict)
        and isinstance(frame.get("file"), str)
        and isinstance(frame.get("line"), int)
    ]
