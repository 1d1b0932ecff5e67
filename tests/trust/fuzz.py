"""Changed inputs for every reader of what somebody else wrote: none may raise what it does not say,
and none may take longer than a second a megabyte.

python -m tests.trust.fuzz [--minutes 1] [--seed 1] [--only NAME] [--failed FOLDER]

An input that runs code of a reader that none before it ran is kept and changed further, so that
the inputs grow into the reader. Lines are traced for one input of eight.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tests.trust.readers import READERS, Reader

TOKENS = """
0 -1 1e999 nan 99999999999999999999999 0x 2147483648 ² ٣ \x00 \ud800 \x1b[ % %s {} [ ] { } ( ) " ' \\ / : ; , = #
$( ${ `  | & < > - -- .. ~ \t \r \n \n\n None null true NaN \ufeff é 漢 [[[[[[[[ {{{{{{{{ (((((((( "a":{"b":[ !!python
""".split(" ")
MOST_SIZE = 20_000
S_PER_MB, S_LEAST = 1.0, 0.5
TRACED = 8  # one input of so many is traced


class Failure(NamedTuple):
    reader: str
    text: str
    what: str


def changed(text: str, others: list[str], draw: random.Random) -> str:
    for _ in range(draw.choice((1, 1, 2, 3, 6))):
        at, to = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
        to = min(to, at + draw.choice((1, 2, 8, 64, 4096)))
        way = draw.randrange(7)
        if way == 0:
            text = text[:at] + text[to:]
        elif way == 1:
            text = text[:at] + draw.choice(TOKENS) + text[to:]
        elif way == 2:
            text = text[:at] + text[at:to] * draw.choice((2, 3, 50)) + text[to:]
        elif way == 3:
            other = draw.choice(others)
            start = draw.randint(0, len(other))
            text = text[:at] + other[start : start + to - at + 8] + text[to:]
        elif way == 4:
            text = (
                text[:at]
                + chr(draw.choice((draw.randrange(128), draw.randrange(0x3000))))
                + (text[at + 1 :])
            )
        elif way == 5:
            text = text[:at]
        else:
            text = text[:at] + draw.choice(TOKENS) * draw.choice((1, 2, 40)) + text[at:]
    return text[:MOST_SIZE]


class Lines:
    """The lines of trainprobe that have run so far."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self.new = 0

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if "trainprobe" not in frame.f_code.co_filename:
            return None
        if (
            event == "line"
            and (here := (frame.f_code.co_filename, frame.f_lineno)) not in self.seen
        ):
            self.seen.add(here)
            self.new += 1
        return self.trace

    def grown_by(self, reader: Reader, text: str) -> int:
        self.new = 0
        sys.settrace(self.trace)
        try:
            once(reader, text)
        finally:
            sys.settrace(None)
        return self.new


def once(reader: Reader, text: str) -> Failure | None:
    """Give `text` to the reader; return what went wrong, if anything did. What takes long does so
    twice: the first time something may be imported.
    """
    found = _once(reader, text)
    return _once(reader, text) if found is not None and found.what.startswith("took ") else found


def _once(reader: Reader, text: str) -> Failure | None:
    began = time.thread_time()
    try:
        reader.read(text)
    except reader.may_raise:
        pass
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Failure(reader.name, text, f"{type(error).__name__}: {error}")
    took_s = time.thread_time() - began
    if took_s > max(S_LEAST, len(text) / 1e6 * S_PER_MB):
        return Failure(reader.name, text, f"took {took_s:.2f} s for {len(text)} characters")
    return None


def fuzz(
    readers: list[Reader], seed: int, seconds: float | None, inputs: int | None
) -> tuple[dict[str, int], list[Failure]]:
    draw, lines = random.Random(seed), Lines()
    counts: collections.Counter[str] = collections.Counter()
    failures: dict[tuple[str, str], Failure] = {}
    grown = {reader.name: list(reader.seeds) for reader in readers}
    ends = None if seconds is None else time.monotonic() + seconds
    while ends is None or time.monotonic() < ends:
        for reader in readers:
            pool = grown[reader.name]
            for _ in range(reader.at_once):
                text = changed(draw.choice(pool), pool, draw)
                bad = None
                if inputs is None and draw.randrange(TRACED) == 0:
                    if lines.grown_by(reader, text):
                        pool.append(text)
                else:
                    bad = once(reader, text)
                counts[reader.name] += 1
                if bad is not None:
                    kind = re.sub(r"[0-9]+|'.*", "", bad.what)[:40]
                    failures.setdefault((bad.reader, kind), bad)
        if inputs is not None and max(counts.values()) >= inputs:
            break
    return dict(counts), list(failures.values())


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="")
    options.add_argument("--failed", type=Path, help="write the inputs that failed there")
    asked = options.parse_args()
    readers = [reader for reader in READERS if asked.only in reader.name]
    counts, failures = fuzz(readers, asked.seed, asked.minutes * 60, None)
    print(f"{sum(counts.values())} inputs for {len(readers)} readers, {len(failures)} failures")
    for number, failure in enumerate(failures):
        print(f"{failure.reader}: {failure.what[:200]}\n    {failure.text[:300]!r}")
        if asked.failed is not None:
            asked.failed.mkdir(parents=True, exist_ok=True)
            (asked.failed / f"{failure.reader}-{number}.txt").write_text(
                failure.text, "utf-8", "surrogatepass"
            )
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
