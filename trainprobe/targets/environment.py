"""Which variables may be written down: an allow-list, since others hold secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainprobe.secret_names import looks_secret

VALUE_CAP = 400
WHOLE_CAP_BYTES = 2**20
ALLOWED = re.compile(
    r"MASTER_(?:ADDR|PORT)|(?:LOCAL_|GROUP_|ROLE_|NODE_)?RANK|(?:LOCAL_|GROUP_|ROLE_)?WORLD_SIZE"
    r"|TORCHELASTIC_(?:RESTART_COUNT|MAX_RESTARTS|RUN_ID|ERROR_FILE)"
    r"|PET_(?:NNODES|NPROC_PER_NODE|NODE_RANK|MASTER_ADDR|MASTER_PORT|STANDALONE|MAX_RESTARTS"
    r"|RDZV_(?:BACKEND|ENDPOINT|ID))"
    r"|SLURM_(?:JOB_ID|JOBID|STEP_ID|STEPID|ARRAY_JOB_ID|ARRAY_TASK_ID|PROCID|LOCALID|NODEID"
    r"|NTASKS|NPROCS|NNODES|JOB_NUM_NODES|STEP_NUM_TASKS|STEP_NUM_NODES"
    r"|NTASKS_PER_NODE|GPUS_ON_NODE|JOB_NODELIST|JOB_START_TIME|JOB_END_TIME|CPUS_PER_TASK"
    r"|RESTART_COUNT|JOB_PARTITION)"
    r"|(?:OMP|MKL|OPENBLAS|NUMEXPR)_NUM_THREADS|TORCH_(?:NCCL|FR|DIST|DISTRIBUTED|GLOO)_\w+"
    r"|TORCH_CPP_LOG_LEVEL|(?:NCCL|GLOO)_\w+|TORCH_WORKER_SERVER_SOCKET"
    r"|CUDA_(?:VISIBLE_DEVICES|LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS|DEVICE_ORDER)"
    r"|HIP_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|TOKENIZERS_PARALLELISM"
    r"|HF_(?:HUB|DATASETS|EVALUATE)_OFFLINE|TRANSFORMERS_OFFLINE|OMPI_COMM_WORLD_\w+|(?:PMI"
    r"|PMIX)_(?:RANK|SIZE|ID|LOCAL_RANK)|MPI_LOCALRANKID|PYTHONFAULTHANDLER"
)

# Beyond that, what a user hands over on purpose (`explain --env`, `collect-env`): settings of
# libraries and networks, and search paths.
RECORDABLE = re.compile(
    r"(?:NCCL|TORCH|TORCHELASTIC|GLOO|OMP|KMP|MKL|OPENBLAS|CUDA|CUDNN|CUBLAS|NVIDIA|NVTE|PYTORCH"
    r"|SLURM|SLURMD|FI|UCX|UCC|OFI|RDMAV|IBV|HCOLL|SHARP|MASTER|HF|TRANSFORMERS|TOKENIZERS"
    r"|ACCELERATE|FSDP|"
    r"DEEPSPEED|DS|MEGATRON|TRITON|TORCHINDUCTOR|TORCHDYNAMO|PL|RAY|WANDB|MLFLOW|TENSORBOARD|HSA"
    r"|HIP|ROCR|ROCM|MIOPEN|RCCL|XLA|PJRT|NEURON|OMPI|PMI|PMIX|MPICH|I_MPI|LSB|PBS|KUBERNETES|PET"
    r"|VLLM|DALI|MALLOC|MPLCONFIG)"
    r"_\w{1,80}|(?:LOCAL_|GROUP_|ROLE_|NODE_)?RANK|(?:LOCAL_|GROUP_|ROLE_)?WORLD_SIZE"
    r"|PYTHON(?:UNBUFFERED|FAULTHANDLER|HASHSEED|PATH|HOME|WARNINGS|NOUSERSITE|BREAKPOINT"
    r"|DONTWRITEBYTECODE|TRACEMALLOC)"
    r"|LD_PRELOAD|LD_LIBRARY_PATH|TMPDIR|XDG_CACHE_HOME|CONDA_(?:PREFIX|DEFAULT_ENV)|VIRTUAL_ENV"
    r"|LOGLEVEL|NPROC_PER_NODE|NNODES|HOSTNAME|http_proxy|https_proxy|no_proxy|HTTP_PROXY"
    r"|HTTPS_PROXY|NO_PROXY|LC_ALL|LANG"
)
# What `trainprobe collect-env` writes.
SCHEMA = "trainprobe.environment/1"


def is_recordable(name: str) -> bool:
    """Whether a variable may be written down: a listed one whose name is no secret's."""
    return (
        ALLOWED.fullmatch(name) is not None or RECORDABLE.fullmatch(name) is not None
    ) and not looks_secret(name)


def allowed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those that may be kept, each value cut to 400 characters."""
    return {
        name: value[:VALUE_CAP]
        for name, value in sorted(environ.items())
        if ALLOWED.fullmatch(name)
    }


def environ_of(pid: int, proc: str = "/proc") -> dict[str, str]:
    """The variables at its start, for redaction only; empty where they may not be read."""
    try:
        with open(f"{proc}/{pid}/environ", "rb") as file:
            entries = file.read(WHOLE_CAP_BYTES).decode("utf-8", "replace").split("\0")
    except OSError:
        return {}
    return {
        name: value
        for name, equals, value in (word.partition("=") for word in entries)
        if equals and name
    }
