"""Variables of the libraries: switches left over, old and misspelt names, and what shows the
first error and the recorder.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from trainprobe.sbatch.findings import Edit, Finding
from trainprobe.sbatch.plan import Plan, found, skipped

DEBUG, RENAMED, NAMES, ERRORS, RECORDER = (
    "plan.debugenv",
    "plan.rename",
    "plan.names",
    "plan.errfile",
    "plan.flightrec",
)
# What NCCL's and torch's documents put under debugging, with what it costs where it stays.
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
KNOWN = (
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CHECKS_DISABLE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_COMM_BLOCKING",
    "NCCL_COMM_ID",
    "NCCL_CONF_FILE",
    "NCCL_CROSS_NIC",
    "NCCL_CUMEM_ENABLE",
    "NCCL_CUMEM_HOST_ENABLE",
    "NCCL_DEBUG",
    "NCCL_DEBUG_FILE",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_DMABUF_ENABLE",
    "NCCL_GDRCOPY_ENABLE",
    "NCCL_GRAPH_DUMP_FILE",
    "NCCL_GRAPH_FILE",
    "NCCL_GRAPH_MIXING_SUPPORT",
    "NCCL_GRAPH_REGISTER",
    "NCCL_HOSTID",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_AR_THRESHOLD",
    "NCCL_IB_DISABLE",
    "NCCL_IB_ECE_ENABLE",
    "NCCL_IB_FIFO_TC",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_MERGE_NICS",
    "NCCL_IB_MERGE_VFS",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_IB_PKEY",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_RETURN_ASYNC_EVENTS",
    "NCCL_IB_ROCE_VERSION_NUM",
    "NCCL_IB_SL",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_TC",
    "NCCL_IB_TIMEOUT",
    "NCCL_IB_USE_INLINE",
    "NCCL_IGNORE_CPU_AFFINITY",
    "NCCL_LAUNCH_MODE",
    "NCCL_LAUNCH_ORDER_IMPLICIT",
    "NCCL_LOCAL_REGISTER",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MAX_NRINGS",
    "NCCL_MAX_P2P_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MIN_NRINGS",
    "NCCL_MIN_P2P_NCHANNELS",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NCHANNELS_PER_NET_PEER",
    "NCCL_NET",
    "NCCL_NETDEVS_POLICY",
    "NCCL_NET_DISABLE_INTRA",
    "NCCL_NET_FORCE_FLUSH",
    "NCCL_NET_GDR_C2C",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_GDR_READ",
    "NCCL_NET_MERGE_LEVEL",
    "NCCL_NET_PLUGIN",
    "NCCL_NET_SHARED_BUFFERS",
    "NCCL_NET_SHARED_COMMS",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_NTHREADS",
    "NCCL_NVB_DISABLE",
    "NCCL_NVLSTREE_MAX_CHUNKSIZE",
    "NCCL_NVLS_CHUNKSIZE",
    "NCCL_NVLS_ENABLE",
    "NCCL_NVLS_NCHANNELS",
    "NCCL_OOB_NET_ENABLE",
    "NCCL_OOB_NET_IFNAME",
    "NCCL_P2P_DIRECT_DISABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_P2P_NVL_CHUNKSIZE",
    "NCCL_P2P_PCI_CHUNKSIZE",
    "NCCL_P2P_PXN_LEVEL",
    "NCCL_P2P_USE_CUDA_MEMCPY",
    "NCCL_PROFILER_PLUGIN",
    "NCCL_PROTO",
    "NCCL_PXN_C2C",
    "NCCL_PXN_DISABLE",
    "NCCL_RAS_ADDR",
    "NCCL_RAS_ENABLE",
    "NCCL_RAS_TIMEOUT_FACTOR",
    "NCCL_RUNTIME_CONNECT",
    "NCCL_SET_STACK_SIZE",
    "NCCL_SHM_DISABLE",
    "NCCL_SINGLE_PROC_MEM_REG_ENABLE",
    "NCCL_SINGLE_RING_THRESHOLD",
    "NCCL_SOCKET_FAMILY",
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_NTHREADS",
    "NCCL_SOCKET_RETRY_CNT",
    "NCCL_SOCKET_RETRY_SLEEP_MSEC",
    "NCCL_THREAD_THRESHOLDS",
    "NCCL_TOPO_DUMP_FILE",
    "NCCL_TOPO_FILE",
    "NCCL_TUNER_PLUGIN",
    "NCCL_VERSION",
    "NCCL_WARN_ENABLE_DEBUG_INFO",
    "NCCL_WIN_ENABLE",
    "NCCL_WORK_FIFO_BYTES",
    "TORCH_FR_BUFFER_SIZE",
    "TORCH_FR_CPP_STACK",
    "TORCH_FR_DUMP_TEMP_FILE",
    "TORCH_NCCL_ABORT_IN_DESTROY_PG",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BCAST_UNIQUEID",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_COORD_CHECK_MILSEC",
    "TORCH_NCCL_CUDA_EVENT_CACHE",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    "TORCH_NCCL_DESYNC_DEBUG",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_ENABLE_TIMING",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_HIGH_PRIORITY",
    "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
    "TORCH_NCCL_NAN_CHECK",
    "TORCH_NCCL_PROPAGATE_ERROR",
    "TORCH_NCCL_RANKS_PER_ROOT",
    "TORCH_NCCL_RETHROW_CUDA_ERRORS",
    "TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_NCCL_TRACE_CPP_STACK",
    "TORCH_NCCL_USE_COMM_NONBLOCKING",
    "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC",
)
_OWN = re.compile(r"(?:TORCH_)?NCCL_[A-Z0-9_]+|TORCH_FR_[A-Z0-9_]+")
_FOREIGN = re.compile(
    r"NCCL_(?:TESTS|OFI|FASTRAK|GPUDIRECTTCPX|RCCL|SHARP|UCX|PLUGIN|DIR|ROOT|HOME|PATH|LIB"
    r"|INCLUDE|VER|TUNER|PROFILER|INSPECTOR|GPU|DEVICE)\w*"
)
_ADDED = "export TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_DUMP_ON_TIMEOUT=1"


def check(plan: Plan) -> Iterator[Finding]:
    if not plan.launches:
        for name in (DEBUG, RENAMED, NAMES, ERRORS, RECORDER):
            yield skipped(name, "No launch was found, so its environment is not known")
        return
    settings = _settings(plan)
    yield from _left_over(plan, settings)
    yield from _old(plan, settings)
    yield from _misspelt(plan, settings)
    yield _errors(plan, settings)
    yield _recorder(plan, settings)


def _settings(plan: Plan) -> dict[str, tuple[str, int]]:
    """Variables of the ranks: name to value and line, 0 where they come from the environment in
    which sbatch is called (--export=ALL is its default).
    """
    environ = plan.launches[0].done.environment()
    exports = plan.given("export")
    alone = exports is not None and "ALL" not in exports.upper().split(",")
    lines = {one.name: one.line for one in plan.script.assigned}
    return {
        name: (value, lines.get(name, 0))
        for name, value in environ.items()
        if name in lines or not alone
    }


def _where(line: int) -> str:
    return f"line {line}" if line else "the environment here, which sbatch takes along"


def _deleted(plan: Plan, line: int, name: str) -> tuple[Edit, ...]:
    text = plan.script.lines[line - 1].strip() if 0 < line <= len(plan.script.lines) else ""
    return (
        (Edit(line, "delete"),)
        if re.fullmatch(rf"(?:export\s+)?{name}=(?:\"[^\"]*\"|'[^']*'|\S*)(?:\s*#.*)?", text)
        else ()
    )


def _left_over(plan: Plan, settings: Mapping[str, tuple[str, int]]) -> Iterator[Finding]:
    wrong = []
    for name, (value, line) in sorted(settings.items()):
        pattern, effect = LEFT_OVER.get(name, ("", ""))
        if not pattern or not re.fullmatch(pattern, value):
            continue
        loopback = name in _LOOPBACK
        if loopback and plan.job.nodes < 2:
            continue
        fix = f"unset {name}" if not line else f"take {name} out of line {line}"
        wrong.append(
            found(
                DEBUG,
                "fail" if loopback else "warn",
                f"{name}={value[:60]} ({_where(line)}): {effect}",
                fix,
                line,
                value[:100],
                _deleted(plan, line, name),
            )
        )
    yield from wrong
    if not wrong:
        yield found(DEBUG, "ok", "No switch is left over that only debugging needs")


def _old(plan: Plan, settings: Mapping[str, tuple[str, int]]) -> Iterator[Finding]:
    wrong = []
    for name, (value, line) in sorted(settings.items()):
        if name in OLD:
            edits = plan.swap_in(line, name, OLD[name]) if OLD[name].startswith("TORCH_") else ()
            wrong.append(
                found(
                    RENAMED,
                    "warn",
                    f"{name} ({_where(line)}) is now {OLD[name]}",
                    f"export {OLD[name]}={value[:40]}",
                    line,
                    value[:100],
                    edits,
                )
            )
    yield from wrong
    if not wrong:
        yield found(RENAMED, "ok", "No old name is used")


def _misspelt(plan: Plan, settings: Mapping[str, tuple[str, int]]) -> Iterator[Finding]:
    wrong = []
    for name, (value, line) in sorted(settings.items()):
        if not _OWN.fullmatch(name) or name in KNOWN or name in OLD or _FOREIGN.fullmatch(name):
            continue
        near = difflib.get_close_matches(name, KNOWN, 1, 0.85)
        meant = f"; {near[0]} is meant" if near else ""
        edits = plan.swap_in(line, name, near[0]) if near else ()
        wrong.append(
            found(
                NAMES,
                "warn",
                f"{name} ({_where(line)}) is no variable that NCCL or torch knows{meant}",
                "correct the name: it has no effect",
                line,
                value[:100],
                edits,
            )
        )
    yield from wrong
    if not wrong:
        yield found(NAMES, "ok", "All variables of NCCL and torch are known")


def _errors(plan: Plan, settings: Mapping[str, tuple[str, int]]) -> Finding:
    launch = plan.launches[0]
    if launch.program != "torchrun" or plan.world < 2:
        return skipped(
            ERRORS, "Error files are torchrun's, and it does not start several ranks here"
        )
    if (
        "log-dir" in launch.options
        or "TORCHELASTIC_ERROR_FILE" in settings
        or "PET_LOG_DIR" in settings
    ):
        return found(ERRORS, "ok", "torchrun writes the error of each rank to a file")
    says = (
        f"torchrun in line {launch.line} has no --log-dir: the first error of {plan.world} ranks"
        " would have to be found in one mixed log"
    )
    return found(
        ERRORS,
        "warn",
        says,
        "--log-dir logs --redirects 3 --tee 3, and @record above main()",
        launch.line,
    )


def _recorder(plan: Plan, settings: Mapping[str, tuple[str, int]]) -> Finding:
    if plan.world < 2 or not any(one.shape.gpus for one in plan.launches):
        return skipped(
            RECORDER, "The flight recorder is NCCL's, and several ranks with GPUs are not planned"
        )
    size = settings.get(
        "TORCH_FR_BUFFER_SIZE", settings.get("TORCH_NCCL_TRACE_BUFFER_SIZE", ("", 0))
    )
    if size[0] == "0":
        return found(
            RECORDER,
            "warn",
            f"The flight recorder is turned off ({_where(size[1])}): a hang would leave no trace",
            _ADDED,
            size[1],
            "0",
        )
    if size[0]:
        return found(RECORDER, "ok", f"The flight recorder keeps {size[0]} entries", value=size[0])
    return found(
        RECORDER,
        "warn",
        "The flight recorder is left at its default, and no dump at a timeout is asked for",
        _ADDED,
        0,
        "",
        plan.before_launches(_ADDED),
    )
