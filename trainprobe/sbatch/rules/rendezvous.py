"""Where the ranks meet: the address of the first node, a port of this job alone, and a launcher
that knows both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainprobe.sbatch import numbers
from trainprobe.sbatch.expanding import arithmetic, frozen
from trainprobe.sbatch.findings import Check, Edits, Finding, State
from trainprobe.sbatch.launches import Launch
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.rules.tasks import NNODES, NPROC

ADDRESS, PORT, RENDEZVOUS = CHECKS = (
    Check("plan.master"),
    Check("plan.port"),
    Check("plan.rendezvous"),
)
_FIRST_NODE = '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
_JOB_PORT = "$((10000 + SLURM_JOB_ID % 20000))"
SET_ADDRESS, SET_PORT = f"export MASTER_ADDR={_FIRST_NODE}", f"export MASTER_PORT={_JOB_PORT}"
_C10D = "--rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint="
_DEFAULT_PORT, _DEFAULT_C10D_PORT = "29500", "29400"
_JOB_IDS = (1, 4711, 65_535, 999_983, 7_654_321, 67_043_327)  # MaxJobId is 67,043,328 by default
_OF_JOB = re.compile(r"SLURM_(?:JOB_?ID|ARRAY_JOB_ID)")
_RANDOM = re.compile(
    r"\bRANDOM\b|\bshuf\b|get_free_port|free_port|getsockname|comm -23|/dev/urandom"
)
_ARITHMETIC = re.compile(r"\$\(\((.*)\)\)")
_MOST_RANDOM = 32_767
# the last digits of a job's number in an arithmetic expression
_OCTAL = re.compile(r"\$\(\(.*(?:\btail -c|\bcut -c|\$\{SLURM_(?:ARRAY_)?JOB_?ID:)")
_OF_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_FROM_SLURM = "RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS"
_VALUE = r"(?:=|\s+)(?:\"[^\"]*\"|\S+)"


@dataclass(frozen=True)
class Endpoint:
    """The address and the port of a launch with the script's variables expanded, "" where none is
    set. `line` sets the address, in each task for itself where `task` is true.
    """

    address: str
    port: str
    line: int
    task: bool
    needed: bool


def check(plan: Plan) -> Iterator[Finding]:
    several = [
        launch
        for launch in plan.launches
        if launch.step is not None
        and (launch.shape.nodes > 1 or (launch.program == "python" and launch.shape.all_tasks > 1))
    ]
    if not several:
        says = "The ranks are on one node"
        if any(launch.machines and launch.machines[1] > 1 for launch in plan.launches):
            says = "No step has several nodes: where the launchers meet is not compared"
        yield ADDRESS.skip(says)
        yield _port(plan, plan.launches)
        yield RENDEZVOUS.skip(says)
        return
    launch = several[0]
    yield _address(plan, launch)
    yield _port(plan, several)
    ok = RENDEZVOUS.ok(f"{launch.place} knows where its ranks meet")
    yield from list(_rendezvous(plan, launch)) or [ok]


def _endpoint(plan: Plan, launch: Launch) -> Endpoint:
    """What the launch uses: its own options override the environment."""
    endpoint = launch.value("rdzv-endpoint")
    if endpoint:
        address, port = _split(endpoint)
    else:
        address = launch.value("master-addr", "main-process-ip") or ""
        port = launch.value("master-port", "main-process-port") or ""
    # torchrun sets MASTER_ADDR itself and does not read it
    sets_itself = launch.program == "torchrun" and "standalone" not in launch.options
    if not endpoint and not address and not sets_itself:
        environ = launch.run.environment()
        address, port = environ.get("MASTER_ADDR", ""), port or environ.get("MASTER_PORT", "")
    line, task = _assigned_in(plan, address, "MASTER_ADDR")
    needed = bool(endpoint or address) or not sets_itself
    return Endpoint(address, port, line or launch.line, task, needed)


def _split(endpoint: str) -> tuple[str, str]:
    """`host:port` where either may be a substitution with colons in it."""
    depth = 0
    for place in range(len(endpoint) - 1, -1, -1):
        depth += (endpoint[place] in ")}") - (endpoint[place] in "({")
        if endpoint[place] == ":" and depth == 0:
            return endpoint[:place], endpoint[place + 1 :]
    return endpoint, ""


def _assigned_in(plan: Plan, value: str, name: str) -> tuple[int, bool]:
    """The line that sets a value, and whether each task does so for itself."""
    if not value:
        return 0, False
    assigned = plan.assignment(name, value=value) or plan.assignment(value=value)
    return (assigned.line, assigned.task) if assigned else (0, False)


def _address(plan: Plan, launch: Launch) -> Finding:
    endpoint = _endpoint(plan, launch)
    address, line = endpoint.address, endpoint.line
    if "standalone" in launch.options or launch.program == "deepspeed":
        return ADDRESS.skip(f"{launch.program} chooses the address itself")
    if not endpoint.needed:
        return ADDRESS.skip("torchrun gets no address here")
    if not address:
        about = plan.about(launch)
        own = about.get("reads_slurm") or about.get("own_meeting")
        if launch.program != "python" or own:
            return ADDRESS.skip("No MASTER_ADDR: the program finds the address itself")
        says = f"The tasks of line {launch.line} have no MASTER_ADDR"
        assigned = plan.assignment("MASTER_ADDR")
        if assigned is not None and assigned.line < launch.line and not assigned.task:
            says += f": line {assigned.line} sets it without export"
            edits = plan.swap_in(assigned.line, "MASTER_ADDR=", "export MASTER_ADDR=")
            return ADDRESS.likely(says, "export MASTER_ADDR", assigned.line, "", edits)
        if about:
            edits = plan.before_launches(SET_ADDRESS)
            return ADDRESS.fail(says, SET_ADDRESS, launch.line, "", edits)
        says += ", and the program, which may set it, could not be read"
        return ADDRESS.unknown(says, SET_ADDRESS, launch.line)
    state, says = _judge_address(plan, launch, address, task=endpoint.task)
    value = address[:200]
    if state == "ok":
        return ADDRESS.ok(f"The address is {says}", value)
    says = f"The address of line {line} {says}"
    first_node = _first_node(plan, launch)
    fix = f"export MASTER_ADDR={first_node}"
    if state == "unknown":
        return ADDRESS.unknown(says, fix, line, value)
    assigned, edits = plan.assignment(line=line, value=address), ()
    if assigned is not None and assigned.raw in plan.script.line(line) and not assigned.task:
        name = assigned.name
        edits = plan.swap_in(line, f"{name}={assigned.raw}", f"{name}={first_node}")
    elif "$" not in address:
        edits = plan.swap_in(line, address, first_node)
    made = {"fail": ADDRESS.fail, "likely": ADDRESS.likely}.get(state, ADDRESS.warn)
    return made(says, fix, line, value, edits)


def _first_node(plan: Plan, launch: Launch) -> str:
    """The command for it; in a heterogeneous job SLURM_JOB_NODELIST is that of component 0."""
    group = min(launch.groups)
    if group == 0 or len(plan.script.components) < 2:
        return _FIRST_NODE
    return _FIRST_NODE.replace("_NODELIST", f"_NODELIST_HET_GROUP_{group}")


def _component_of(address: str, *, task: bool) -> int | None:
    """The component of a heterogeneous job of which an address is a node, None where it does not
    say. The batch shell runs on the first node of component 0.
    """
    listed = re.search(r"SLURM_(?:JOB_)?NODELIST(?:_(?:HET|PACK)_GROUP_(\d{1,3}))?", address)
    if listed is not None:
        return int(listed[1] or 0)
    of_shell = any(
        says == _OWN_NAME and re.search(pattern, address) for pattern, _, says in _ADDRESSES
    )
    return 0 if of_shell and not task else None


def _judge_address(plan: Plan, launch: Launch, address: str, *, task: bool) -> tuple[State, str]:
    """Whether this is the first node of the allocation, the same for all tasks, and resolves
    there; with a sentence without its subject.
    """
    several = launch.shape.nodes > 1
    component = _component_of(address, task=task) if len(plan.script.components) > 1 else None
    if component is not None and component not in launch.groups:
        return "fail", (
            f"is a node of component {component} of this heterogeneous job, and line {launch.line}"
            f" starts the ranks in component {min(launch.groups)}"
        )
    if _LOOPBACK.fullmatch(address):
        if several:
            return "fail", f"is {address}, which is each node itself: the nodes would not meet"
        return "ok", address
    for pattern, state, says in _ADDRESSES:
        if re.search(pattern, address):
            if says == _OWN_NAME and several and task:
                return "fail", "is each task's own host: the nodes would not meet"
            return state, says
    if "$" in address:
        return "unknown", f"is {address[:80]}, which may not be the first node"
    listed = numbers.hosts(plan.option("nodelist") or "")
    name = address.partition(".")[0]
    if listed and name == listed[0].partition(".")[0]:
        return "ok", f"{address}, the first of --nodelist"
    if plan.login.host and name == plan.login.host.partition(".")[0]:
        return "fail", f"is {address}, the host of sbatch, where no rank will run"
    return "likely", f"is fixed to {address}, and the job may get other nodes"


_LOOPBACK = re.compile(r"localhost|127\.[\d.]+|::1|0\.0\.0\.0")
_OWN_NAME = "the name of the first node, where the batch shell runs"
_HOSTNAMES = r"scontrol show hostnames?"
_FOLDED = r"\$\{?SLURM_(?:JOB_)?NODELIST"
_FIRST = "the first node of the allocation"
_ADDRESSES: tuple[tuple[str, State, str], ...] = (
    (
        "SLURM_SUBMIT_HOST",
        "fail",
        "is the host of sbatch (SLURM_SUBMIT_HOST), where no rank will run",
    ),
    (
        rf"{_HOSTNAMES}.*\|\s*tail\b(?!.*head)|sort.*tail -n? ?1",
        "fail",
        "is the last node of the allocation, and rank 0 runs on the first",
    ),
    (rf"{_HOSTNAMES}.*\|\s*(?:head\b|sed\b|awk\b)", "ok", _FIRST),
    (rf"{_HOSTNAMES}[^|]*\)\)?\[0\]|{_HOSTNAMES}.*NR ?== ?1", "ok", _FIRST),
    (
        rf"{_HOSTNAMES}[^|]*$",
        "fail",
        "is all node names at once, not the first of them: | head -n 1 is missing",
    ),
    (
        r"(?:NODEFILE|LSB_\w*HOSTS|DJOB_HOSTFILE).*\|\s*tail\b",
        "fail",
        "is the last host of the job",
    ),
    (r"(?:head|sed|awk|cut|uniq|sort)\b.*(?:NODEFILE|LSB_)|(?:NODEFILE|LSB_).*\|", "ok", _FIRST),
    (r"nodeset\b.*(?:-f|-e)|hostlist\b", "ok", f"{_FIRST}, by the site's own tool"),
    (rf"^{_FOLDED}", "fail", "is the folded list of nodes such as node[1-3], which is not a name"),
    (
        rf"^\$\((?:echo\s+)?\"?{_FOLDED}\}}?\"?\s*\|\s*(?:cut|awk|sed)",
        "fail",
        "is cut out of the folded list of nodes, which gives node[1 where it lists several",
    ),
    (r"srun\b.*\bhostname\b", "ok", "the answer of a node of the allocation"),
    (r"getent\b|nslookup|host\b -", "ok", "an address looked up from a name"),
    (
        r"hostname\s+(?:-i\b|--ip-address|-I\b|--all-ip)(?!.*(?:awk|cut|head))",
        "warn",
        "comes from hostname, which may print several addresses, or 127.0.1.1 from /etc/hosts",
    ),
    (
        r"^\$\(\s*/?(?:bin/)?hostname\b|^\$\{?HOSTNAME|^\$\{?SLURMD_NODENAME|\$\(uname -n\)",
        "ok",
        _OWN_NAME,
    ),
    (r"SLURM_LAUNCH_NODE_IPADDR", "ok", "the node that started the step"),
    (r"\$\{[A-Za-z_]+\[0\]\}|\$\{[A-Za-z_]+\}$", "ok", "an entry of a list that the script makes"),
)


def _port(plan: Plan, launches: Sequence[Launch]) -> Finding:
    if not launches:
        return PORT.skip("The script starts no training")
    launch = launches[0]
    if "standalone" in launch.options:
        return PORT.ok("torchrun --standalone takes a free port")
    port = _endpoint(plan, launch).port
    line, task = _assigned_in(plan, port, "MASTER_PORT")
    line, value = line or launch.line, port[:100]
    if not port:
        return _default_port(plan, launch)
    if port.isdecimal():
        return _fixed_port(plan, launch, port, line)
    if _RANDOM.search(port):
        if task and launch.shape.all_tasks > 1:
            says = f"Each task draws its own port (line {line}): all must use the same"
            return PORT.fail(says, SET_PORT, line, value, plan.swap_in(line, port, _JOB_PORT))
        return _drawn_port(plan, port, line)
    if _OF_JOB.search(port):
        return _port_of_job_id(plan, port, line)
    if re.search(r"SLURM_|\$\(", port):
        return PORT.ok(f"The port {port[:80]} differs between jobs", value)
    return PORT.unknown(f"The port {port[:80]} is not known here", SET_PORT, line, value)


def _can_listen(port: int) -> bool:
    return 1024 <= port <= 65535


def _by_job_port(plan: Plan, port: str, line: int) -> Edits:
    """Put the port of the job's number in the place of what the line assigns."""
    assigned = plan.assignment(line=line, value=port)
    return plan.swap_in(line, assigned.raw, _JOB_PORT) if assigned else ()


def _drawn_port(plan: Plan, port: str, line: int) -> Finding:
    """A port that the script draws: $RANDOM is a number from 0 to 32767."""
    inner = _ARITHMETIC.fullmatch(port)
    drawn = inner[1] if inner else port if re.fullmatch(r"\$\{?RANDOM\}?", port) else ""
    ends = [arithmetic(drawn, {"RANDOM": str(draw)}) for draw in (0, _MOST_RANDOM)] if drawn else []
    for number in ends:
        if number is not None and not _can_listen(number):
            says = (
                f"The port of line {line} may be {number}: ports are numbered to 65535, and a user"
                " may listen on none below 1024"
            )
            return PORT.warn(says, SET_PORT, line, port[:100], _by_job_port(plan, port, line))
    return PORT.ok("The port is drawn once for the job", port[:100])


def _default_port(plan: Plan, launch: Launch) -> Finding:
    if launch.program == "python" or (launch.step is None and plan.job.nodes > 1):
        return PORT.skip("The script sets no port")
    if launch.program == "torchrun" and "rdzv-endpoint" in launch.options:
        return _fixed_port(plan, launch, _DEFAULT_C10D_PORT, launch.line)
    return _fixed_port(plan, launch, _DEFAULT_PORT, launch.line, default=True)


def _fixed_port(
    plan: Plan, launch: Launch, port: str, line: int, *, default: bool = False
) -> Finding:
    edits = () if default else plan.swap_in(line, port, _JOB_PORT)
    if not _can_listen(int(port)):
        says = f"Nothing can listen on port {port} of line {line}"
        return PORT.fail(says, SET_PORT, line, port, edits)
    gpus = launch.shape.gpus
    fills_nodes = (
        gpus is not None
        and bool(plan.nodes)
        and all(node.gpus is not None and gpus >= node.gpus > 0 for node in plan.nodes)
    )
    if plan.exclusive or fills_nodes:
        return PORT.ok(f"Port {port}, on nodes that no other job shares", port)
    array = "array" in plan.options
    rivals = "The tasks of this array" if array else "Two jobs"
    says = f"Every job uses port {port} (line {line})"
    if default:
        says = f"{launch.place} has no port and takes {port} in every job"
    says += f". {rivals} on one node would compete for it"
    made = (PORT.fail if plan.nodes else PORT.likely) if array else PORT.warn
    return made(says, SET_PORT, line, port, edits)


def _port_of_job_id(plan: Plan, port: str, line: int) -> Finding:
    if _OCTAL.search(port) and "10#" not in port:
        says = (
            f"In line {line}, $(( )) takes the end of the job's number for octal where it begins"
            " with 0: job 70912 ends in 0912, and bash gives up (value too great for base)"
        )
        return PORT.warn(says, SET_PORT, line, port[:100], plan.swap_in(line, port, _JOB_PORT))
    same_in_array = "SLURM_ARRAY_JOB_ID" in port and "SLURM_ARRAY_TASK_ID" not in port
    if same_in_array and "array" in plan.options:
        says = (
            f"The port of line {line} is the same for all tasks of the array (SLURM_ARRAY_JOB_ID)"
        )
        return PORT.fail(says, SET_PORT, line, port[:100])
    inner = _ARITHMETIC.fullmatch(port)
    for job in _JOB_IDS if inner else ():
        values = dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID"), str(job))
        number = arithmetic(inner[1], {**values, "SLURM_ARRAY_TASK_ID": "7"}) if inner else None
        if number is not None and not _can_listen(number):
            says = (
                f"The port of line {line} leaves the range of ports: job {job} would get {number}"
            )
            return PORT.fail(says, SET_PORT, line, port[:100], _by_job_port(plan, port, line))
    return PORT.ok("The port is derived from the job's number", port[:100])


def _rendezvous(plan: Plan, launch: Launch) -> Iterator[Finding]:
    if launch.program == "torchrun":
        yield from _torchrun(plan, launch)
    elif launch.program == "accelerate":
        yield from _accelerate(launch)
    elif launch.program == "python":
        yield from _environment(plan, launch)
    static = launch.options.get("rdzv-backend", "static") == "static"
    for name in ("node-rank", "machine-rank") if static else ():  # others give out the ranks
        variable = _frozen_in(launch.options.get(name, ""))
        if variable:
            says = (
                f"--{name} in line {launch.line} gets ${variable} from the batch shell, where it is"
                " 0: every node would be node 0"
            )
            fix = (
                f"srun bash -c '… --{name} ${variable} …', with single quotes, or"
                " --rdzv-backend=c10d without it"
            )
            edits = _without_rank(plan, launch) if name == "node-rank" else ()
            yield RENDEZVOUS.fail(says, fix, launch.line, variable, edits)


def _without_rank(plan: Plan, launch: Launch) -> Edits:
    """Torchrun's dynamic rendezvous needs no rank of the node."""
    edits = plan.swap(launch, rf"\s*--node[-_]rank{_VALUE}", "")
    if not edits or not {"master-addr", "master-port"} <= launch.options.keys():
        return ()
    endpoint = ":".join(_as_written(plan, launch, name) for name in ("master-addr", "master-port"))
    return (
        *edits,
        *plan.swap(launch, rf"--master[-_]addr{_VALUE}", f"{_C10D}{endpoint}"),
        *plan.swap(launch, rf"\s*--master[-_]port{_VALUE}", ""),
    )


def _as_written(plan: Plan, launch: Launch, name: str) -> str:
    command = launch.run.command
    text = "\n".join(plan.script.lines[command.line - 1 : command.last + 1])
    match = re.search(rf"--{name.replace('-', '[-_]')}(?:=|\s+)(\"[^\"]*\"|\S+)", text)
    return match[1].strip('"') if match else launch.options[name]


def _frozen_in(text: str) -> str:
    names = ("SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID")
    return next((name for name in names if frozen(name) in text), "")


def _torchrun(plan: Plan, launch: Launch) -> Iterator[Finding]:
    options, nodes, line = launch.options, launch.shape.nodes, launch.line
    if launch.in_loop or nodes < 2:
        return
    c10d = f"{_C10D}$MASTER_ADDR:$MASTER_PORT"
    fix = f"{c10d}, with MASTER_ADDR and MASTER_PORT set above"
    nnodes = "--nnodes=$SLURM_JOB_NUM_NODES"
    backend, node_rank = options.get("rdzv-backend", "static"), options.get("node-rank", "")
    if "standalone" in options:
        says = (
            f"torchrun --standalone in line {line} makes each of {nodes} nodes a world of its own"
        )
        edits = (*plan.swap(launch, "--standalone", f"{nnodes} {c10d}"), *_set_endpoint(plan))
        yield RENDEZVOUS.fail(says, fix, line, "--standalone", edits)
        return
    if backend == "static" and not {"rdzv-endpoint", "master-addr"} & options.keys():
        says = (
            f"{launch.place} does not know where {nodes} nodes meet: each takes 127.0.0.1, since"
            " torchrun does not read MASTER_ADDR"
        )
        if "nnodes" in options:
            swapped = plan.swap(launch, NNODES, f"{nnodes} {c10d}")
        else:
            each = options.get("nproc-per-node", "1")
            swapped = plan.swap(launch, NPROC, f"--nproc-per-node={each} {c10d}")
        yield RENDEZVOUS.fail(says, fix, line, "", (*swapped, *_set_endpoint(plan)))
        return
    if backend == "static" and "node-rank" not in options:
        says = f"{launch.place} has the static rendezvous and no --node-rank: every node is node 0"
        edits = ()
        if "rdzv-backend" not in options:
            edits = plan.swap(launch, r"--rdzv[-_]endpoint", "--rdzv-backend=c10d --rdzv-endpoint")
        fix = "--rdzv-backend=c10d, which needs no node rank"
        yield RENDEZVOUS.fail(says, fix, line, "static", edits)
        return
    if node_rank.isdecimal() and backend == "static":
        says = (
            f"--node-rank={node_rank} in line {line} is the same on all {nodes} nodes of the step"
        )
        right = (
            "--rdzv-backend=c10d without --node-rank, or srun bash -c '… --node-rank"
            " $SLURM_NODEID …'"
        )
        yield RENDEZVOUS.fail(says, right, line, node_rank)
    identity = options.get("rdzv-id", "")
    if re.search(r"RANDOM|date|uuid", identity) and _expanded_in_task(launch, identity):
        says = f"Each node draws its own --rdzv-id in line {line}: the nodes would not meet"
        yield RENDEZVOUS.fail(says, "--rdzv-id=$SLURM_JOB_ID", line, identity)
    if backend in ("c10d", "etcd", "etcd-v2") and "rdzv-endpoint" not in options:
        says = f"{launch.place} has --rdzv-backend={backend} and no --rdzv-endpoint"
        yield RENDEZVOUS.fail(says, fix, line, backend)


def _expanded_in_task(launch: Launch, text: str) -> bool:
    """Whether the task's own shell expands a substitution, not the batch shell."""
    step = launch.step
    return step is not None and not any(
        word == text or word.endswith(f"={text}") for word in step.words
    )


def _set_endpoint(plan: Plan) -> Edits:
    names = {assigned.name for assigned in plan.script.assigned if not assigned.task}
    lines = {"MASTER_ADDR": SET_ADDRESS, "MASTER_PORT": SET_PORT}
    missing = [line for name, line in lines.items() if name not in names]
    return plan.before_launches("\n".join(missing)) if missing else ()


def _accelerate(launch: Launch) -> Iterator[Finding]:
    options, nodes, line = launch.options, launch.shape.nodes, launch.line
    backend = options.get("rdzv-backend", "static")
    in_task = "srun bash -c '… --machine_rank $SLURM_NODEID …'"
    if nodes < 2 or launch.in_loop or "config-file" in options:
        return
    if "main-process-ip" not in options:
        says = f"{launch.place} does not know where {nodes} nodes meet"
        fix = "--main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT"
        yield RENDEZVOUS.fail(says, fix, line)
    elif "machine-rank" not in options and backend == "static":
        says = f"{launch.place} has no --machine_rank: every node is machine 0"
        yield RENDEZVOUS.fail(says, f"--rdzv_backend c10d, or {in_task}", line)
    elif options.get("machine-rank", "").isdecimal() and backend == "static":
        rank = f"--machine_rank {options['machine-rank']}"
        says = f"{rank} in line {line} is the same on all {nodes} nodes"
        yield RENDEZVOUS.fail(says, in_task, line)


def _environment(plan: Plan, launch: Launch) -> Iterator[Finding]:
    """Plain Python under srun: torch needs RANK and WORLD_SIZE, which SLURM does not set."""
    environ, tasks = launch.run.environment(), launch.shape.all_tasks
    if tasks <= 1:
        return
    for name in ("RANK", "LOCAL_RANK"):
        value = environ.get(name, "")
        variable = _frozen_in(value)
        if variable or value.isdecimal():
            assigned = plan.assignment(name)
            line = assigned.line if assigned else launch.line
            how = f"is {value} for all tasks"
            if variable:
                how = f"gets ${variable} in the batch shell, where it is 0"
            says = f"{name} in line {line} {how}: every task would be rank 0"
            fix = (
                f"set it in the task: srun bash -c 'export {name}=$SLURM_PROCID; …', or read"
                " SLURM_PROCID in the program"
            )
            yield RENDEZVOUS.fail(says, fix, line, value)
            return
    about = plan.about(launch)
    if about.get("own_meeting"):
        return  # it gives rank, size and address to the process group itself
    required = about.get("requires")
    names = required if isinstance(required, (list, tuple)) else ()
    lacking = [name for name in _OF_LAUNCHER if name in names and name not in environ]
    if lacking:
        says = (
            f"{launch.script} reads {', '.join(lacking)} from its environment, and the"
            f" {launch.step_program} of line {launch.line} sets no such variable: KeyError"
        )
        fix = f"srun bash -c '{_FROM_SLURM} python …', or torchrun with one task on each node"
        yield RENDEZVOUS.fail(says, fix, launch.line, lacking[0])
        return
    if about.get("inits") and not about.get("reads_slurm") and "RANK" not in environ:
        says = (
            f"The {tasks} tasks of line {launch.line} have no RANK and WORLD_SIZE:"
            f" {launch.step_program} does not set them, and {launch.script} reads no others"
        )
        fix = f"srun bash -c '{_FROM_SLURM} python …', or torchrun with one task on each node"
        yield RENDEZVOUS.fail(says, fix, launch.line)
