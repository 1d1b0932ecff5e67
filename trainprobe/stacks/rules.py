"""Which function of which file means what kind of waiting."""

from __future__ import annotations

from dataclasses import dataclass

LEAVES = (
    "comm-wait",
    "store-wait",
    "gpu-wait",
    "lock",
    "file-io",
    "net-io",
    "child-wait",
    "dataloader",
    "worker-idle",
    "import-lock",
    "compile",
    "sleep",
    "python-run",
    "native-run",
    "teardown",
)

ASKS_THE_STORE = r"\bstore\w{0,12}\.(?:wait|get|check|barrier|add|set)\("
"""In a line of source: what torch's store does in C++ shows no frame."""
INDEX_QUEUE = "index-queue"
RPC_HANDLER = ("torch/distributed/rpc/internal.py", "_run_function")
"""Where a thread that answers a request of torch's RPC begins (torch 1.6 to 2.13)."""
RPC = "rpc_sync"
SERVANT = "servant"
"""Of a process that only answers what others ask: how much it writes says nothing of their work."""


@dataclass(frozen=True)
class Rule:
    """A frame whose file ends in, or contains, `path` and whose function is one of `names` (all
    when empty).

    `weight`: 4 says what a wait of 3 inside it is for, 3 says it all, 2 is a part of the standard
    library or a tool that waits for something named, 1 is a bare wait that a frame further out may
    explain.
    """

    leaf: str
    path: str
    names: frozenset[str] = frozenset()
    op: str = ""
    weight: int = 3

    def fits(self, file: str, qualified: str, name: str) -> bool:
        # `multiprocess` is the same library with dill for its pickle
        return self.path in file.replace("/multiprocess/", "/multiprocessing/") and (
            not self.names or name in self.names or qualified in self.names
        )


def _rule(leaf: str, path: str, names: str = "", op: str = "", weight: int = 3) -> Rule:
    return Rule(leaf, path, frozenset(names.split()), op, weight)


_C10D = "torch/distributed/distributed_c10d.py"
_JOINING = (
    "init_process_group _new_process_group_helper new_group _new_group_with_tag split_group"
    " _store_based_barrier new_subgroups new_subgroups_by_enumeration"
)
_LEAVING = (
    "destroy_process_group _shutdown_backend _abort_process_group abort"
    " _cleanup_original_group_name shutdown"
)

# More specific ones first: of several that fit one frame the heaviest counts, then the first.
RULES: tuple[Rule, ...] = (
    # Collectives, the store and the end (torch 2.13: torch/distributed/distributed_c10d.py).
    _rule("store-wait", _C10D, _JOINING),
    _rule("teardown", _C10D, _LEAVING, "destroy_process_group"),
    _rule("native-run", _C10D, "_object_to_tensor _tensor_to_object", "pickle"),
    _rule("comm-wait", _C10D),
    _rule("comm-wait", "torch/distributed/_functional_collectives.py"),
    _rule("comm-wait", "torch/distributed/nn/functional.py"),
    _rule("comm-wait", "torch/autograd/graph.py", "_engine_run_backward", "backward"),
    _rule(
        "comm-wait",
        "torch/nn/parallel/distributed.py",
        "_sync_buffers _sync_module_states _sync_params _pre_forward",
        "ddp-sync",
        2,
    ),
    _rule(
        "comm-wait",
        "torch/distributed/utils.py",
        "_verify_param_shape_across_processes",
        "ddp-init",
    ),
    _rule(
        "comm-wait",
        "torch/distributed/fsdp/",
        "_unshard wait_for_unshard unshard _wait_all_gather_streams_on_event foreach_all_gather"
        " foreach_reduce",
    ),
    _rule("comm-wait", "torch/distributed/rpc/api.py", "rpc_sync", RPC),
    _rule("comm-wait", "torch/futures/__init__.py", "wait_all wait", RPC),
    _rule("store-wait", "torch/distributed/rendezvous.py", "", "rendezvous"),
    _rule("store-wait", "torch/distributed/elastic/rendezvous/", "", "rendezvous"),
    _rule("store-wait", "torch/distributed/elastic/utils/store.py", "", "store"),
    _rule("child-wait", "torch/distributed/elastic/agent/", "", "torchrun"),
    _rule("child-wait", "torch/distributed/elastic/multiprocessing/api.py", "", "torchrun"),
    _rule("child-wait", "torch/multiprocessing/spawn.py", "join start_processes spawn", "spawn"),
    # GPUs. The native names are the CUDA driver's and runtime's.
    _rule(
        "gpu-wait",
        "torch/cuda/",
        "synchronize wait wait_event wait_stream query current_stream_synchronize",
        "synchronize",
    ),
    _rule("gpu-wait", "libcuda", "", "cuda"),
    _rule(
        "gpu-wait",
        "",
        "cuStreamSynchronize cuEventSynchronize cuCtxSynchronize cudaStreamSynchronize"
        " cudaEventSynchronize cudaDeviceSynchronize cuMemcpyDtoH_v2 cuMemcpyDtoHAsync_v2",
        "cuda",
    ),
    _rule(
        "comm-wait",
        "",
        "c10d::Work::wait c10d::Reducer::finalize_backward"
        " gloo::transport::tcp::UnboundBuffer::waitRecv",
        "native",
    ),
    _rule(
        "store-wait",
        "",
        "c10d::TCPStore::doWait c10d::TCPStore::doGet c10d::TCPStore::waitForWorkers",
        "store",
    ),
    _rule(
        "comm-wait",
        "torch/distributed/fsdp/_fully_shard/",
        "unshard wait_for_unshard all_gather reduce_scatter foreach_reduce post_backward",
        "fsdp",
    ),
    _rule(
        "comm-wait",
        "torch/distributed/algorithms/join.py",
        "notify_join_context _notify_procs_to_terminate",
        "join",
    ),
    _rule("comm-wait", "torch/distributed/pipelining/", "", "pipeline", 2),
    # DeepSpeed: its own names of collectives, and how ZeRO-3 gathers parameters.
    _rule(
        "comm-wait",
        "deepspeed/comm/",
        "all_gather all_gather_into_tensor all_gather_coalesced"
        " all_reduce all_to_all_single barrier broadcast monitored_barrier reduce reduce_scatter"
        " reduce_scatter_tensor recv send",
        "",
        2,
    ),
    _rule(
        "comm-wait",
        "deepspeed/runtime/zero/partition_parameters.py",
        "all_gather_coalesced all_gather _allgather_params _allgather_params_coalesced"
        " _all_gather_dtype _dist_allgather_fn wait",
        "all_gather",
        2,
    ),
    # Its first versions wait for a stream of the GPU, on which the parameters come.
    _rule("comm-wait", "deepspeed/runtime/zero/", "_synchronize_communication", "all_gather", 4),
    # A debugger or a prompt waits for a person.
    _rule("child-wait", "/pdb.py", "interaction cmdloop _cmdloop user_line set_trace", "debugger"),
    _rule("child-wait", "/bdb.py", "trace_dispatch dispatch_line user_line set_trace", "debugger"),
    _rule("child-wait", "torch/distributed/__init__.py", "breakpoint", "debugger"),
    _rule("child-wait", "debugpy/", "", "debugger"),
    # Data loading.
    _rule("teardown", "torch/utils/data/dataloader.py", "_shutdown_workers __del__", "dataloader"),
    _rule(
        "dataloader",
        "torch/utils/data/dataloader.py",
        "_try_get_data _get_data _next_data __next__ __iter__ _get_iterator __init__ _reset",
        "dataloader",
    ),
    # Iterators over a thread of their own that fills a queue with batches.
    _rule("dataloader", "fairseq/data/iterators.py", "__next__ take", "prefetch"),
    _rule("dataloader", "prefetch_generator/", "__next__ next", "prefetch"),
    _rule("dataloader", "monai/data/thread_buffer.py", "__iter__", "prefetch"),
    _rule("dataloader", "torch_xla/distributed/parallel_loader.py", "next __next__", "prefetch"),
    _rule("worker-idle", "torch/utils/data/_utils/worker.py", "_worker_loop", INDEX_QUEUE),
    _rule("python-run", "torch/utils/data/_utils/fetch.py", "fetch", "fetch"),
    # Builds, compilers and file locks.
    _rule("lock", "torch/utils/file_baton.py", "wait", "FileBaton"),
    _rule("lock", "filelock/", "acquire _acquire __enter__", "filelock"),
    _rule("lock", "portalocker/", "", "portalocker"),
    _rule("lock", "trainprobe/import_lock/", "wait _acquire", "flock"),
    _rule("compile", "torch/utils/cpp_extension.py", "", "extension-build", 3),
    _rule("compile", "torch/_inductor/", "", "inductor"),
    _rule("compile", "torch/_dynamo/convert_frame.py", "", "dynamo"),
    _rule("compile", "torch/_dynamo/output_graph.py", "", "dynamo"),
    _rule("compile", "torch/_dynamo/symbolic_convert.py", "", "dynamo"),
    _rule("compile", "torch/_functorch/_aot_autograd/", "", "aot-autograd"),
    _rule("compile", "torch/_export/", "", "export"),
    _rule("compile", "triton/compiler/", "", "triton"),
    _rule("compile", "triton/runtime/autotuner.py", "", "triton-autotune"),
    _rule("compile", "triton/runtime/build.py", "", "triton"),
    # Imports.
    _rule(
        "import-lock",
        "importlib._bootstrap>",
        "_lock_unlock_module _ModuleLock.acquire _ModuleLockManager.__enter__ acquire __enter__",
        "import",
    ),
    # Files.
    _rule(
        "file-io",
        "torch/serialization.py",
        "save _save _legacy_save _open_zipfile_writer_file __init__ __exit__",
        "torch.save",
        2,
    ),
    _rule(
        "file-io",
        "torch/serialization.py",
        "load _load _legacy_load load_tensor persistent_load read",
        "torch.load",
        2,
    ),
    _rule("file-io", "torch/distributed/checkpoint/", "", "checkpoint", 2),
    _rule("file-io", "/shutil.py", "", "copy", 1),
    _rule("file-io", "/zipfile", "", "zipfile", 1),
    _rule("file-io", "/tarfile.py", "", "tarfile", 1),
    _rule("file-io", "/gzip.py", "", "gzip", 1),
    _rule("file-io", "safetensors/", "", "safetensors", 2),
    # The end of a process.
    _rule(
        "teardown",
        "multiprocessing/util.py",
        "_exit_function _run_finalizers",
        "multiprocessing-exit",
    ),
    _rule("teardown", "/threading.py", "_shutdown", "threads-at-exit"),
    _rule("teardown", "concurrent/futures/", "_python_exit", "executor-at-exit"),
    # Children.
    _rule("child-wait", "multiprocessing/popen_", "wait poll", "join", 2),
    _rule("child-wait", "multiprocessing/process.py", "join", "join", 2),
    _rule("child-wait", "multiprocessing/pool.py", "get wait map join starmap next", "pool", 2),
    _rule(
        "child-wait",
        "/subprocess.py",
        "wait _wait _try_wait communicate _communicate run call check_call check_output poll",
        "subprocess",
        2,
    ),
    # Locks and queues of Python.
    _rule("lock", "multiprocessing/queues.py", "get put join", "mp-queue", 2),
    _rule("lock", "multiprocessing/synchronize.py", "", "mp-lock", 1),
    _rule("lock", "/queue.py", "get put join", "queue", 2),
    _rule("lock", "logging/__init__.py", "acquire _acquireLock handle", "logging", 2),
    # Its main thread waits for the end, whatever others ask of its threads.
    _rule("worker-idle", "multiprocessing/managers.py", "serve_forever", SERVANT),
    # What a proxy asks for comes from whoever fills what it stands for.
    _rule("lock", "multiprocessing/managers.py", "acquire wait", "manager", 3),
    _rule("child-wait", "multiprocessing/managers.py", "_callmethod", "manager", 2),
    _rule("lock", "tqdm/", "acquire __enter__", "tqdm-lock", 2),
    _rule("lock", "concurrent/futures/", "result wait shutdown __exit__", "future", 2),
    _rule(
        "lock",
        "/threading.py",
        "wait acquire join _wait_for_tstate_lock __enter__ wait_for",
        "threading",
        1,
    ),
    # Network.
    _rule("net-io", "wandb/", "", "wandb", 1),
    _rule("net-io", "mlflow/", "", "mlflow", 1),
    _rule("net-io", "comet_ml/", "", "comet", 1),
    _rule("net-io", "huggingface_hub/", "", "hub", 1),
    _rule("net-io", "aiohttp/", "", "http", 1),
    _rule("net-io", "botocore/", "", "http", 2),
    _rule("net-io", "google/cloud/", "", "http", 1),
    _rule("net-io", "urllib3/", "", "http", 2),
    _rule("net-io", "requests/", "", "http", 2),
    _rule("net-io", "httpx/", "", "http", 2),
    _rule("net-io", "httpcore/", "", "http", 2),
    _rule("net-io", "/urllib/request.py", "", "http", 2),
    _rule("net-io", "/http/client.py", "", "http", 2),
    _rule("net-io", "/grpc/", "", "grpc", 2),
    _rule("net-io", "/ssl.py", "", "ssl", 1),
    _rule("net-io", "/socket.py", "accept", "accept", 1),
    _rule("net-io", "/socketserver.py", "serve_forever handle_request", "accept", 2),
    _rule("net-io", "/socket.py", "", "socket", 1),
    _rule("net-io", "multiprocessing/connection.py", "", "connection", 1),
    _rule("net-io", "/selectors.py", "", "select", 1),
    _rule("net-io", "/asyncio/", "", "asyncio", 1),
)
