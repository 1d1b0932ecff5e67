"""The jobs of `trainprobe demo`, from jobs.yaml."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.errors import UsageError
from trainprobe.shipped import shipped


@dataclass(frozen=True)
class DemoJob:
    """One job. `about` is what it does, `cause` what should be found (empty where nothing is
    broken), `moral` what the answer rests on. `beside` is a program that runs outside of it, empty
    for none, and `beside_makes` the file that tells that it is ready; `needs` are packages beyond
    torch.
    """

    name: str
    ranks: int
    about: str
    cause: str
    moral: str
    beside: str = ""
    beside_makes: str = ""
    needs: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The name of its program, without the ending."""
        return self.name.replace("-", "_")

    def missing(self, installed: Sequence[str]) -> tuple[str, ...]:
        """Those of its packages that are not among `installed`."""
        return tuple(name for name in self.needs if name not in installed)


def jobs() -> tuple[DemoJob, ...]:
    """Return all jobs, in the order of the file."""
    return tuple(
        DemoJob(
            name,
            int(row["ranks"]),
            str(row["about"]),
            str(row["cause"]),
            str(row["moral"]),
            str(row.get("beside", "")),
            str(row.get("beside_makes", "")),
            tuple(row.get("needs", ())),
        )
        for name, row in shipped("trainprobe.demo", "jobs.yaml").items()
    )


def job_called(name: str) -> DemoJob:
    """Return the job of this name; raises UsageError, with the nearest name, where there is
    none.
    """
    known = {job.name: job for job in jobs()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    raise UsageError(
        f"There is no demo called {name[:40]!r}.",
        f"Did you mean {near[0]}?" if near else "See them all: trainprobe demo.",
    )
