"""What was to be looked at: the plan of the case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Plan(Fact):
    """`form` is none (no script), launch (we start the ranks) or command (the user's launcher
    does). `nproc` is what was asked for.

    `probes` are the names of all rungs, also of those that the plan skips, in the order of the
    climb.
    `sample`, `bench_steps`, `fuzz` and `seed` are what was said for the stress test of `model`,
    empty or None where nothing was.
    `ranks`, `rows` and `workers` are the sizes that were asked for, empty where none were.
    `planned` is what the real run will have: rows, ranks, workers, by name. `nodes` are the hosts
    that the ranks go over, none for one machine; `nproc` is for each of them, `world_size` for all.
    """

    command: str = ""
    nproc: int = 0
    world_size: int = 0
    backend: str = ""
    device: str = ""
    form: str = "none"
    script: str = ""
    argv: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    interpreter_path: str = ""
    python_version: str = ""
    torch_version: str = ""
    cuda_version: str = ""
    interpreter_reason: str = ""
    interpreter_chosen_by: str = ""
    interpreter_note: str = ""
    host: str = ""
    cwd: str = ""
    gpus_requested: int | None = None
    gpus: int = 0
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    looked_s: float | None = None
    tool_version: str = ""
    ranks: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    dataset: str = ""
    collate: str = ""
    batch_size: int | None = None
    model: str = ""
    sample: str = ""
    bench_steps: int | None = None
    fuzz: int | None = None
    seed: int | None = None
    workers: tuple[int, ...] = ()
    planned: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    probe_dirs: tuple[str, ...] = ()
    config: str = ""


@dataclass(frozen=True)
class Script(Fact):
    """What the user's script says of itself as text. `syntax_error` is empty where it parses;
    `group_timeout_s` is None where it sets none.
    """

    path: str = ""
    imports: tuple[str, ...] = ()
    syntax_error: str = ""
    group_timeout_s: float | None = None


@dataclass(frozen=True)
class Interrupted(Fact):
    """Gathering was stopped by the user during `phase`."""

    phase: str = ""


def parse_plan(record: Evidence) -> list[Fact]:
    data = record.data
    interpreter = fields.part(data, "interpreter")
    nproc = fields.whole(data, "nproc") or 0
    return [
        Plan(
            evidence=(record.id,),
            cell=record.cell,
            command=fields.text(data, "command"),
            nproc=nproc,
            world_size=fields.whole(data, "world_size") or nproc,
            backend=fields.text(data, "backend"),
            device=fields.text(data, "device"),
            form=fields.text(data, "form") or "none",
            script=fields.text(data, "script"),
            argv=fields.texts(data, "argv"),
            imports=fields.texts(data, "imports"),
            interpreter_path=fields.text(interpreter, "path"),
            python_version=fields.text(interpreter, "version"),
            torch_version=fields.text(interpreter, "torch"),
            cuda_version=fields.text(interpreter, "cuda"),
            interpreter_reason=fields.text(interpreter, "reason"),
            interpreter_chosen_by=fields.text(interpreter, "chosen_by"),
            interpreter_note=fields.text(interpreter, "note"),
            host=fields.text(data, "host"),
            cwd=fields.text(data, "cwd"),
            gpus_requested=fields.whole(data, "gpus_requested"),
            gpus=fields.whole(data, "gpus") or 0,
            only=fields.texts(data, "only"),
            skip=fields.texts(data, "skip"),
            probes=tuple(
                fields.text(row, "probe")
                for row in fields.items(data, "rungs")
                if isinstance(row, Mapping)
            ),
            looked_s=fields.number(data, "looked_s"),
            tool_version=fields.text(data, "tool_version"),
            ranks=fields.wholes(data, "ranks"),
            rows=fields.wholes(data, "rows"),
            dataset=fields.text(data, "dataset"),
            collate=fields.text(data, "collate"),
            batch_size=fields.whole(data, "batch_size"),
            model=fields.text(data, "model"),
            sample=fields.text(data, "sample"),
            bench_steps=fields.whole(data, "bench_steps"),
            fuzz=fields.whole(data, "fuzz"),
            seed=fields.whole(data, "seed"),
            workers=fields.wholes(data, "workers"),
            nodes=fields.texts(data, "nodes"),
            probe_dirs=fields.texts(data, "probe_dirs"),
            config=fields.text(data, "config"),
            planned={
                name: number
                for name, number in fields.part(data, "planned").items()
                if isinstance(number, int)
            },
        )
    ]


def parse_script(record: Evidence) -> list[Fact]:
    data = record.data
    wrong = (
        fields.text(data, "syntax_error")
        if not isinstance(data.get("syntax_error"), dict)
        else str(data["syntax_error"])
    )
    return [
        Script(
            (record.id,),
            record.cell,
            None,
            fields.text(data, "path"),
            fields.texts(data, "imports"),
            wrong,
            fields.number(data, "group_timeout_s"),
        )
    ]


def parse_interrupted(record: Evidence) -> list[Fact]:
    return [
        Interrupted(
            (record.id,),
            record.cell or fields.text(record.data, "cell"),
            None,
            fields.text(record.data, "phase"),
        )
    ]
