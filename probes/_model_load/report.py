"""Reports what a load took, in words and events."""

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
            "was killed for want of memory"
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
