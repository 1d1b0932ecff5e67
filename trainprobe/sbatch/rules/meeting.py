"""Where the ranks meet: the address of the first node, a port of this job alone, and a launcher
that is told of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainprobe.sbatch import numbers
from trainprobe.sbatch.expanding import arithmetic
from trainprobe.sbatch.findings import Edit, Finding, State
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.plan import Plan, found, skipped
from trainprobe.sbatch.rules.rendezvous import FIRST_NODE, OWN_PORT, RENDEZVOUS, told_where

MASTER, PORT = "plan.master", "plan.port"
_JOB_IDS = (1, 4711, 65_535, 999_983, 7_654_321, 67_043_327)  # MaxJobId is 67,043,328 by default
_OF_JOB = re.compile(r"SLURM_(?:JOB_?ID|ARRAY_JOB_ID)")
_RANDOM = re.compile(
    r"\bRANDOM\b|\bshuf\b|get_free_port|free_port|getsockname|comm -23|/dev/urandom"
)


@dataclass(frozen=True)
class Meeting:
    """The address and the port of a launch as they stand in the script after its variables, ""
    where none is given.
    """

    address: str
    port: str
    line: int
    task: bool
    by: str


def check(plan: Plan) -> Iterator[Finding]:
    several = [
        one
        for one in plan.launches
        if (one.step is not None and one.shape.nodes > 1)
        or (one.program == "python" and one.shape.all_tasks > 1 and one.step)
    ]
    if not several:
        yield skipped(MASTER, "The ranks are on one node")
        yield from _port(plan, plan.launches)
        yield skipped(RENDEZVOUS, "The ranks are on one node")
        return
    launch = several[0]
    meeting = meeting_of(plan, launch)
    yield _master(plan, launch, meeting)
    yield from _port(plan, several)
    wrong = list(told_where(plan, launch))
    yield from wrong or [
        found(
            RENDEZVOUS, "ok", f"{launch.program} in line {launch.line} is told where its ranks meet"
        )
    ]


def meeting_of(plan: Plan, launch: Launch) -> Meeting:
    """What the launch is told: an option of its own goes before the environment."""
    endpoint = launch.value("rdzv-endpoint")
    address = launch.value("master-addr", "main-process-ip") or ""
    port = launch.value("master-port", "main-process-port") or ""
    if endpoint:
        address, port = _split(endpoint)
    environ = launch.done.environment()
    by = "option" if endpoint or address else "environment"
    if launch.program == "torchrun" and not endpoint and "standalone" not in launch.options:
        # torchrun sets MASTER_ADDR itself and reads it from nowhere
        by = "option" if address else "none"
    address = address or (environ.get("MASTER_ADDR", "") if by == "environment" else "")
    port = port or (environ.get("MASTER_PORT", "") if by == "environment" else "")
    setting = _setting(plan, address, "MASTER_ADDR")
    return Meeting(address, port, setting[0] or launch.line, setting[1], by)


def _split(endpoint: str) -> tuple[str, str]:
    """`host:port` where either may be a substitution with colons in it."""
    depth = 0
    for place in range(len(endpoint) - 1, -1, -1):
        depth += (endpoint[place] in ")}") - (endpoint[place] in "({")
        if endpoint[place] == ":" and depth == 0:
            return endpoint[:place], endpoint[place + 1 :]
    return endpoint, ""


def _setting(plan: Plan, value: str, name: str) -> tuple[int, bool]:
    """The line that sets a value, and whether each task does so for itself."""
    made = [one for one in plan.script.assigned if value and one.value == value and one.value]
    named = [one for one in made if one.name == name] or made
    return (named[-1].line, named[-1].task) if named else (0, False)


def _master(plan: Plan, launch: Launch, meeting: Meeting) -> Finding:
    if launch.program == "torchrun" and meeting.by == "none" and "standalone" not in launch.options:
        return skipped(MASTER, "torchrun is given no address here")
    if "standalone" in launch.options or launch.program == "deepspeed":
        return skipped(MASTER, f"{launch.program} chooses the address itself")
    address = meeting.address
    if not address:
        about = plan.here.programs.get(launch.script, {})
        if launch.program != "python" or about.get("reads_slurm"):
            return skipped(MASTER, "No MASTER_ADDR: the program finds it by itself")
        state: State = "fail" if about else "unknown"
        says = f"MASTER_ADDR is not set for the tasks of line {launch.line}" + (
            "" if about else ", and whether the program sets it could not be read"
        )
        return found(
            MASTER, state, says, FIRST_NODE, launch.line, "", plan.before_launches(FIRST_NODE)
        )
    state, says = _judged(plan, launch, address, task=meeting.task)
    if state == "ok":
        return found(MASTER, "ok", f"The address is {says}", value=address[:200])
    line = meeting.line
    text = plan.script.lines[line - 1] if 0 < line <= len(plan.script.lines) else ""
    right = '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    edits: tuple[Edit, ...] = ()
    assigned = next(
        (
            one
            for one in reversed(plan.script.assigned)
            if one.line == line and one.value == address and one.value
        ),
        None,
    )
    if assigned is not None and assigned.raw in text and not assigned.task:
        edits = plan.swap_in(line, f"{assigned.name}={assigned.raw}", f"{assigned.name}={right}")
    elif address in text and "$" not in address:
        edits = plan.swap_in(line, address, right)
    return found(
        MASTER, state, f"The address of line {line} {says}", FIRST_NODE, line, address[:200], edits
    )


def _judged(plan: Plan, launch: Launch, address: str, *, task: bool) -> tuple[State, str]:
    """Is this the first node of the allocation, the same for all, and a name that resolves
    there?
    """
    several = launch.shape.nodes > 1
    for pattern, state, says in _RECIPES:
        if re.search(pattern, address):
            if state == "own":
                if not several:
                    return "ok", "the node's own name"
                return (
                    ("fail", "is each task's own host: the nodes would not meet")
                    if task
                    else ("ok", "the name of the first node, where the batch shell runs")
                )
            if state == "local":
                return (
                    ("fail", f"is {address}, which is each node itself: the nodes would not meet")
                    if several
                    else ("ok", address)
                )
            return state, says  # type: ignore[return-value]
    if "$" in address:
        return (
            "unknown",
            f"is {address[:80]}, of which nobody can say here whether it is the first node",
        )
    wanted = numbers.hosts(plan.given("nodelist") or "")
    name = address.partition(".")[0]
    if wanted and name == wanted[0].partition(".")[0]:
        return "ok", f"{address}, the first of --nodelist"
    if plan.here.host and name == plan.here.host.partition(".")[0]:
        return (
            "fail",
            f"is {address}, the host on which the script is submitted, and no rank will be there",
        )
    return "fail", f"is fixed to {address}, and the job may get other nodes"


_RECIPES: tuple[tuple[str, str, str], ...] = (
    (r"^(?:localhost|127\.[\d.]+|::1|0\.0\.0\.0)$", "local", ""),
    (
        r"SLURM_SUBMIT_HOST",
        "fail",
        (
            "is the host on which the script was submitted (SLURM_SUBMIT_HOST), and no rank will be"
            " there"
        ),
    ),
    (
        r"scontrol show hostnames?.*\|\s*tail\b(?!.*head)|sort.*tail -n? ?1",
        "fail",
        "is the last node of the allocation, and rank 0 runs on the first",
    ),
    (
        r"scontrol show hostnames?.*\|\s*(?:head\b|sed\b|awk\b)",
        "ok",
        "the first node of the allocation",
    ),
    (
        r"scontrol show hostnames?[^|]*\)\)?\[0\]|scontrol show hostnames?.*NR ?== ?1",
        "ok",
        "the first node of the allocation",
    ),
    (
        r"scontrol show hostnames?[^|]*$",
        "fail",
        "is all node names at once, not the first of them: | head -n 1 is missing",
    ),
    (
        r"nodeset\b.*(?:-f|-e)|hostlist\b",
        "ok",
        "the first node of the allocation, by the site's own tool",
    ),
    (
        r"^\$\{?SLURM_(?:JOB_)?NODELIST",
        "fail",
        "is the folded list of nodes such as node[1-3], which is no name",
    ),
    (
        r"^\$\((?:echo\s+)?\"?\$\{?SLURM_(?:JOB_)?NODELIST\}?\"?\s*\|\s*(?:cut|awk|sed)",
        "fail",
        "is cut out of the folded list of nodes, which gives node[1 where several are listed",
    ),
    (r"srun\b.*\bhostname\b", "ok", "asked of a node of the allocation"),
    (r"getent\b|nslookup|host\b -", "ok", "an address looked up from a name"),
    (
        r"hostname\s+(?:-i\b|--ip-address|-I\b|--all-ip)(?!.*(?:awk|cut|head))",
        "warn",
        (
            "is what hostname tells of itself: several addresses, or 127.0.1.1 where /etc/hosts"
            " says so"
        ),
    ),
    (
        r"^\$\(\s*/?(?:bin/)?hostname\b|^\$\{?HOSTNAME|^\$\{?SLURMD_NODENAME|\$\(uname -n\)",
        "own",
        "",
    ),
    (r"SLURM_LAUNCH_NODE_IPADDR", "ok", "the node that started the step"),
    (
        r"\$\{[A-Za-z_]+\[0\]\}|\$\{[A-Za-z_]+\}$",
        "ok",
        "taken from a list of names that the script makes",
    ),
)


def _port(plan: Plan, chosen: tuple[Launch, ...] | list[Launch]) -> Iterator[Finding]:
    if not chosen:
        yield skipped(PORT, "No launch was found")
        return
    launch = chosen[0]
    if "standalone" in launch.options:
        yield found(PORT, "ok", "torchrun --standalone takes a free port")
        return
    meeting = meeting_of(plan, launch)
    port = meeting.port
    line, task = _setting(plan, port, "MASTER_PORT")
    line = line or launch.line
    if not port:
        yield from _default_port(plan, launch)
        return
    if port.isdigit():
        yield _fixed(plan, launch, port, line)
        return
    if _RANDOM.search(port):
        several = launch.shape.nodes > 1 or launch.shape.all_tasks > 1
        if task and several:
            yield found(
                PORT,
                "fail",
                f"Each task draws a port of its own (line {line}): they must have the same",
                OWN_PORT,
                line,
                port[:100],
                plan.swap_in(line, port, "$((10000 + SLURM_JOB_ID % 20000))"),
            )
        else:
            yield found(PORT, "ok", "The port is drawn once for the job", value=port[:100])
        return
    if not _OF_JOB.search(port):
        known = bool(re.search(r"SLURM_|\$\(", port))
        state: State = "unknown" if not known else "ok"
        yield found(
            PORT,
            state,
            f"The port {port[:80]} is"
            f" {'not known here' if state == 'unknown' else 'made of what differs between jobs'}",
            OWN_PORT,
            line,
            port[:100],
        )
        return
    yield _of_job_id(plan, port, line)


def _default_port(plan: Plan, launch: Launch) -> Iterator[Finding]:
    default = {"torchrun": "29500", "accelerate": "29500", "deepspeed": "29500"}.get(launch.program)
    if default is None or (launch.step is None and plan.job.nodes > 1):
        yield skipped(PORT, "No port is given here")
    elif launch.program == "torchrun" and "rdzv-endpoint" in launch.options:
        yield _fixed(plan, launch, "29400", launch.line)
    else:
        yield _fixed(plan, launch, default, launch.line, said=False)


def _fixed(plan: Plan, launch: Launch, port: str, line: int, *, said: bool = True) -> Finding:
    number = int(port)
    if not 1024 <= number <= 65535:
        return found(
            PORT,
            "fail",
            f"Port {port} of line {line} cannot be listened on",
            OWN_PORT,
            line,
            port,
            _right_port(plan, port, line),
        )
    alone = plan.exclusive or (
        launch.shape.gpus is not None
        and bool(plan.nodes)
        and all(node.gpus is not None and launch.shape.gpus >= node.gpus > 0 for node in plan.nodes)
    )
    if alone:
        return found(PORT, "ok", f"Port {port}, on nodes that no other job shares", value=port)
    array = "array" in plan.options
    which = "The tasks of this array" if array else "Two jobs"
    how = (
        f"Port {port} is the same in each job"
        if said
        else f"{launch.program} in line {launch.line} is given no port and takes {port} in each job"
    )
    says = f"{how} (line {line}). {which} on one node would fight for it"
    return found(
        PORT,
        "fail" if array else "warn",
        says,
        OWN_PORT,
        line,
        port,
        _right_port(plan, port, line) if said else (),
    )


def _right_port(plan: Plan, port: str, line: int) -> tuple[Edit, ...]:
    return plan.swap_in(line, port, "$((10000 + SLURM_JOB_ID % 20000))")


def _of_job_id(plan: Plan, port: str, line: int) -> Finding:
    if (
        "SLURM_ARRAY_JOB_ID" in port
        and "SLURM_ARRAY_TASK_ID" not in port
        and "array" in plan.options
    ):
        return found(
            PORT,
            "fail",
            f"The port of line {line} is made of SLURM_ARRAY_JOB_ID, the same for all tasks of the"
            " array",
            OWN_PORT,
            line,
            port[:100],
        )
    inner = re.fullmatch(r"\$\(\((.*)\)\)", port)
    if inner:
        ports = [
            arithmetic(
                inner[1],
                {
                    "SLURM_JOB_ID": str(one),
                    "SLURM_JOBID": str(one),
                    "SLURM_ARRAY_TASK_ID": "7",
                    "SLURM_ARRAY_JOB_ID": str(one),
                },
            )
            for one in _JOB_IDS
        ]
        bad = next(
            (
                (job, made)
                for job, made in zip(_JOB_IDS, ports, strict=True)
                if made is not None and not 1024 <= made <= 65535
            ),
            None,
        )
        if bad is not None:
            says = (
                f"The port of line {line} leaves what a port can be: job {bad[0]} would get"
                f" {bad[1]}"
            )
            assigned = next(
                (one for one in plan.script.assigned if one.line == line and one.value == port),
                None,
            )
            edits = (
                plan.swap_in(line, assigned.raw, "$((10000 + SLURM_JOB_ID % 20000))")
                if assigned
                else ()
            )
            return found(PORT, "fail", says, OWN_PORT, line, port[:100], edits)
    return found(PORT, "ok", "The port is made of the job's number", value=port[:100])
