"""What a load took, in words and events."""

from __future__ import annotations

from typing import Any, Dict

import _emit

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
KINDS = {"failed": "raised", "timed_out": "stood"}  # of what failed, in the words that all probes of the user's objects use


def size(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def says_of(told: Dict[str, Any]) -> str:
    who = "Alone" if told["ranks"] == 1 else f"Rank {told['rank']} of {told['ranks']}"
    how = "" if told["way"] == GIVEN else f", {WORDS[told['way']]}"
    if told["outcome"] == "passed":
        return f"{who} the model loads{how} in {told['took_s']:.2f} s, {size(told['peak_bytes'])}, of which {size(told['private_bytes'])} are its own."
    frame = (told.get("frames") or [{}])[-1]
    where = f" at {frame['file']}:{frame['line']} in {frame['function']}" if frame else ""
    by = f"{told['signal']}" if told.get("signal") else f"exit code {told.get('exit_code')}"
    why = {
        "died": f"died ({by})",
        "timed_out": "its imports did not end in time" if told.get("step") == "import" else "it did not end in time",
    }
    what = why.get(
        told["outcome"],
        "was killed for want of memory" if told["outcome"] == "oom_killed" else f"{told.get('type', '')} {told.get('message', '')}".strip()[:300],
    )
    return f"{who} the model does not load{how}{where}: {what}."


def report(told: Dict[str, Any]) -> bool:
    """Write the numbers of one process, or its failure; True where it loaded."""
    labels = {"how": told["way"], "ranks": told["ranks"], "rank": told["rank"]}
    if told["outcome"] == "passed":
        _emit.note(says_of(told), name="load", **told)
        _emit.measure("load.took_s", told["took_s"], "s", **labels)
        _emit.measure("load.host_peak", told["peak_bytes"], "bytes", **labels)
        _emit.measure("load.private", told["private_bytes"], "bytes", **labels)
        for device in told.get("devices", ()):
            _emit.measure(
                "load.device_peak", device["peak_bytes"], "bytes", threshold=device["total_bytes"], source="memory of the GPU", device=device["index"], **labels
            )
        return True
    if told["outcome"] == "mistyped":
        return False
    if told["outcome"] == "not_applicable":
        _emit.note(f"{WORDS[told['way']]}: not for this model ({told.get('message', '')[:200]}).")
        return False
    if told["way"] != GIVEN:  # that another way is not open to this model is no fault of it
        _emit.note(says_of(told), name="load", **told)
        return False
    _emit.fail(says_of(told), name="load", given="model", kind=KINDS.get(told["outcome"], told["outcome"]), **told)
    return False


def need_of(told: Dict[str, Any], ranks: int) -> int:
    """Bytes that `ranks` such processes need: what each has for itself, and once the pages of files that they share."""
    return int(told["private_bytes"] * ranks + told["shared_bytes"])
