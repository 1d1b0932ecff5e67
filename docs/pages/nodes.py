"""docs/nodes-accuracy.md: faults planted in the nodes and links of a real cluster, and what
`trainprobe ready` said of each (tests/gallery/nodes).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.gallery.live import blind
from tests.gallery.nodes import once_wrong, several_nodes
from tests.gallery.nodes.decoys import DECOYS
from tests.gallery.nodes.faults import FURTHER, PROMISED, Fault
from tests.gallery.nodes.score import RESULTS, rate
from trainprobe.shipped import read_yaml

INTRO = """# Planted faults of nodes

Four hosts, each with a network, a process table, mounts and a name of its own, under a real SLURM and a real sshd, are kept up. One
fault after the other is planted in a node or in a link between two that are drawn, `trainprobe ready --{budget}` is run as a user would run it (in an
allocation, as the first line of a batch script, over ssh), the report is scored, and the fault is taken back. Nothing that is told to the tool names it.

A run is **right** where the first cause is one of the fault's, its hosts are exactly those of the fault, nobody else is excluded, and the exit code is as it must
be: 10 where nodes can be left out, 1 where all share the trouble, either where a user can mend it on the one node. A healthy run is right where nobody is
excluded and it ends with 0; two of three have *decoys*, differences between nodes that must not matter.

The hosts are namespaces of one machine: they share its kernel, disks and processors. A wrong clock is planted by a library under every program of the host, another
version by another metadata file and module, a quota by a control group, a mount that hangs by a file server that never answers.

Run it: `python -m tests.gallery.nodes.score --runs 1 --healthy 100` (as root; half a minute a run on two cores).

"""

BLIND = RESULTS.parent / "blind" / "round-1"
ROUND = "round-2"
OVER_NODES = """
## Jobs over nodes that nobody here knew, judged once

Somebody who knew neither the rules nor the gallery wrote 18 jobs over two to four such hosts out of public threads (Ray, mpirun, pods with
torchrun, srun, sbatch, plain ssh), noted the truth first, and let `trainprobe attach` look at each once over ssh or SLURM, on two cores on which
other programs ran. These are the numbers to expect of a job over nodes that nobody here has seen. Of two jobs of Ray the hosts do not
count, since Ray placed the ranks otherwise than the label says. What was missed was mended afterwards, and is no measure any more.

"""


UNDER_SLURM = """
## A second round, under SLURM

Eight jobs over three or four such hosts, written as users run them (srun for each rank, torchrun on each node, mpirun, two steps in one allocation), one fault in each.
Whoever wrote them had worked on the tool, but looked at no rule beforehand, noted the truth first, and let `trainprobe attach --slurm` look at each once, with the rules of that day. Two scripts
were put right before any look: of one the fault ended the job, of one the data could not be listed. What was missed was mended afterwards: the older copy and the rank that ran out of batches are named since.
Of the firewall the ranks that get no answer are named, the label has those of the node that gives none.

"""


ONCE_WRONG = """
## What once went wrong on sites

Situations in which administrators and users of a SLURM site once got a wrong answer. Each is made afresh on such hosts, by the real parts (srun, torchrun, Ray,
mpirun, slurmd, the published scripts), and looked at several times. A look that nobody answered within its time is repeated, since the machine is shared; how often
stands in the last column.

Each row is the last run of its situation, not the only one. Before a mend, the cancelled job was wrong in 5 of 5 (twice, for two reasons) and the wrong MASTER_ADDR in
2 of 5 (a busy node was called silent). While other programs held the processors or stopped processes for minutes, the missing module ended undetermined in 5 of 5, the
lost launcher got no answer in 5 of 5, two of the SLURM jobs in several looks more; Ray's own daemon failed to start three jobs. What must come was worded anew after the
first answers for six rows: the ranks of the firewall, the other nodes of PBS and LSF, the words for `--time=48` and for the two of LD_LIBRARY_PATH.

Run it: `python -m tests.gallery.nodes.once_wrong [--only NAME]` (as root).

"""


def pages() -> list[tuple[str, str]]:
    """Return the page, with the results that are kept."""
    kept: dict[str, Any] = {"budget": "quick", "faults": [], "healthy": []}
    kept |= json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    parts = [
        INTRO.replace("{budget}", kept["budget"]),
        _sums(kept),
        "## The kinds that were promised\n\n",
        _table(PROMISED, kept["faults"]),
        "\n## Others\n\n",
        _table(FURTHER, kept["faults"]),
        "\n## Healthy runs\n\n",
        _healthy(kept["healthy"]),
        _once_wrong(),
        _blind(),
        _under_slurm(),
    ]
    return [("nodes-accuracy.md", "".join(parts))]


def _blind() -> str:
    """Jobs over nodes that were judged once, with what was said of each."""
    answers = {row["job"]: row for row in read_yaml((BLIND / "answers.yaml").read_text("utf-8"))}
    found = json.loads((BLIND / "results.json").read_text("utf-8"))
    sums = found["totals"]
    rows = []
    for row in found["jobs"]:
        truth = answers[row["job"]]
        wanted = " or ".join(f"`{one}`" for one in (truth["cause"] or "none", *truth["also"]))
        rows.append(
            f"| {row['job']} | {wanted}, {truth['verdict']} | `{row['cause'] or 'none'}`,"
            f" {row['verdict']} | {', '.join(truth['hosts'])} | {', '.join(row['hosts'])} |\n"
        )
    return (
        OVER_NODES + f"- First cause right: **{sums['cause_first']}**; accepted by the label:"
        f" {sums['cause_among']}; verdict: {sums['verdict_right']}; hosts exactly:"
        f" {sums['hosts_right']}; ranks exactly: {sums['ranks_right']}.\n"
        f"- Healthy jobs called healthy: {sums['healthy_called_healthy']}; no cause named in"
        f" {sums['healthy_without_a_named_cause']}.\n"
        f"- Seconds a look: {sums['seconds_median']} in the middle, {sums['seconds_max']} at"
        " most.\n\n| job | truth | said | hosts at fault | hosts named |\n|---|---|---|---|---|\n"
        + "".join(rows)
    )


def _under_slurm() -> str:
    """The second round, with what was said of each."""
    answers = several_nodes.answers_of(ROUND)
    found = {row["job"]: row for row in several_nodes.results_of(ROUND)}
    rows = [(truth, blind.judged(truth, found[truth["job"]])) for truth in answers]
    sums = blind.summary([row for _, row in rows])
    right = (
        f"- First cause and its ranks right: **{sums['cause and ranks']}**; cause: {sums['cause']};"
        f" verdict: {sums['verdict']}."
    )
    lines = [
        right,
        "",
        "| job | truth | said |",
        "|---|---|---|",
        *(
            f"| {truth['class']} | `{truth['cause']}` {truth['ranks']} |"
            f" `{row['answer']}` {row['causes'][0]['ranks']}, {row['verdict']} |"
            for truth, row in rows
        ),
    ]
    return UNDER_SLURM + "\n".join(lines) + "\n"


def _once_wrong() -> str:
    """Each situation with what came then, and what comes now."""
    rows = {one["situation"]: one for one in json.loads(once_wrong.RESULTS.read_text("utf-8"))}
    lines = ["| situation | what came | what must come | right | else |", "|---|---|---|---|---|"]
    for one in once_wrong.EVERY:
        found = rows.get(one.name, {"looks": [], "not_made": "not run yet"})
        looks = found["looks"]
        wrong = list(dict.fromkeys("; ".join(look["wrong"]) for look in looks if look["wrong"]))
        again = sum(look.get("repeated", 0) for look in looks)
        told = [*wrong, *([f"{again} looks repeated"] if again else [])]
        if "not_made" in found:
            told.append(f"not made: {found['not_made'].splitlines()[0]}")
        right = sum(not look["wrong"] for look in looks)
        lines.append(
            f"| {one.tried} | {one.came} | {one.must} | {right} of {len(looks)} |"
            f" {'<br>'.join(told)} |"
        )
    return ONCE_WRONG + "\n".join(lines) + "\n"


def _sums(kept: Mapping[str, Any]) -> str:
    promised = {fault.name for fault in PROMISED}
    right, made = rate([row for row in kept["faults"] if row["fault"] in promised])
    well, healthy = rate(kept["healthy"])
    excluding = sum(bool(row.get("exclude")) for row in kept["healthy"])
    again = sum(bool(row.get("run_again")) for row in (*kept["faults"], *kept["healthy"]))
    healthy_again = sum(bool(row.get("run_again")) for row in kept["healthy"])
    mended = (
        f"- {again} of the rows are of a second run, after rules were mended that the first had"
        f" shown to be wrong; {healthy_again} are healthy runs, in which a node had been left out"
        " for its second network card.\n"
        if again
        else ""
    )
    return (
        f"- Planted faults of the promised kinds: **{right} of {made}** right.\n- Healthy runs:"
        f" {healthy}; in **{excluding}** a node was excluded; {well} ended with 0 and no word"
        f" against a node.\n{mended}\n"
    )


def _table(faults: Sequence[Fault], rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| fault | right causes | runs | right | what was wrong |", "|---|---|---|---|---|"]
    for fault in faults:
        own = [row for row in rows if row["fault"] == fault.name]
        right, made = rate(own)
        skipped = [row["skipped"] for row in own if "skipped" in row]
        wrong = [f"{row['way']}: {'; '.join(row['wrong'])}" for row in own if row.get("wrong")]
        causes = ", ".join(f"`{cause}`" for cause in fault.causes)
        lines.append(
            f"| {fault.kind}: {fault.variant} | {causes} | {made} | {right} |"
            f" {'<br>'.join((*wrong, *(f'not planted: {why}' for why in skipped)))} |"
        )
    return "\n".join(lines) + "\n"


def _healthy(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| beside | runs | excluded somebody | ended otherwise than with 0 |",
        "|---|---|---|---|",
    ]
    for name in ("nothing", *(decoy.name for decoy in DECOYS)):
        own = [
            row
            for row in rows
            if any(one.startswith(f"{name} (") for one in row["decoys"])
            or (name == "nothing" and not row["decoys"])
        ]
        lines.append(
            f"| {name} | {len(own)} | {sum(bool(row['exclude']) for row in own)} |"
            f" {sum(row['exit'] != 0 for row in own)} |"
        )
    wrong = [
        f"- {', '.join(row['decoys']) or 'nothing'} ({row['way']}): {'; '.join(row['wrong'])}"
        for row in rows
        if row["wrong"]
    ]
    return "\n".join([*lines, "", *wrong]).rstrip("\n") + "\n"
