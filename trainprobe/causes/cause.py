"""A cause: a fault that somebody can fix, the evidence for and against it, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from trainprobe.causes.scene import Scene
from trainprobe.model.diagnosis import Fix, Weighing

Mode = Literal["hang", "crash", "slow", "check"]


def nobody(scene: Scene) -> tuple[int, ...]:
    """The `ranks` of a cause whose fault lies with the code, the host or the launch."""
    del scene
    return ()


@dataclass(frozen=True)
class ReadySigns:
    """What `trainprobe ready` finds of one fault of a node or a link.

    `says` is the fault as a predicate, for one node and for several. `checks` are ids of the
    catalogue of checks; `values` are names that all nodes must share, and one that ends in a dot
    stands for all that begin with it, except `but`. `hows` are the ways in which traffic between
    nodes fails; `silence` is a node that does not answer. `admin` are steps for an administrator.
    """

    says: tuple[str, str]
    checks: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    hows: tuple[str, ...] = ()
    silence: bool = False
    admin: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cause:
    """One entry of the catalogue.

    `id` names the fault (`file-lock-held`); `title` states it in a few words. `modes` are the kinds
    of suspect group for which the cause competes. `weigh` yields evidence points, and nothing for
    what was not measured. `summary` is one sentence, subject first. `fixes` are ordered, cheapest
    and safest first; a tuple where they are always the same. `ranks` are those that must act
    differently, `()` where the fault lies with the code, the host or the launch. `would_settle` is
    the cheapest next step that separates this cause from its neighbours.

    `refines` names the more general cause that this one replaces when both hold; `accounts_for`
    names others whose signs it explains. `ready` is what `trainprobe ready` finds of it; a cause
    that only `ready` shows has no `weigh`, `summary` and `fixes` of its own. `wording` is a regular
    expression for the exception texts that name this cause; a more general cause then steps back.

    The page of a built-in cause is the docstring of its file. A plugin has no such file: it gives
    `means`, one or two sentences, and `telling`, the evidence that shows it.
    """

    id: str
    title: str
    would_settle: str
    modes: tuple[Mode, ...] = ("crash", "hang", "check")
    weigh: Callable[[Scene], Iterable[Weighing]] = lambda scene: ()  # noqa: ARG005
    summary: Callable[[Scene], str] = lambda scene: ""  # noqa: ARG005
    fixes: tuple[Fix, ...] | Callable[[Scene], tuple[Fix, ...]] = ()
    ranks: Callable[[Scene], tuple[int, ...]] = lambda scene: scene.ranks
    pids: Callable[[Scene], tuple[int, ...]] = nobody
    refines: str = ""
    accounts_for: tuple[str, ...] = ()
    wording: str = ""
    ready: ReadySigns | None = None
    means: str = ""
    telling: str = ""

    def fixes_for(self, scene: Scene) -> tuple[Fix, ...]:
        """The fixes for this suspect group."""
        return self.fixes(scene) if callable(self.fixes) else self.fixes
