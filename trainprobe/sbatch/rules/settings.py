"""Variables of the libraries: leftover debugging switches, old and misspelt names, and settings
that record the first error and the flight recorder.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from trainprobe.sbatch.findings import Check, Edit, Edits, Finding
from trainprobe.sbatch.plan import Plan

DEBUG, RENAMED, NAMES, ERRORS, RECORDER = CHECKS = tuple(
    Check(f"plan.{name}") for name in ("debugenv", "rename", "names", "errfile", "flightrec")
)
# Variables that the documents of NCCL and torch list under debugging, with the price of leaving
# them set.
LEFT_OVER: Mapping[str, tuple[str, str]] = {
    "NCCL_P2P_DISABLE": ("1", "GPUs of a node no longer talk directly"),
    "NCCL_SHM_DISABLE": ("1", "ranks of a node talk over the network"),
    "NCCL_IB_DISABLE": ("1", "InfiniBand is not used"),
    "NCCL_ALGO": (".+", "one algorithm for all sizes"),
    "NCCL_PROTO": (".+", "one protocol for all sizes"),
    "NCCL_P2P_LEVEL": (".+", "the topology is overruled"),
    "NCCL_NET_GDR_LEVEL": (".+", "the topology is overruled"),
    "NCCL_BUFFSIZE": (".+", "buffers of another size than tuned"),
    "NCCL_NTHREADS": (".+", "another number of threads than tuned"),
    "NCCL_LAUNCH_MODE": (".+", "another way of launching than tuned"),
    "NCCL_DEBUG": ("TRACE", "every call is printed"),
    "CUDA_LAUNCH_BLOCKING": ("1", "every kernel is waited for"),
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": ("1", "a rank with an error stands still instead of ending"),
    "TORCH_DISTRIBUTED_DEBUG": ("DETAIL|detail", "every collective is checked by another one"),
    "TORCH_SHOW_CPP_STACKTRACES": ("never", ""),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("1", "every allocation goes to the driver"),
    "TORCH_CPP_LOG_LEVEL": ("TRACE", "every call is printed"),
    "CUDA_INJECTION64_PATH": (".+", "a tool is loaded into every rank"),
    "NCCL_SOCKET_IFNAME": ("=?lo", "only the node itself can be reached"),
    "GLOO_SOCKET_IFNAME": ("lo", "only the node itself can be reached"),
    "PYTHONDEVMODE": ("1", "Python runs its debugging checks"),
}
_LOOPBACK = {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}
OLD = {
    "NCCL_BLOCKING_WAIT": "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_DESYNC_DEBUG": "TORCH_NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING": "TORCH_NCCL_ENABLE_TIMING",
    "PYTORCH_CUDA_ALLOC_CONF_": "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_NCCL_TRACE_BUFFER_SIZE_": "TORCH_FR_BUFFER_SIZE",
    "NCCL_IB_CUDA_SUPPORT": "NCCL_NET_GDR_LEVEL",
}
# After the prefix NCCL_.
_OF_NCCL = """
    ALGO BUFFSIZE CHECKS_DISABLE COLLNET_ENABLE COMM_BLOCKING COMM_ID CONF_FILE CROSS_NIC
    CUMEM_ENABLE CUMEM_HOST_ENABLE DEBUG DEBUG_FILE DEBUG_SUBSYS DMABUF_ENABLE GDRCOPY_ENABLE
    GRAPH_DUMP_FILE GRAPH_FILE GRAPH_MIXING_SUPPORT GRAPH_REGISTER HOSTID IB_ADAPTIVE_ROUTING
    IB_AR_THRESHOLD IB_DISABLE IB_ECE_ENABLE IB_FIFO_TC IB_GID_INDEX IB_HCA IB_MERGE_NICS
    IB_MERGE_VFS IB_PCI_RELAXED_ORDERING IB_PKEY IB_QPS_PER_CONNECTION IB_RETRY_CNT
    IB_RETURN_ASYNC_EVENTS IB_ROCE_VERSION_NUM IB_SL IB_SPLIT_DATA_ON_QPS IB_TC IB_TIMEOUT
    IB_USE_INLINE IGNORE_CPU_AFFINITY LAUNCH_MODE LAUNCH_ORDER_IMPLICIT LOCAL_REGISTER MAX_CTAS
    MAX_NCHANNELS MAX_NRINGS MAX_P2P_NCHANNELS MIN_CTAS MIN_NCHANNELS MIN_NRINGS MIN_P2P_NCHANNELS
    MNNVL_ENABLE NCHANNELS_PER_NET_PEER NET NETDEVS_POLICY NET_DISABLE_INTRA NET_FORCE_FLUSH
    NET_GDR_C2C NET_GDR_LEVEL NET_GDR_READ NET_MERGE_LEVEL NET_PLUGIN NET_SHARED_BUFFERS
    NET_SHARED_COMMS NSOCKS_PERTHREAD NTHREADS NVB_DISABLE NVLSTREE_MAX_CHUNKSIZE NVLS_CHUNKSIZE
    NVLS_ENABLE NVLS_NCHANNELS OOB_NET_ENABLE OOB_NET_IFNAME P2P_DIRECT_DISABLE P2P_DISABLE
    P2P_LEVEL P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_PXN_LEVEL
    P2P_USE_CUDA_MEMCPY PROFILER_PLUGIN PROTO PXN_C2C PXN_DISABLE RAS_ADDR RAS_ENABLE
    RAS_TIMEOUT_FACTOR RUNTIME_CONNECT SET_STACK_SIZE SHM_DISABLE SINGLE_PROC_MEM_REG_ENABLE
    SINGLE_RING_THRESHOLD SOCKET_FAMILY SOCKET_IFNAME SOCKET_NTHREADS SOCKET_RETRY_CNT
    SOCKET_RETRY_SLEEP_MSEC THREAD_THRESHOLDS TOPO_DUMP_FILE TOPO_FILE TUNER_PLUGIN VERSION
    WARN_ENABLE_DEBUG_INFO WIN_ENABLE WORK_FIFO_BYTES
"""
# After the prefix TORCH_NCCL_.
_OF_TORCH = """
    ABORT_IN_DESTROY_PG ASYNC_ERROR_HANDLING AVOID_RECORD_STREAMS BCAST_UNIQUEID BLOCKING_WAIT
    COORD_CHECK_MILSEC CUDA_EVENT_CACHE DEBUG_INFO_PIPE_FILE DEBUG_INFO_TEMP_FILE DESYNC_DEBUG
    DUMP_ON_TIMEOUT ENABLE_MONITORING ENABLE_TIMING HEARTBEAT_TIMEOUT_SEC HIGH_PRIORITY
    LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN NAN_CHECK PROPAGATE_ERROR RANKS_PER_ROOT RETHROW_CUDA_ERRORS
    SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING TRACE_BUFFER_SIZE TRACE_CPP_STACK
    USE_COMM_NONBLOCKING USE_TENSOR_REGISTER_ALLOCATOR_HOOK WAIT_TIMEOUT_DUMP_MILSEC
"""
KNOWN = (
    *(f"NCCL_{name}" for name in _OF_NCCL.split()),
    *(f"TORCH_NCCL_{name}" for name in _OF_TORCH.split()),
    "TORCH_FR_BUFFER_SIZE",
    "TORCH_FR_CPP_STACK",
    "TORCH_FR_DUMP_TEMP_FILE",
)
_OWN = re.compile(r"(?:TORCH_)?NCCL_[A-Z0-9_]+|TORCH_FR_[A-Z0-9_]+")
_FOREIGN = re.compile(
    r"NCCL_(?:TESTS|OFI|FASTRAK|GPUDIRECTTCPX|RCCL|SHARP|UCX|PLUGIN|DIR|ROOT|HOME|PATH|LIB"
    r"|INCLUDE|VER|TUNER|PROFILER|INSPECTOR|GPU|DEVICE)\w*"
)
_RECORDER_ON = "export TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_DUMP_ON_TIMEOUT=1"

_Settings = Mapping[str, tuple[str, int]]
"""Variables of the ranks: name to value and line, 0 for the environment of sbatch."""


def check(plan: Plan) -> Iterator[Finding]:
    if not plan.launches:
        for each in CHECKS:
            yield each.skip("The script starts no training, so its environment is not known")
        return
    settings = _settings(plan)
    left_over = [*_left_over(plan, settings)]
    yield from left_over or [DEBUG.ok("No debugging switch is left set")]
    yield from [*_renamed(plan, settings)] or [RENAMED.ok("No variable has an old name")]
    yield from [*_misspelt(plan, settings)] or [NAMES.ok("NCCL and torch know all variables")]
    yield _errors(plan, settings)
    yield _recorder(plan, settings)


def _settings(plan: Plan) -> _Settings:
    """--export=ALL, its default, passes the environment of sbatch on."""
    exports = plan.option("export")
    passed = exports is None or "ALL" in exports.upper().split(",")
    lines = {assigned.name: assigned.line for assigned in plan.script.assigned}
    environ = sorted(plan.launches[0].run.environment().items())
    return {name: (value, lines.get(name, 0)) for name, value in environ if name in lines or passed}


def _where(line: int) -> str:
    return f"line {line}" if line else "this environment, which sbatch passes on"


def _deleted(plan: Plan, line: int, name: str) -> Edits:
    pattern = rf"(?:export\s+)?{name}=(?:\"[^\"]*\"|'[^']*'|\S*)(?:\s*#.*)?"
    if not re.fullmatch(pattern, plan.script.line(line).strip()):
        return ()
    return (Edit(line, "delete"),)


def _left_over(plan: Plan, settings: _Settings) -> Iterator[Finding]:
    for name, (value, line) in settings.items():
        pattern, effect = LEFT_OVER.get(name, ("", ""))
        loopback = name in _LOOPBACK
        if not pattern or not re.fullmatch(pattern, value) or (loopback and plan.job.nodes < 2):
            continue
        says = f"{name}={value[:60]} ({_where(line)}): {effect}"
        fix = f"take {name} out of line {line}" if line else f"unset {name}"
        made = DEBUG.fail if loopback else DEBUG.warn
        yield made(says, fix, line, value[:100], _deleted(plan, line, name))


def _renamed(plan: Plan, settings: _Settings) -> Iterator[Finding]:
    for name, (value, line) in settings.items():
        new = OLD.get(name)
        if new:
            says = f"{name} ({_where(line)}) is now {new}"
            edits = plan.swap_in(line, name, new) if new.startswith("TORCH_") else ()
            yield RENAMED.warn(says, f"export {new}={value[:40]}", line, value[:100], edits)


def _misspelt(plan: Plan, settings: _Settings) -> Iterator[Finding]:
    for name, (value, line) in settings.items():
        if not _OWN.fullmatch(name) or name in KNOWN or name in OLD or _FOREIGN.fullmatch(name):
            continue
        says = f"Neither NCCL nor torch knows {name} ({_where(line)})"
        edits: Edits = ()
        for near in difflib.get_close_matches(name, KNOWN, 1, 0.85):
            says += f"; it may mean {near}"
            edits = plan.swap_in(line, name, near)
        yield NAMES.warn(says, "correct the name: it has no effect", line, value[:100], edits)


def _errors(plan: Plan, settings: _Settings) -> Finding:
    launch = plan.launches[0]
    if launch.program != "torchrun" or plan.world < 2:
        return ERRORS.skip("torchrun, which writes error files, does not start several ranks here")
    if "log-dir" in launch.options or {"TORCHELASTIC_ERROR_FILE", "PET_LOG_DIR"} & settings.keys():
        return ERRORS.ok("torchrun writes the error of each rank to a file")
    says = (
        f"{launch.place} has no --log-dir: you would have to find the first error of"
        f" {plan.world} ranks in one mixed log"
    )
    fix = "--log-dir logs --redirects 3 --tee 3, and @record above main()"
    return ERRORS.warn(says, fix, launch.line)


def _recorder(plan: Plan, settings: _Settings) -> Finding:
    if plan.world < 2 or not any(launch.shape.gpus for launch in plan.launches):
        return RECORDER.skip(
            "The flight recorder is part of NCCL, and the job runs at most one rank on GPUs"
        )
    names = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
    size, line = next((settings[name] for name in names if name in settings), ("", 0))
    if size == "0":
        says = f"The flight recorder is turned off ({_where(line)}): a hang would leave no trace"
        return RECORDER.warn(says, _RECORDER_ON, line, size)
    if size:
        return RECORDER.ok(f"The flight recorder holds {size} entries", size)
    says = "The flight recorder is at its default size, and no timeout dumps it"
    return RECORDER.warn(says, _RECORDER_ON, 0, "", plan.before_launches(_RECORDER_ON))
