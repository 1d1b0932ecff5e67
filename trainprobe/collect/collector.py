"""What a collector declares, how collectors are found, and how one is run.

A collector is one file in `collect/collectors/`, or in a plug-in, with one `COLLECTOR`. It holds
the look (gathering) and the parser with its fact (concluding). Both sides import the file, so
importing it must touch nothing: what starts programs is imported inside the look.
docs/guides/add-a-collector.md walks through one.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass, field, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from trainprobe import plugins
from trainprobe.collect.look_results import LookResult, record, side_by_side
from trainprobe.collect.members import Member, host_subject
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.subjects import Subject

if TYPE_CHECKING:
    from trainprobe.case import Case

SLACK_S = 0.3  # a look that ends by itself at its deadline still has to hand over its result
Results = Union[LookResult, Iterable[LookResult]]
ROUNDS = ("first", "second", "last")


@dataclass(frozen=True)
class JobView:
    """What a look may know of the job. `data` is the job's record: script, cwd, backend, ranks.

    `round` counts this collector's looks from 1. `folder` is where a look may put files of the
    case, `cell` the launch that the records belong to.
    """

    members: Sequence[Member] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    round: int = 1
    cell: str = ""
    folder: str = ""

    @property
    def began(self) -> Optional[float]:
        """When the job began, in Unix seconds; None where that is not known."""
        began = self.data.get("began")
        return float(began) if isinstance(began, (int, float)) else None

    @property
    def environment(self) -> Mapping[str, Mapping[str, str]]:
        """The variables of each process, by its rank as text; "job" stands for all of them."""
        return self.data.get("environment") or {}

    @property
    def variables(self) -> Dict[str, str]:
        """The variables of the job as a whole, then of the first rank that has them."""
        found: Dict[str, str] = {}
        for process in sorted(self.environment, key=lambda name: str(name) != "job"):
            found = {**self.environment[process], **found}
        return found


def _always(_: JobView) -> bool:
    return True


@dataclass(frozen=True)
class Collector:
    """One kind of look, with the parser of its records.

    `look` gets the job and the seconds that it has, and returns its result, or several. One that
    raises or does not come back becomes evidence with the reason. `wanted` says whether looking is
    worth the time for this job. `rounds` are those of an attach in which the look is made: `first`
    lies between the first two looks at the stacks, `second` beside the second one, `last` after
    all others. A plan may also make the look itself, with arguments of its own: such a collector
    has no `look` and no `rounds`, and its file calls `record_look`.

    `parse` turns one record of `kind` into facts; None where `facts/` reads the kind, because logs
    and dumps bring it too. `join` then gets all facts of the case, and puts together what several
    records tell. `facts` are the types that `parse` and `join` yield.
    """

    kind: str
    look: Optional[Callable[[JobView, float], Results]]
    deadline_s: float
    source: str = ""
    rounds: Tuple[str, ...] = ("first",)
    wanted: Callable[[JobView], bool] = _always
    parse: Optional[Callable[[Evidence], List[Fact]]] = None
    join: Optional[Callable[[List[Fact]], List[Fact]]] = None
    facts: Tuple[Type[Fact], ...] = ()


@functools.cache
def built() -> Tuple[Collector, ...]:
    """Return the collectors of `collect/collectors/`, by name.

    Raises TypeError when a file there does not hold one `COLLECTOR` with the kind of its own name.
    """
    from trainprobe.collect import collectors

    found = []
    for module in pkgutil.iter_modules(collectors.__path__):
        name = f"{collectors.__name__}.{module.name}"
        collector = getattr(importlib.import_module(name), "COLLECTOR", None)
        if not isinstance(collector, Collector) or collector.kind != module.name:
            raise TypeError(f"{name} must hold one COLLECTOR of the kind {module.name}")
        found.append(collector)
    return tuple(found)


@functools.cache
def added() -> plugins.Added:
    """Return those of installed packages. A kind that is taken is left to the first."""
    return plugins.collectors(known=[collector.kind for collector in built()])


def every_collector() -> Tuple[Collector, ...]:
    return (*built(), *added().found)


def collect(
    case: Case, collector: Collector, job: JobView, deadline_s: Optional[float] = None
) -> List[Evidence]:
    """Make one look under its deadline and record its results; none where it is not wanted."""
    job = replace(job, folder=case.folder)
    allowed_s = collector.deadline_s if deadline_s is None else deadline_s

    def look() -> Results:
        assert collector.look is not None, collector.kind
        return collector.look(job, allowed_s) if collector.wanted(job) else ()

    return record_look(case, collector, look, cell=job.cell, deadline_s=allowed_s)


def record_look(
    case: Case,
    collector: Collector,
    look: Callable[[], Results],
    *,
    cell: str,
    subject: Optional[Subject] = None,
    deadline_s: Optional[float] = None,
) -> List[Evidence]:
    """Record each result that `look` brings in time. `subject` is the host by default."""

    def results() -> LookResult:
        found = look()
        return LookResult({"results": [found] if isinstance(found, LookResult) else list(found)})

    allowed_s = collector.deadline_s if deadline_s is None else deadline_s
    whole = side_by_side([results], allowed_s + SLACK_S)[0]
    found: Sequence[LookResult] = whole.data["results"] if whole.outcome == "ok" else [whole]
    return [
        record(
            case,
            collector.kind,
            result if result.began else result.at(whole.began, whole.took_s),
            subject=subject or host_subject(),
            cell=cell,
            source=collector.source,
        )
        for result in found
    ]
