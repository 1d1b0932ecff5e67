"""Reports which failures a fork causes, and which step made it unsafe."""

from __future__ import annotations

import re
from typing import Any, Dict, List

import _emit

# What a script says that forks otherwise than through a DataLoader, whose workers set torch's
# threads to one before anything else.
FORKS = re.compile(
    r"\bos\.fork\(|\bnum_proc\s*=\s*(?!None)[\w.]|ProcessPoolExecutor|\b(?:multiprocessing|mp"
    r"|multiprocess)\.(?:Pool|Process)\("
    r"|from (?:torch\.)?multiprocess(?:ing)? import [^\n]*\b(?:Pool|Process)\b|\bjoblib\b"
)
AFRESH = re.compile(
    r"set_start_method\(\s*[\"'](?:spawn|forkserver)|get_context\(\s*[\"'](?:spawn|forkserver)"
)
CUDA_WORDS = re.compile(
    r"Cannot re-initialize \w+ in forked subprocess|CUDA error: initialization error"
)
LATER = "touch the GPU after the loaders' workers are started"


def forks_itself(text: str) -> bool:
    return FORKS.search(text) is not None and AFRESH.search(text) is None


def where(row: Dict[str, Any]) -> str:
    """The innermost frame that is not ours, as `file.py:12 in function`."""
    frames = row.get("frames")
    return (
        f"{frames[-1]['file']}:{frames[-1]['line']} in {frames[-1]['function']}" if frames else ""
    )


class Report:
    """Says what the rows mean for this rung's own question."""

    def __init__(self, rows: List[Dict[str, Any]], forks_itself: bool) -> None:
        self.rows, self.forks_itself, self.bad = rows, forks_itself, []  # type: ignore[var-annotated] # sentences
        self.controls = {row["op"]: row for row in self.of("control")}

    def of(self, kind: str) -> List[Dict[str, Any]]:
        return [row for row in self.rows if row["kind"] == kind]

    def steps(self) -> None:
        for row in self.of("step"):
            names = sorted(
                {
                    f"{item['name'] or item['comm']}"
                    + (f" started at {item['where']}" if item["where"] else "")
                    for item in row["started"]
                }
            )
            labels = {"module": row["step"], "names": names[:8], "took_s": row["took_s"]}
            _emit.measure("fork.threads_before", len(row["started"]), "", **labels)
            if row["cuda"]:
                sentence = (
                    f"`{row['step']}` initialises CUDA, which a forked process cannot use any more."
                )
                _emit.check(
                    "fork.cuda",
                    "warn",
                    sentence,
                    {"step": row["step"], "by": row["cuda"]},
                    fix=LATER,
                )
            if row["error"]:
                _emit.note(
                    f"`{row['step']}` raised {row['error']['type']}:"
                    f" {row['error']['message'][:200]}; what follows is without it.",
                    name="step",
                    **row["error"],
                )
        for row in self.of("state"):
            if len(row["families"]) > 1:
                sentence = (
                    f"Two OpenMP runtimes are loaded at once: {' and '.join(row['families'])}"
                    f" ({', '.join(row['runtimes'])})."
                )
                fix = "conda install nomkl, or packages of one channel"
                _emit.check("fork.openmp", "warn", sentence, row["families"], fix=fix)

    def children(self) -> None:
        passed_in_one = any(
            row["outcome"] == "passed" and row["op"].startswith("torch.mm in one thread")
            for row in self.of("child")
        )
        for row in self.of("child"):
            labels = {"op": row["op"], "outcome": row["outcome"], "library": row["library"]}
            _emit.measure("fork.child", row["took_s"], "s", **labels)
            control = self.controls.get(row["op"])
            late = (
                row["outcome"] in ("hangs", "slow")
                and control is not None
                and control["took_s"] > row["took_s"] / 2
            )
            if row["outcome"] == "passed" or control is None or control["error"] or late:
                # what fails, or takes its time, without a fork too is not laid to the fork
                continue
            sentence = self.sentence(row)
            details = {
                **row,
                "kind": self.kind(row),
                "where": where(row),
                "culprits": self.culprits(row),
                "runtimes": self.of("state")[0]["runtimes"] if self.of("state") else [],
            }
            if row["library"] == "torch" and row["op"].startswith("torch.zeros"):
                _emit.check("fork.cuda", "warn", sentence, details["culprits"], fix=LATER)
            elif row["op"] == "torch.mm" and passed_in_one and not self.forks_itself:
                fix = (
                    "torch.set_num_threads(1) in the child, as the workers of a DataLoader do by"
                    " themselves"
                )
                _emit.check(
                    "fork.thread_pool",
                    "warn",
                    f"{sentence} The workers of a DataLoader pass, since they use one thread.",
                    details,
                    fix=fix,
                )
            else:
                self.bad.append(sentence)
                _emit.fail(sentence, name="fork", **details)

    def sentence(self, row: Dict[str, Any]) -> str:
        ended = {
            "hangs": "hangs",
            "slow": "does not end",
            "raised": f"raises {row.get('type')}: {row.get('message', '')[:200]}",
        }.get(row["outcome"])
        ended = (
            ended or f"dies (signal {row['signal']})"
            if row.get("signal")
            else ended or f"dies (exit code {row.get('exit_code')})"
        )
        at = f" at {where(row)}" if where(row) else ""
        after = self.culprits(row)
        since = f" after {after[0]}" if after else ""
        return f"A forked child {ended} in {row['op']}{at}{since}; the same works without a fork."

    def kind(self, row: Dict[str, Any]) -> str:
        """cuda, lock or pool: what the child found changed; other where that is unknown."""
        if CUDA_WORDS.search(row.get("message") or ""):
            return "cuda"
        last = (row.get("frames") or [{"file": "", "function": ""}])[-1]
        if row.get("lock") or re.search(
            r"/(?:threading|queue)\.py$|/logging/__init__\.py$", last["file"]
        ):
            return "lock"
        return (
            "pool"
            if row["library"] in ("torch", "numpy", "tokenizers", "cv2") or self.broken_after()
            else "other"
        )

    def broken_after(self) -> List[str]:
        """The steps after which work that is done in several threads no longer ended in a child."""
        return list(dict.fromkeys(row["after"] for row in self.of("child") if row.get("after")))

    def culprits(self, row: Dict[str, Any]) -> List[str]:
        """The steps that left behind what the child did not survive."""
        steps, kind = self.of("step"), self.kind(row)
        if kind == "cuda":
            return [f"`{item['step']}`" for item in steps if item["cuda"]]
        if kind == "lock":
            starters = [
                f"`{item['step']}` started the thread {each['name']} at {each['where']}"
                for item in steps
                for each in item["started"]
                if each["name"]
            ]
            return starters or list(row.get("others", ()))
        after = [row["after"]] if row.get("after") else self.broken_after()
        counts = {item["step"]: sum(not each["name"] for each in item["started"]) for item in steps}
        return [f"`{name}` started {counts.get(name, 0)} native threads" for name in after]

    def known(self) -> None:
        """What is good to know and no fault of the script."""
        for row in self.of("what-if"):
            sentence = (
                f"{row['op']} in a child"
                f" {'passes' if row['outcome'] == 'passed' else row['outcome']} where the parent"
                " had used torch's threads before the fork."
            )
            _emit.check(
                "fork.parallel_region", "ok", sentence, {"op": row["op"], "outcome": row["outcome"]}
            )
        for row in self.of("map"):
            versions = row.get("value") or {}
            if row["outcome"] == "passed" and versions:
                forks = "starts a process" if versions["forks_at_one"] else "starts no process"
                sentence = (
                    f"datasets {versions['version']}: map(num_proc=1) {forks}, num_proc=None"
                    f" {'does too' if versions['forks_at_none'] else 'starts none'}."
                )
                _emit.check("fork.datasets_map", "ok", sentence, versions)
            else:
                sentence = f"datasets.map in a forked child: {row['outcome']}."
                _emit.check("fork.datasets_map", "unknown", sentence, row["outcome"])
