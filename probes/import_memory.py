# /// trainprobe
# rung: 30
# question: Does each import work alone, and do all ranks' imports fit in memory together?
# scope: host
# needs: [imports]
# timeout_s: 150
# climbs: []
# after: [environment]
# means: An import raises, hangs or crashes by itself, or fits once but not once for every rank of
#   this host.
# ///
"""Import each module alone in a fresh process, all of them in one, then everything in as many
processes as there are ranks, all at the same moment.

Environment: TRAINPROBE_IMPORTS (names, by commas; default torch), TRAINPROBE_NPROC,
TRAINPROBE_SCRIPT (its folder comes first on the path), TRAINPROBE_PLANNED_RANKS,
TRAINPROBE_DEADLINE_S, TRAINPROBE_IMPORT_TIMEOUT_S (for one import, 30). Flags: --imports, --nproc,
--script, --timeout-s.
Events: `note`/`fail` name=import: module, how (alone|whole|together), outcome
(passed|failed|timed_out|crashed|oom_killed|not_measured), took_s, rss_bytes, peak_bytes, as_bytes,
file_bytes, private_bytes (peak without pages of files), growth_bytes, threads, threads_by {module:
count}, fds, touched_cuda, cuda_by, lock_wait_s, lock_paths, programs {name: count}, forks,
compilers (most at once), build_bytes, error_type, error, last_frame, frames (outermost first),
rank, pid, signal, exit_code, cgroup_oom_rise, guarded (modules that the script imports under a
lock). A passed `whole` and `together` name all modules, by commas; any other names the module at
which it ended. `fail` name=import.foreseen: what the planned ranks would need. Measures:
import.took_s, import.rss, import.peak {module, how, ranks}, import.lock_wait_s {how, ranks},
limit.*. The children volunteer for the OOM killer (oom_score_adj), so that it takes one of them and
not this probe.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _import_memory import attempts, import_locks
from _shared.memory import memory_limits

MIB = 2**20


def report(result: Dict[str, Any]) -> bool:
    passed: bool = result["outcome"] == "passed"
    who = {"alone": "alone", "whole": "all in one process"}.get(
        result["how"], f"together with the others, rank {result['rank']}"
    )
    sentence = f"import {result['module']} ({who}): {result['outcome']}"
    if passed:
        sentence += (
            f" in {result['took_s']:.2f} s, {result['rss_bytes'] / MIB:.0f} MiB (peak"
            f" {result['peak_bytes'] / MIB:.0f}), {result['threads']} threads, {result['fds']}"
            " descriptors"
        )
        sentence += f"{', touched CUDA' if result['touched_cuda'] else ''}"
        sentence += (
            f", waited {result['lock_wait_s']:.1f} s for locks" if result["lock_wait_s"] else ""
        )
    elif result["last_frame"]:
        sentence += f" at {result['last_frame']}"
    sentence += (
        f": {result['error_type']}: {result['error'][:300]}" if result.get("error_type") else ""
    )
    (_emit.note if passed or result["outcome"] == "not_measured" else _emit.fail)(
        sentence + ".", name="import", **result
    )
    if passed and result["how"] != "together":
        for name in ("took_s", "rss", "peak"):
            _emit.measure(
                f"import.{name}",
                *(
                    (result["took_s"], "s")
                    if name == "took_s"
                    else (result[f"{name}_bytes"], "bytes")
                ),
                module=result["module"],
                how=result["how"],
                ranks=1,
            )
    return passed


def unsafe_to_fork(result: Dict[str, Any]) -> None:
    """Say which import left the process in a state that a fork does not survive."""
    started = result["threads"] - result["threads_before"]
    if started > 0:
        by = next(iter(result["threads_by"]), result["module"])
        sentence = (
            f"`import {result['module']}` leaves {started} thread{'s' if started > 1 else ''}"
            f" running ({by} starts them); a later fork copies their locks but not the threads."
        )
        _emit.check(
            "fork.threads_at_import",
            "warn",
            sentence,
            started,
            module=result["module"],
            by=by,
            count=started,
            fix="start loader workers with multiprocessing_context='forkserver', or import it in"
            " the workers only",
        )
    if result["touched_cuda"]:
        by = result["cuda_by"] or result["module"]
        sentence = (
            f"`import {result['module']}` initialises CUDA ({by}); a process forked later cannot"
            " use the GPU."
        )
        fix = f"move the CUDA calls out of the top level of {by}"
        _emit.check(
            "fork.cuda_at_import", "warn", sentence, by, module=result["module"], by=by, fix=fix
        )


def private_bytes(result: Dict[str, Any]) -> int:
    """What each more rank needs: the peak without shared pages of files, and its compilers."""
    return int(result["private_bytes"] + result["build_bytes"])


class Rung:
    def __init__(self, asked: Any, scratch: str) -> None:
        self.asked, self.scratch, self.began = asked, scratch, time.monotonic()
        self.failed: List[str] = []
        self.local_modules: List[str] = []
        self.foreseen = ""
        self.first = os.path.dirname(os.path.realpath(asked.script)) if asked.script else ""
        self.guarded = import_locks.guarded(asked.script) if asked.script else {}

    def left_s(self) -> float:
        deadline_s = _emit.seconds_from_environment("TRAINPROBE_DEADLINE_S", 150)
        return deadline_s - 5 - (time.monotonic() - self.began)

    def judged(self, result: Dict[str, Any]) -> Dict[str, Any]:
        """A module beside the script may need the script: only a lack of memory is its failure."""
        message = f"{result.get('error_type', '')} {result.get('error', '')}"
        memory = (
            result.get("cgroup_oom_rise")
            or "MemoryError" in message
            or "bad_alloc" in message
            or "allocate memory" in message
        )
        if result["module"] in self.local_modules and result["outcome"] != "passed" and not memory:
            result["outcome"] = "not_measured"
        return result

    def measure(self, modules: List[str], how: str, place: int) -> Dict[str, Any]:
        folder = os.path.join(self.scratch, str(place))
        os.mkdir(folder)
        with _emit.phase(f"import:{','.join(modules)}"):
            attempt = attempts.Attempt(folder, modules, self.first, how)
            attempts.run([attempt], self.asked.timeout_s)
        result = self.judged(attempt.result())
        if not report(result):
            self.failed += [result["module"]] if result["outcome"] != "not_measured" else []
        elif how == "alone":
            unsafe_to_fork(result)
        return result

    def together(self, modules: List[str], timeout_s: float) -> List[Dict[str, Any]]:
        nproc = self.asked.nproc
        under_lock = [module for module in modules if module in self.guarded]
        if under_lock:
            _emit.note(
                f"{os.path.basename(self.asked.script)} imports {', '.join(under_lock)} under a"
                " lock, so the ranks take turns here too."
            )
        with _emit.phase(f"import:together:{','.join(modules)}"):
            ranks = [
                attempts.Attempt(self.scratch, modules, self.first, "together", rank, self.guarded)
                for rank in range(nproc)
            ]
            most = attempts.run(ranks, timeout_s)
        result = [self.judged(item.result()) for item in ranks]
        self.failed += [
            f"rank {item['rank']}: {item['module']}"
            for item in result
            if not report(item) and item["outcome"] != "not_measured"
        ]
        limit, source = memory_limits().limit, "memory limit of the cgroup, or the host's memory"
        for kind in ("rss", "pss"):
            labels = {"threshold": limit, "source": source, "nproc": nproc}
            _emit.measure(f"imports_together_{kind}", most[kind], "bytes", **labels)
        through = [item for item in result if item["outcome"] == "passed"]
        for name, unit, field in (
            ("took_s", "s", "took_s"),
            ("rss", "bytes", "rss_bytes"),
            ("peak", "bytes", "peak_bytes"),
            ("lock_wait_s", "s", "lock_wait_s"),
        ):
            if through:
                worst = max(item[field] for item in through)
                labels = {"module": ",".join(modules), "how": "together", "ranks": nproc}
                _emit.measure(f"import.{name}", worst, unit, **labels)
        return result

    def foresee(self, whole: Dict[str, Any], alone: List[Dict[str, Any]]) -> None:
        """Compare the planned ranks' needs with this host, also if one rank at a time peaks."""
        limits, planned = memory_limits(), self.asked.planned
        stays = max(0, whole["rss_bytes"] - whole["file_bytes"])
        free = [
            private_bytes(item)
            for item in alone
            if item["outcome"] == "passed" and item["module"] not in self.guarded
        ]
        each = private_bytes(whole) if not self.guarded else max([stays, *free])
        in_turn = max(
            [
                private_bytes(item)
                for item in alone
                if item["module"] in self.guarded and item["outcome"] == "passed"
            ],
            default=0,
        )
        need = each * planned + in_turn + whole["file_bytes"]
        if planned > self.asked.nproc and need > limits.limit:
            jobs = (
                f", with MAX_JOBS={os.environ.get('MAX_JOBS', 'unset')} compilers each"
                if whole["compilers"]
                else ""
            )
            sentence = (
                f"{planned} ranks that import at once need {need / MIB:.0f} MiB{jobs}; the"
                f" limit is {limits.limit / MIB:.0f} MiB."
            )
            _emit.fail(
                sentence,
                name="import.foreseen",
                module=whole["module"],
                ranks=planned,
                need_bytes=need,
                each_bytes=each,
                limit_bytes=limits.limit,
            )
            self.foreseen = (
                f"{planned} ranks at once would need {need / MIB:.0f} MiB of"
                f" {limits.limit / MIB:.0f}"
            )


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.text("--imports", "TRAINPROBE_IMPORTS", "torch")
    parser.number("--nproc", "TRAINPROBE_NPROC", 1, 1)
    parser.text("--script", "TRAINPROBE_SCRIPT")
    parser.seconds(30, "TRAINPROBE_IMPORT_TIMEOUT_S")
    parser.number("--planned", "TRAINPROBE_PLANNED_RANKS", 0)  # ranks of the real run on this host
    asked = parser.parse_args()
    modules = list(dict.fromkeys(name.strip() for name in asked.imports.split(",") if name.strip()))
    if not modules or not all(re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", name) for name in modules):
        _emit.result("cannot", f"These are not module names: {asked.imports!r}.")
    with _emit.scratch_folder("import") as scratch:
        rung = Rung(asked, scratch)
        limits = memory_limits()
        space = resource.getrlimit(resource.RLIMIT_AS)[0]
        for name, value in (
            ("memory_bytes", limits.limit),
            ("memory_free_bytes", limits.free),
            ("as_bytes", space if space != resource.RLIM_INFINITY else 0),
        ):
            if value:
                _emit.measure(f"limit.{name}", value, "bytes")
        rung.local_modules = (
            [name for name in import_locks.neighbours(asked.script) if name not in modules][:8]
            if asked.script
            else []
        )
        modules += rung.local_modules
        alone = [rung.measure([module], "alone", place) for place, module in enumerate(modules)]
        works = [module for module, result in zip(modules, alone) if result["outcome"] == "passed"]
        slowest_s = sum(result.get("took_s", 0.0) for result in alone)
        whole = next((result for result in alone if result["outcome"] == "passed"), None)
        if (
            len(works) > 1
            and max(asked.nproc, asked.planned) > 1
            and rung.left_s() > slowest_s * (2 + asked.nproc)
        ):
            whole = rung.measure(works, "whole", len(modules))
        if asked.nproc > 1 and works:
            timeout_s = max(
                asked.timeout_s, 3 * slowest_s * asked.nproc / max(1, len(os.sched_getaffinity(0)))
            )
            rung.together(works, min(timeout_s, max(5.0, rung.left_s())))
        if whole is not None and whole["outcome"] == "passed":
            rung.foresee(whole, alone)
    if rung.failed:
        _emit.result("no", f"Imports failed: {', '.join(rung.failed)}.")
    good = f"{len(works)} imports work, alone and in {asked.nproc} processes at once"
    if rung.foreseen:
        _emit.result("no", f"{good}; {rung.foreseen}.")
    _emit.result("yes", f"{good}.")


if __name__ == "__main__":
    main()
