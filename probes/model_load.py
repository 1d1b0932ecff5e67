# /// trainprobe
# rung: 85
# question: Does the model load, and do all ranks of this host have room to load it together?
# scope: host
# needs: [torch, model]
# timeout_s: 300
# climbs: []
# after: [environment]
# means: The model does not load in one process, or it loads once but not once for every rank of
#   this host.
# ///
"""Load the model alone in a fresh process, then in as many as there are ranks at the same moment,
then by each cheaper way that it allows.

Environment: TRAINPROBE_MODEL (pkg.module:factory, file.py:factory, a folder with config.json, or a
file of weights), TRAINPROBE_NPROC, TRAINPROBE_PLANNED_RANKS, TRAINPROBE_DEVICE,
TRAINPROBE_DEADLINE_S. Flags: --model, --nproc, --planned-ranks, --timeout-s (for all of it).
Measures, by how (given, mmap, meta, assign …, `given-in-turn` for one rank after the other), ranks
and rank: load.took_s, load.host_peak (highest resident), load.private (what no other process can
share of it), load.device_peak; pss of all together; load.need (predicted for the planned ranks);
limit.*. The children volunteer for the OOM killer (oom_score_adj), so that it takes one of them. A
file of weights is only read with weights_only=True.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _model_load import attempts, ways
from _shared.memory import memory_limits

CHEAPER = {
    "factory": ("mmap", "meta"),
    "folder": ("assign", "low_cpu_mem_usage", "dtype"),
    "file": ("mmap",),
}
WORTH = 0.8  # a way is cheaper where it takes less than this part of what the given one takes
GIVEN = "given"
WORDS = {
    GIVEN: "as it was given",
    "mmap": "torch.load(..., mmap=True)",
    "meta": "built under torch.device('meta'), the weights still to be read",
    "assign": "built under torch.device('meta'), then load_state_dict(..., assign=True)",
    "low_cpu_mem_usage": "from_pretrained(..., low_cpu_mem_usage=True)",
    "dtype": "from_pretrained(..., torch_dtype='auto', low_cpu_mem_usage=True)",
    "given-in-turn": "one rank after the other",
}
# of what failed, in the words that all probes of the user's objects use
KINDS = {"failed": "raised", "timed_out": "stood"}


def size(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def says_of(result: Dict[str, Any]) -> str:
    who = "Alone" if result["ranks"] == 1 else f"Rank {result['rank']} of {result['ranks']}"
    how = "" if result["way"] == GIVEN else f", {WORDS[result['way']]}"
    if result["outcome"] == "passed":
        return (
            f"{who} the model loads{how} in {result['took_s']:.2f} s, {size(result['peak_bytes'])},"
            f" of which {size(result['private_bytes'])} are its own."
        )
    frame = (result.get("frames") or [{}])[-1]
    where = f" at {frame['file']}:{frame['line']} in {frame['function']}" if frame else ""
    by = f"{result['signal']}" if result.get("signal") else f"exit code {result.get('exit_code')}"
    why = {
        "died": f"died ({by})",
        "timed_out": (
            "its imports did not end in time"
            if result.get("step") == "import"
            else "it did not end in time"
        ),
    }
    what = why.get(
        result["outcome"],
        (
            "ran out of memory and was killed"
            if result["outcome"] == "oom_killed"
            else f"{result.get('type', '')} {result.get('message', '')}".strip()[:300]
        ),
    )
    return f"{who} the model does not load{how}{where}: {what}."


def report(result: Dict[str, Any]) -> bool:
    """Write the numbers of one process, or its failure; True where it loaded."""
    labels = {"how": result["way"], "ranks": result["ranks"], "rank": result["rank"]}
    if result["outcome"] == "passed":
        _emit.note(says_of(result), name="load", **result)
        _emit.measure("load.took_s", result["took_s"], "s", **labels)
        _emit.measure("load.host_peak", result["peak_bytes"], "bytes", **labels)
        _emit.measure("load.private", result["private_bytes"], "bytes", **labels)
        for device in result.get("devices", ()):
            _emit.measure(
                "load.device_peak",
                device["peak_bytes"],
                "bytes",
                threshold=device["total_bytes"],
                source="memory of the GPU",
                device=device["index"],
                **labels,
            )
        return True
    if result["outcome"] == "mistyped":
        return False
    if result["outcome"] == "not_applicable":
        _emit.note(
            f"{WORDS[result['way']]}: not for this model ({result.get('message', '')[:200]})."
        )
        return False
    if result["way"] != GIVEN:  # that another way is not open to this model is no fault of it
        _emit.note(says_of(result), name="load", **result)
        return False
    _emit.fail(
        says_of(result),
        name="load",
        given="model",
        kind=KINDS.get(result["outcome"], result["outcome"]),
        **result,
    )
    return False


def need_of(result: Dict[str, Any], ranks: int) -> int:
    """Bytes that `ranks` processes need: each one's own, and the shared pages of files once."""
    return int(result["private_bytes"] * ranks + result["shared_bytes"])


class Rung:
    def __init__(self, asked: Any, folder: str) -> None:
        self.asked, self.folder, self.began = asked, folder, time.monotonic()
        self.limits = memory_limits()
        self.planned = max(asked.planned_ranks, asked.nproc)

    def left_s(self) -> float:
        return float(self.asked.timeout_s - 5 - (time.monotonic() - self.began))

    def load(
        self, way: str, ranks: int, timeout_s: float, *, in_turn: bool = False
    ) -> List[Dict[str, Any]]:
        named = f"{way}-in-turn" if in_turn else way
        with _emit.phase(f"load:{named}:{ranks}"):
            loads = attempts.load(
                os.path.join(self.folder, f"{named}{ranks}"),
                self.asked.model,
                named,
                ranks,
                timeout_s,
                in_turn=in_turn,
            )
        result = [item.result() for item in loads.attempts]
        if ranks > 1:
            _emit.measure(
                "pss",
                max(loads.most_pss, loads.most_private),
                "bytes",
                how=named,
                ranks=ranks,
                threshold=self.limits.limit,
                source="memory limit",
            )
        return result

    def may_try(self, need: int) -> bool:
        """Not where it would take the whole host, or a cgroup whose kill ends the ladder too."""
        return need < 0.9 * self.limits.host_free and (
            need < 0.9 * self.limits.free or not self.limits.whole_group
        )

    def climb(self) -> None:
        alone = self.load(GIVEN, 1, max(5.0, 0.45 * self.left_s()))[0]
        if not report(alone):
            if alone["outcome"] == "mistyped":
                _emit.result("cannot", alone["sentence"])
            _emit.result("no", says_of(alone))
        asked, limits = self.asked, self.limits
        need = need_of(alone, self.planned)
        _emit.measure(
            "load.need",
            need,
            "bytes",
            ranks=self.planned,
            how=GIVEN,
            threshold=limits.limit,
            source="memory limit of the cgroup, or the host's memory",
        )
        together: List[Dict[str, Any]] = []
        if asked.nproc > 1 and self.may_try(need_of(alone, asked.nproc)):
            together = self.load(
                GIVEN,
                asked.nproc,
                min(0.6 * self.left_s(), 20 + 4 * asked.nproc * (alone["took_s"] + 5)),
            )
        elif asked.nproc > 1:
            _emit.note(
                f"{asked.nproc} ranks are not loaded together: they would take"
                f" {size(need_of(alone, asked.nproc))}, and"
                f" {size(limits.free)} are free."
            )
        bad = [item for item in together if not report(item)]
        needs = self.cheaper(alone, short=bool(bad) or need > limits.limit)
        best = min(needs, key=lambda way: needs[way], default="")
        do = ""
        if best:
            do = (
                f"{WORDS[best]}: {size(needs[best])} for {self.planned} ranks instead"
                f" of {size(need)}"
            )
            value = {"how": best, "need": needs[best], "given": need, "ranks": self.planned}
            _emit.check("model.cheaper", "ok", do + ".", {**value, "all": needs})
        self.devices(together)
        if bad:
            _emit.result(
                "no",
                f"One process loads the model, {asked.nproc} at once do not ({bad[0]['outcome']})."
                + (f" {do}." if do else ""),
            )
        if need > limits.limit:
            sentence = (
                f"Together {self.planned} ranks need {size(need)} to load the model, the"
                f" limit is {size(limits.limit)}."
            )
            value = {"need": need, "limit": limits.limit, "ranks": self.planned}
            _emit.check("model.memory", "fail", sentence, value, fix=do)
            _emit.result("no", sentence + (f" {do}." if do else ""))
        if need > limits.free:
            sentence = (
                f"Together {self.planned} ranks need {size(need)} to load the model, and"
                f" {size(limits.free)} are free now."
            )
            value = {"need": need, "free": limits.free, "ranks": self.planned}
            _emit.check("model.memory", "warn", sentence, value, fix=do)
        _emit.result(
            "yes",
            f"{says_of(alone)[:-1]}; {self.planned} ranks need {size(need)} of"
            f" {size(limits.limit)}.",
        )

    def worth(self, need: int, given: int) -> bool:
        return need < WORTH * given or need <= self.limits.limit < given

    def cheaper(self, alone: Dict[str, Any], *, short: bool) -> Dict[str, int]:
        """Measure the other ways, each in a process; return the needs of the worthwhile."""
        given, needs = need_of(alone, self.planned), {}
        eager = [row for row in alone.get("torch_loads", ()) if row["path"] and not row["mmap"]]
        kind = ways.kind_of(self.asked.model)
        for way in CHEAPER[kind]:
            if (way == "mmap" and kind == "factory" and not eager) or self.left_s() < alone[
                "took_s"
            ] + 10:
                continue
            result = self.load(way, 1, min(self.left_s() - 2, 20 + 4 * alone["took_s"]))[0]
            if (
                report(result)
                and way != "meta"
                and self.worth(need_of(result, self.planned), given)
            ):
                needs[way] = need_of(result, self.planned)
        # In turn only one is at its peak at a time; what the others keep they keep.
        turn = int(
            (self.planned - 1) * alone["anon_bytes"]
            + alone["private_bytes"]
            + alone["shared_bytes"]
        )
        if self.planned > 1 and self.worth(turn, given):
            needs["given-in-turn"] = turn
        if (
            short
            and self.asked.nproc > 1
            and turn < self.limits.limit
            and self.left_s() > 2 * self.asked.nproc * (alone["took_s"] + 5)
        ):
            in_turn = self.load(GIVEN, self.asked.nproc, self.left_s() - 2, in_turn=True)
            if not all(list(map(report, in_turn))):
                needs.pop("given-in-turn", None)
        return needs

    def devices(self, together: List[Dict[str, Any]]) -> None:
        """Ranks that load onto GPU 0 although each has a GPU of its own."""
        strayed = [
            item["rank"]
            for item in together
            if item["rank"]
            and any(device["index"] == 0 for device in item.get("devices", ()))
            and len(item["devices"]) > 1
        ]
        if strayed:
            sentence = (
                f"Ranks {', '.join(map(str, strayed))} load onto GPU 0 before they use their own."
            )
            fix = "torch.load(path, map_location=f'cuda:{local_rank}')"
            _emit.check("model.device", "warn", sentence, strayed, fix=fix)


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.text("--model", "TRAINPROBE_MODEL")
    parser.number("--nproc", "TRAINPROBE_NPROC", 1, 1)
    parser.number("--planned-ranks", "TRAINPROBE_PLANNED_RANKS", 1, 1)
    parser.seconds(300)
    asked = parser.parse_args()
    if not asked.model:
        _emit.result("cannot", "No model was named.")
    limits = memory_limits()
    _emit.measure("limit.memory_bytes", limits.limit, "bytes")
    _emit.measure("limit.memory_free_bytes", limits.free, "bytes")
    with _emit.scratch_folder("model") as folder:
        Rung(asked, folder).climb()


if __name__ == "__main__":
    main()
