"""Makes golden cases from real runs.

    python -m tests.cases.capture                     run every recipe of tests/cases/recipes.py, scrub and keep the cases
    python -m tests.cases.capture rank-stuck          only this one
    python -m tests.cases.capture rank-stuck --from ./run/case    keep a case that is there already, made in ./run

A new case: add its recipe with the truth about it, capture it, read
tests/cases/NAME/expected/report.txt with your own eyes, and look through evidence.jsonl for names
of your machine. tests/test_cases.py does the rest.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.cases.expectation import CASES, accept
from tests.cases.recipes import RECIPES, run
from tests.cases.scrub import scrub_case


def capture(name: str, made: Path | None) -> str:
    """Keep the case `made`, or that of a new run, under `name`; return what to tell."""
    with tempfile.TemporaryDirectory(prefix="job-") as folder:
        scrub_case(made or run(RECIPES[name], Path(folder)), CASES / name)
    try:
        accept(name)
    except ValueError as error:
        return f"{error}; the case is kept without an expectation"
    return f"{name}: kept"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="all by default")
    parser.add_argument(
        "--from", dest="made", type=Path, metavar="CASE", help="a case that is there already"
    )
    given = parser.parse_args()
    unknown = set(given.names) - set(RECIPES)
    if unknown or (given.made and len(given.names) != 1):
        parser.error(
            f"no recipe for {', '.join(sorted(unknown))}"
            if unknown
            else "--from goes with one NAME"
        )
    for name in given.names or RECIPES:
        print(capture(name, given.made.resolve() if given.made else None), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
