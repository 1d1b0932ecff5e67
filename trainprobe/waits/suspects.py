"""What the graph concludes: groups of suspects, each with its victims and the chain that
explains them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainprobe.model.diagnosis import Link
from trainprobe.model.predictions import Prediction
from trainprobe.model.waits import SuspectHow

PROBE = "job"
"""In place of a probe's name, for what was seen of a job that no probe started."""

Mode = Literal["hang", "crash", "slow", "check"]
DivergenceKind = Literal["operation", "call-site", "shape", "dtype", "order", "missing", "left-out"]


@dataclass(frozen=True)
class Divergence:
    """The earliest collective at which ranks did not do the same.

    `position` counts the collectives of one process group from 0. `camps` are sets of ranks that
    agree with each other, smallest first;
    `calls` says for each camp what it called, such as `all_reduce [4] float32 at train.py:88`.
    `sites` are (file, line) per camp.
    `ops` are the operations per camp. `followed` is false where the calls behind this one are
    unknown, so that another order of the same calls cannot be told from other calls. `missing`
    means that the first camp made fewer calls than the other and is not inside one; `left-out` that
    it waits elsewhere meanwhile, and that all other groups of that dimension of the mesh have made
    the call.
    """

    kind: DivergenceKind
    position: int
    camps: tuple[tuple[int, ...], ...]
    calls: tuple[str, ...]
    sites: tuple[tuple[str, int], ...] = ()
    evidence: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    followed: bool = True


@dataclass(frozen=True)
class Finding:
    """One thing that the stress test found wrong with a model.

    `name` is `<property>.<what was compared>`. `what` is module, parameter, buffer, attribute,
    option, size or loss, and `where` its dotted name; `module` is the module that it lies in, where
    that is another. `value` is beyond `threshold`, in `unit`; None where no number was told. `line`
    is the user's line that raised, and `raised` what it raised; empty where nothing did.
    """

    name: str
    says: str
    what: str = ""
    where: str = ""
    module: str = ""
    suite: str = ""
    value: float | None = None
    threshold: float | None = None
    unit: str = ""
    line: str = ""
    raised: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stressed:
    """One property of a model that does not hold, such as `mask`: its findings, the surest
    first, and the other properties that it may follow from.
    """

    property: str
    findings: tuple[Finding, ...]
    follows: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuspectGroup:
    """Ranks that share their evidence of being at the root of the trouble in one cell.

    `ranks` is empty when the trouble is the host's, the code's or the launch's. `camps` are the
    sets of ranks that stand at different places, smallest first, where the suspects are told apart
    by that alone. `mode` is what kind of trouble it is.
    `foreseen` is what will go wrong at the planned size, where nothing has yet. `stressed` is the
    property of the user's model that failed.
    `unready` names what `ready` found amiss on `hosts`: checks such as `lim.memlock`, `same.NAME`
    for a value that differs, `pair` for traffic,
    `node.look` for a node without an answer. `links` are pairs of hosts between which alone it
    fails; one way only, that is (from, to).
    `phase` is that of logtext.phases at which a log simply stops; `waits`: its text says that it
    waits.
    """

    cell: str
    probe: str
    ranks: tuple[int, ...]
    how: SuspectHow
    says: str
    mode: Mode
    victims: tuple[int, ...] = ()
    chain: tuple[Link, ...] = ()
    evidence: tuple[str, ...] = ()
    world_size: int = 1
    hosts: tuple[str, ...] = ()
    camps: tuple[tuple[int, ...], ...] = ()
    divergence: Divergence | None = None
    foreseen: Prediction | None = None
    stressed: Stressed | None = None
    unready: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    phase: str = ""
    waits: bool = False
