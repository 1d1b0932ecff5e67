"""Reports the suites' numbers with thresholds, a line for each suite, and the answer."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, NoReturn

import _emit
from _model_stress.findings import worst_first
from _model_stress.request import RANKS, SUITES
from _model_stress.suite_children import Outcome
from _shared import named_object
from _shared.child_program import summary_of

EVALUATION = "evaluation"
STATUS = {"passed": "ok", "failed": "fail", "skipped": "unknown", "unanswered": "unknown"}


class SuiteLine(NamedTuple):
    """`state` is passed, failed, skipped or unanswered (it died or hung)."""

    name: str
    state: str
    sentence: str


def refused(error: named_object.NamedObjectError) -> NoReturn:
    """The words of the command line are wrong, or the user's module fails as it is imported."""
    if error.mistyped or error.error is None:
        _emit.result("cannot", error.sentence)
    _emit.fail_exception(error.sentence, error.error, given="model", kind="raised")
    _emit.result("no", f"{error.sentence}: {summary_of(error.error)}")


def broken(outcome: Outcome) -> NoReturn:
    """The import of the named object, or the parent process, ended without an answer."""
    if outcome.how == "raised" and outcome.error is not None:
        frame = _frame(outcome.error)
        _emit.result(
            "cannot",
            f"The stress test fails at {outcome.step!r}{frame}: {outcome.error['type']}:"
            f" {outcome.error['message'][:300]}",
        )
    if outcome.step != "import":
        _emit.result("cannot", f"The stress test {outcome.why} at {outcome.step!r}.")
    sentence = f"Importing the model's module fails: it {outcome.why}."
    _emit.fail(sentence, given="model", kind=outcome.how, signal=outcome.signal, phase="import")
    _emit.result("no", sentence)


def first_look(first: Outcome) -> bool:
    return first.how == "done" and first.answer is not None


def no_model(first: Outcome) -> NoReturn:
    """The model does not run, or at one size only, so that no suite can ask anything."""
    if first.how == "skipped":
        line = _line("shapes", "failed", "", first.rows, first.took_s)
        _emit.result("no", f"{line.sentence} No suite was run: {first.why}.")
    if first.how == "given":
        _emit.result("cannot", first.why)
    doing = {
        "build": "The model cannot be built",
        "sample": "The sample cannot be made",
        "forward": "The model does not run forward",
        "backward": "The model does not run backward",
    }
    given = "sample" if first.step == "sample" else "model"
    sentence = doing.get(first.step, f"The model fails at: {first.step}")
    if first.error is not None:
        _emit.fail(
            f"{sentence} ({first.error['type']}: {first.error['message'][:300]})",
            given=given,
            kind="raised",
            phase=f"model:{first.step}",
            **first.error,
        )
        _emit.result("no", f"{sentence}: {first.error['type']}: {first.error['message'][:300]}")
    _emit.fail(
        f"{sentence}: it {first.why}.",
        given=given,
        kind=first.how,
        signal=first.signal,
        phase=f"model:{first.step}",
    )
    _emit.result("no", f"{sentence}: it {first.why}.")


def evaluation(first: Outcome) -> SuiteLine:
    """Whether eval() is deterministic, on which the suites' comparisons rely."""
    return _line(EVALUATION, "passed", "two runs in eval() agree", first.rows)


def tell(name: str, outcome: Outcome) -> SuiteLine:
    """Write what a suite found; return its line."""
    if outcome.how in ("skipped", "given") and all(
        row["row"] != "held" or row["fine"] for row in outcome.rows
    ):
        line = SuiteLine(name, "skipped", outcome.why)
        _emit.note(
            f"{name}: skipped, {outcome.why}",
            check=f"stress.{name}",
            status="unknown",
            value={"state": "skipped", "took_s": round(outcome.took_s, 2)},
        )
        return line
    if outcome.how in ("done", "skipped", "given"):
        summary = next((row["says"] for row in outcome.rows if row["row"] == "summary"), "")
        return _line(name, "passed", summary, outcome.rows, outcome.took_s)
    what = (
        f"{outcome.error['type']}: {outcome.error['message'][:200]}"
        if outcome.error is not None
        else outcome.why
    )
    where = _frame(outcome.error)
    sentence = f"it ended at {outcome.step!r}{where}: {what}"
    return _line(name, "unanswered", sentence, outcome.rows, outcome.took_s)


def _frame(error: Any) -> str:
    frames = (error or {}).get("frames") or []
    return f" ({frames[-1]['file']}:{frames[-1]['line']})" if frames else ""


def _line(
    name: str, state: str, sentence: str, rows: List[Dict[str, Any]], took_s: float = 0.0
) -> SuiteLine:
    held = worst_first([row for row in rows if row["row"] == "held"])
    for row in held:
        labels = {
            **row["labels"],
            **({"what": row["what"], "where": row["where"]} if row["where"] or row["what"] else {}),
        }
        more = {"frames": row["frames"]} if "frames" in row else {}
        _emit.measure(
            row["name"],
            row["value"],
            row["unit"],
            threshold=row["threshold"],
            suite=name,
            **labels,
            **({} if row["fine"] else {"says": row["says"]}),
        )
        if not row["fine"]:
            _emit.fail(row["says"], suite=name, property=row["name"], **labels, **more)
    for row in rows:
        if row["row"] == "number":
            _emit.measure(row["name"], row["value"], row["unit"], suite=name, **row["labels"])
        elif row["row"] == "note":
            _emit.note(
                row["says"],
                suite=name,
                **({"check": f"stress.{name}.note", "status": "warn"} if row["warn"] else {}),
            )
    beyond = [row for row in held if not row["fine"]]
    if beyond:
        state, sentence = "failed", beyond[0]["says"]
    line = SuiteLine(name, state, sentence)
    tell_line = f"{name}: {state}" + (f", {sentence}" if sentence else "")
    _emit.note(
        tell_line,
        check=f"stress.{name}",
        status=STATUS[state],
        value={"state": state, "took_s": round(took_s, 2), "findings": len(beyond)},
    )
    return line


def answer(lines: List[SuiteLine]) -> NoReturn:
    """`7/7 suites passed`, or which did not. One that died or hung makes the answer `cannot`."""
    suites = [line for line in lines if line.name in SUITES]
    passed = sum(line.state == "passed" for line in suites)
    counted = f"{passed}/{len(suites)} suites passed" if suites else ""
    skipped = [f"{line.name}: {line.sentence}" for line in lines if line.state == "skipped"]
    bad = [line for line in lines if line.state == "failed"]
    open_ = [line for line in lines if line.state == "unanswered"]
    agreed = next((line for line in lines if line.name == RANKS), None)
    if agreed is not None and agreed.state == "passed":
        counted += f"; {agreed.sentence}" if agreed.sentence else ""
    sentences = " ".join(f"{line.name}: {line.sentence}" for line in (*bad, *open_))[:1200]
    sentences += f" Not asked: {'; '.join(skipped)[:600]}." if skipped else ""
    nothing = all(line.state == "skipped" for line in lines if line.name != EVALUATION)
    _emit.result(
        "no" if bad else "cannot" if open_ or nothing else "yes", f"{counted}. {sentences}".strip()
    )
