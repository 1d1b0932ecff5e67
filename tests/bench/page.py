"""The time and size of the page at 1,024 and 4,096 ranks, and how soon a browser shows its answer;
fails over its limits.

python tests/bench/page.py [--ranks 1024 4096]

The report and the records are made: one rank of all waits for a lock. Times of writing are
processor time; those of the browser are its own, from the start of the page's load.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser.devtools import Browser, browser_program  # noqa: E402 - as above
from tests.unit.report.page.pages import large  # noqa: E402
from trainprobe.model.evidence import Evidence  # noqa: E402
from trainprobe.model.subjects import Subject  # noqa: E402
from trainprobe.report.page.document import page_of  # noqa: E402
from trainprobe.report.page.exhibits import exhibits_of  # noqa: E402

WRITTEN_S, PAINTED_S, MOVED_S, MOST_BYTES = 2.0, 0.5, 0.1, 1_500_000


def records(count: int) -> list[Evidence]:
    """A look at each rank's process and stack."""
    frames = [{"name": "step", "file": "train.py", "line": 88}] * 30
    return [
        Evidence(
            f"E{2 * rank + place}",
            kind,
            Subject("rank", f"node{rank // 8:04d}", rank, 40_000 + rank),
            data={"threads": [{"os_thread_id": rank, "frames": frames}] * 4},
        )
        for rank in range(count)
        for place, kind in enumerate(("process", "stacks.python"))
    ]


def painted(path: Path) -> tuple[float, float]:
    """Seconds to the first contentful paint, and of the slowest of a few steps in the grid."""
    program = browser_program()
    if program is None:
        return 0.0, 0.0
    with tempfile.TemporaryDirectory(prefix="profile-") as profile:
        browser = Browser(program, Path(profile))
        browser.open(path)
        paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        browser.until(lambda: browser.run(paint))
        first_ms = float(browser.run(paint))
        moved_ms = browser.run(
            """(() => {
                const grid = document.querySelector("#grid");
                grid.querySelector("[tabindex='0']").focus();
                let most = 0;
                for (const key of ["ArrowDown", "ArrowRight", "ArrowUp", "End", "Home"]) {
                    const began = performance.now();
                    document.activeElement.dispatchEvent(
                        new KeyboardEvent("keydown", {key, bubbles: true}));
                    grid.getBoundingClientRect();
                    most = Math.max(most, performance.now() - began);
                }
                return most;
            })()"""
        )
        browser.close()
    return first_ms / 1000, float(moved_ms) / 1000


def main() -> int:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--ranks", type=int, nargs="+", default=[1024, 4096])
    amiss = False
    for count in words.parse_args().ranks:
        report, evidence = large(count), records(count)
        began = time.process_time()
        text = page_of(report, exhibits_of(report, evidence))
        written_s = time.process_time() - began
        with tempfile.TemporaryDirectory(prefix="page-") as folder:
            path = Path(folder) / "page.html"
            path.write_text(text, encoding="utf-8")
            first_s, moved_s = painted(path)
        size = len(text.encode())
        print(
            f"{count} ranks: written in {written_s:.2f} s (limit {WRITTEN_S:g}), {size / 1e6:.2f} MB"
            f" (limit {MOST_BYTES / 1e6:g} at 1,024), first paint {first_s:.2f} s (limit"
            f" {PAINTED_S:g}), a step in the grid {moved_s:.3f} s (limit {MOVED_S:g})"
        )
        amiss |= written_s > WRITTEN_S or (count <= 1024 and size > MOST_BYTES)
        amiss |= count <= 1024 and (first_s > PAINTED_S or moved_s > MOVED_S)
    return 1 if amiss else 0


if __name__ == "__main__":
    sys.exit(main())
