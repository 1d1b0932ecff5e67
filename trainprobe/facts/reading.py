"""`read()`: evidence in, facts out. It never raises, whatever the evidence holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from trainprobe.collect.collector import every_collector
from trainprobe.collect.collectors.files import OpenFile, PipeEnd
from trainprobe.collect.collectors.sockets import Connection
from trainprobe.collect.collectors.source import SourceSite
from trainprobe.facts import collectives
from trainprobe.facts.announced_ranks import parse_announced_ranks
from trainprobe.facts.blocked_since import join_sleep
from trainprobe.facts.cell_measures import parse_cell_measures
from trainprobe.facts.compared_calls import join_compared_calls
from trainprobe.facts.counts_by_rank import parse_counts
from trainprobe.facts.data_parallel import join_data_parallel, parse_data_parallel
from trainprobe.facts.differences import join_differences
from trainprobe.facts.ending_joins import join_endings
from trainprobe.facts.endings import parse_ending
from trainprobe.facts.exception_joins import join_exceptions
from trainprobe.facts.exceptions import (
    parse_error_file,
    parse_given_exceptions,
    parse_printed_exceptions,
    parse_witness_exceptions,
)
from trainprobe.facts.fatal_signals import join_fatal_signals, parse_fatal_signals
from trainprobe.facts.flight_dumps import join_recorded_calls, parse_flight_dump
from trainprobe.facts.host_checks import parse_host_checks
from trainprobe.facts.imports import parse_imports
from trainprobe.facts.jobs import join_unnumbered, parse_job
from trainprobe.facts.kernel_logs import parse_kernel_log
from trainprobe.facts.knobs import parse_knob
from trainprobe.facts.last_words import join_last_words
from trainprobe.facts.launched_calls import join_launched_calls
from trainprobe.facts.leftover_joins import join_leftovers
from trainprobe.facts.log_components import parse_log_components
from trainprobe.facts.log_endings import parse_log_endings
from trainprobe.facts.log_events import parse_output
from trainprobe.facts.log_exceptions import parse_log_deaths, parse_log_exceptions, parse_log_kernel
from trainprobe.facts.log_jobs import (
    join_log_jobs,
    parse_log_file,
    parse_log_job,
    parse_log_progress,
    parse_log_request,
)
from trainprobe.facts.log_joins import join_log_failures
from trainprobe.facts.log_mixtures import parse_log_mixtures
from trainprobe.facts.log_order import join_log_order
from trainprobe.facts.log_phases import parse_log_phases
from trainprobe.facts.log_settings import join_given, parse_given
from trainprobe.facts.log_signs import join_log_outputs, parse_log_events, parse_log_output
from trainprobe.facts.log_stacks import join_log_stacks, parse_log_stacks
from trainprobe.facts.log_waits import parse_log_waits
from trainprobe.facts.log_work import parse_log_work
from trainprobe.facts.main_threads import parse_stacks
from trainprobe.facts.nccl_calls import join_nccl_calls, parse_nccl_calls
from trainprobe.facts.node_checks import parse_checks, parse_node_clock, parse_ready, parse_values
from trainprobe.facts.own_stores import join_own_stores
from trainprobe.facts.pairs import join_pairs, parse_pair
from trainprobe.facts.plan import parse_interrupted, parse_plan, parse_script
from trainprobe.facts.printed_endings import join_printed_endings, parse_printed_endings
from trainprobe.facts.probe_results import parse_probe_results
from trainprobe.facts.process_listings import parse_process_listings
from trainprobe.facts.processes import join_processes, parse_process
from trainprobe.facts.progress import join_progress, parse_printed_progress, parse_witness_progress
from trainprobe.facts.removed_columns import parse_removed_columns
from trainprobe.facts.resting_connections import KIND as SOCKETS
from trainprobe.facts.resting_connections import without_resting
from trainprobe.facts.rungs import parse_rung
from trainprobe.facts.samples import parse_samples
from trainprobe.facts.several_hosts import (
    facts_at,
    join_hosts,
    parse_reach,
    pids_of,
    places_of,
    renumbered,
    silent_nodes,
    with_host,
)
from trainprobe.facts.shared_folders import join_shared_folders
from trainprobe.facts.table import Facts, Look, Refusal
from trainprobe.facts.thread_places import join_threads
from trainprobe.facts.timed_out_calls import join_timed_out_calls
from trainprobe.facts.worlds import in_one_cell
from trainprobe.model import fields
from trainprobe.model.evidence import LAST_MOMENT, Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.record_classes import LazyData

Parser = Callable[[Evidence], "list[Fact]"]


def _parse_collectives(record: Evidence) -> list[Fact]:
    return list(collectives.parse(record))


def _sbatch(record: Evidence) -> list[Fact]:
    from trainprobe.facts.sbatch_rules import parse_sbatch  # the rules over scripts are many

    return parse_sbatch(record)


# Of kinds that several sources bring. A collector declares the parser of its own kind.
PARSERS: Mapping[str, tuple[Parser, ...]] = {
    "plan": (parse_plan,),
    "job": (parse_job,),
    "reach": (parse_reach,),
    "script": (parse_script,),
    "interrupted": (parse_interrupted,),
    "rung": (parse_rung, parse_knob),
    "cell.measures": (parse_cell_measures,),
    "rank.ended": (parse_ending,),
    "probe.events": (
        parse_probe_results,
        parse_host_checks,
        parse_imports,
        parse_witness_progress,
        parse_data_parallel,
        parse_removed_columns,
        parse_witness_exceptions,
        parse_given_exceptions,
    ),
    "output": (
        parse_output,
        parse_printed_exceptions,
        parse_printed_endings,
        parse_fatal_signals,
        parse_printed_progress,
    ),
    "error_file": (parse_error_file,),
    "stacks.python": (parse_stacks,),
    "stacks.native": (parse_stacks,),
    "stacks.samples": (parse_samples,),
    "process": (parse_process,),
    "kernel_log": (parse_kernel_log,),
    "flight_recorder": (parse_flight_dump,),
    "collectives": (_parse_collectives,),
    "log.extract": (
        parse_log_job,
        parse_log_events,
        parse_log_components,
        parse_log_waits,
        parse_log_mixtures,
        parse_log_phases,
        parse_log_exceptions,
        parse_log_deaths,
        parse_log_kernel,
        parse_log_endings,
        parse_log_progress,
        parse_log_work,
        parse_counts,
        parse_announced_ranks,
        parse_nccl_calls,
        parse_process_listings,
        parse_log_output,
        parse_log_stacks,
    ),
    "log.file": (parse_log_file,),
    "log.request": (parse_log_request,),
    "given": (parse_given,),
    "sbatch": (_sbatch,),
    "pair": (parse_pair,),
    "ready": (parse_ready,),
    "checks": (parse_checks,),
    "values": (parse_values,),
    "node.look": (parse_node_clock,),
}
# A record of these tells something also where its look came to no good end: what a check program
# said until it was ended.
TELLS_ALL_THE_SAME = frozenset({"checks"})
# What only several records together tell. Each takes all facts and returns them with its own kind
# put together; the order matters. Those of the collectors come first.
JOINS: tuple[Callable[[list[Fact]], list[Fact]], ...] = (
    join_hosts,
    join_unnumbered,
    join_processes,
    join_log_stacks,
    join_own_stores,
    join_threads,
    join_sleep,
    join_log_jobs,
    join_log_order,
    join_printed_endings,
    join_exceptions,
    join_last_words,
    join_fatal_signals,
    join_endings,
    join_progress,
    join_recorded_calls,
    join_launched_calls,
    join_timed_out_calls,
    join_compared_calls,
    join_nccl_calls,
    join_log_failures,
    join_log_outputs,
    join_given,
    join_leftovers,
    join_data_parallel,
    join_pairs,
    join_differences,
    join_shared_folders,
)


# From here on no join looks at these, of which there are more than of all other facts.
_OF_LOOKS: tuple[type[Fact], ...] = (Connection, OpenFile, PipeEnd, SourceSite)
_FIRST_WITHOUT_LOOKS = join_log_jobs


def read(evidence: Iterable[Evidence]) -> Facts:
    """Parse every record; one that cannot be understood yields nothing and is counted in
    `Facts.unreadable`.
    """
    facts: list[Fact] = []
    looked: list[Look] = []
    refused: list[Refusal] = []
    unreadable: list[str] = []
    standing = [_at_a_real_time(record) for record in _newest_output(_standing(evidence))]
    standing = in_one_cell(standing)
    places = places_of(standing)
    facts += silent_nodes(standing)
    collectors = every_collector()
    parsers = {**{one.kind: (one.parse,) for one in collectors if one.parse}, **PARSERS}
    sockets: list[Evidence] = []

    def records() -> Iterator[Evidence]:
        standing.reverse()
        while standing:  # a record that was read may go, where nobody else has it
            record = standing.pop()
            if record.kind == SOCKETS and record.subject.host in places:
                sockets.append(record)
            else:
                yield with_host(record, places)
        if sockets:  # what they tell depends on what all the others have told
            yield from without_resting(
                sockets,
                facts,
                lambda record: with_host(record, places),
                lambda host: pids_of(host, places[host]),
                renumbered(facts),
            )

    for record in records():
        if record.outcome not in ("ok", "partial"):
            refused.append(
                Refusal(
                    record.kind,
                    record.outcome,
                    record.reason,
                    record.subject,
                    record.cell,
                    record.id,
                )
            )
            if not record.data:
                continue
        if isinstance(record.data, LazyData):
            record = replace(record, data=record.data.whole())  # noqa: PLW2901 - until it is parsed
        found, flaw = _parsed(record, parsers.get(record.kind, ()))
        facts += facts_at(found, record.subject.host, places)
        if flaw:
            unreadable.append(record.id)
        elif record.outcome in ("ok", "partial"):
            looked.append(Look(record.kind, record.cell, record.subject.rank, record.id))
    for collector in collectors:
        if collector.join is not None:
            try:
                facts = collector.join(facts)
            except Exception:  # noqa: BLE001 - a plug-in's join must not end the judgement
                unreadable.append(f"all of kind {collector.kind}")
    of_looks: list[Fact] = []
    for join in JOINS:
        if join is _FIRST_WITHOUT_LOOKS:
            of_looks = [fact for fact in facts if isinstance(fact, _OF_LOOKS)]
            facts = [fact for fact in facts if not isinstance(fact, _OF_LOOKS)]
        try:
            facts = join(facts)
        except Exception:  # noqa: BLE001 - what one join cannot tell must not end the judgement
            unreadable.append(f"all that {join.__name__} adds")
    return Facts([*facts, *of_looks], looked=looked, refused=refused, unreadable=unreadable)


def _at_a_real_time(record: Evidence) -> Evidence:
    """A time that cannot be one is no time at all: a damaged case may hold infinity."""
    began = record.began if 0 <= record.began < LAST_MOMENT else 0.0
    took_s = record.took_s if 0 <= record.took_s < LAST_MOMENT else 0.0
    return (
        record
        if (began, took_s) == (record.began, record.took_s)
        else replace(record, began=began, took_s=took_s)
    )


def _standing(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Leave out what a climb that was gone on with has declared void: cells without an answer,
    which were then run again.
    """
    records = list(evidence)
    void = {
        each
        for record in records
        if record.kind == "resumed"
        for each in fields.texts(record.data, "void")
    }
    return [record for record in records if record.id not in void] if void else records


def _newest_output(records: list[Evidence]) -> list[Evidence]:
    """Of a file that was read again while a live job was looked at, only the last reading."""
    newest = {place: record.id for record in records if (place := _place_of_output(record))}
    if not newest:
        return records
    return [
        record for record in records if newest.get(_place_of_output(record), record.id) == record.id
    ]


def _place_of_output(record: Evidence) -> tuple[object, ...]:
    """Empty for a record that is no output of a file; in other kinds `path` need not be a text."""
    path, subject = record.data.get("path") if record.kind == "output" else None, record.subject
    if not path or not isinstance(path, str):
        return ()
    return record.cell, subject.host, subject.rank, path, record.outcome


def _parsed(record: Evidence, parsers: tuple[Parser, ...]) -> tuple[list[Fact], bool]:
    """Each parser of a kind stands alone: what one cannot read, another may."""
    found: list[Fact] = []
    failed = 0
    if record.outcome not in ("ok", "partial") and record.kind not in TELLS_ALL_THE_SAME:
        return [], False
    for parse in parsers:
        try:
            found += parse(record)
        except Exception:  # noqa: BLE001 - a hostile record must not end the judgement of the others
            failed += 1
    return found, failed > 0
