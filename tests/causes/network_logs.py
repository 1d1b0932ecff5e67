"""Short logs of start-up and communication, each with the cause that must stand first. Hosts,
paths and numbers are made up.
"""

from __future__ import annotations

_SITE = "/env/lib/python3.11/site-packages/torch/distributed"
_AT_START = (
    'Traceback (most recent call last):\n  File "/job/train.py", line 12, in main\n   '
    f' dist.init_process_group("nccl")\n  File "{_SITE}/distributed_c10d.py", line 595, in'
    " init_process_group\n    store, rank, world_size = next(rendezvous_iterator)\n"
)
_AT_BARRIER = (
    'Traceback (most recent call last):\n  File "/job/train.py", line 20, in main\n   '
    f' dist.barrier()\n  File "{_SITE}/distributed_c10d.py", line 3145, in barrier\n    work ='
    " group.barrier(opts=opts)\n"
)
_SYSTEM = (
    "NCCL error in: ../c10d/ProcessGroupNCCL.cpp:1331, unhandled system error (run with"
    " NCCL_DEBUG=INFO for details), NCCL version 2.18.1\nncclSystemError: System call failed.\n"
)
_USAGE = (
    "NCCL error in: ../c10d/NCCLUtils.hpp:219, invalid usage (run with NCCL_DEBUG=WARN for"
    " details), NCCL version 2.18.1\nncclInvalidUsage: This usually reflects invalid usage.\n"
)
_INTERNAL = (
    "NCCL error in: ../c10d/ProcessGroupNCCL.cpp:1333, internal error - please report this issue to"
    " the NCCL developers, NCCL version 2.18.1\nncclInternalError: Internal check failed.\n"
)
_CUDA = (
    "NCCL error in: /c10d/NCCLUtils.cpp:93, unhandled cuda error, NCCL version"
    " 2.29.7\nncclUnhandledCudaError: Call to CUDA function failed.\n"
)
_BACKEND = _AT_BARRIER + "torch.distributed.DistBackendError: "
_W = "[W socket.cpp:663] [c10d] The client socket has failed to connect to [node-a]:29500"

LOGS: list[tuple[str, str, str]] = [
    (
        "hostname-resolution",
        "both families",
        _AT_START
        + "RuntimeError: The client socket has failed to connect to any network address of (node-a, 57748). The IPv6 network addresses of (node-a, 57748) cannot be retrieved (gai error: -2 - Name or service not known). The IPv4 network addresses of (node-a, 57748) cannot be retrieved (gai error: -2 - Name or service not known).",
    ),
    (
        "hostname-resolution",
        "only warnings",
        "[W socket.cpp:601] [c10d] The IPv6 network addresses of (node-a, 53821) cannot be "
        "retrieved (gai error: -3 - Temporary failure in name resolution).\n" * 4,
    ),
    (
        "hostname-resolution",
        "reverse lookup",
        "[W724 18:22:38.909218572 socket.cpp:200] [c10d] The hostname of the client socket cannot "
        "be retrieved. err=-3\n" * 2,
    ),
    (
        "hostname-resolution",
        "torch 1.1",
        _AT_START + "ValueError: host not found: Name or service not known",
    ),
    (
        "hostname-resolution",
        "Windows",
        (
            'Traceback (most recent call last):\n  File "train.py", line 25, in main\n    name = '
            "socket.gethostbyname(socket.getfqdn())\nsocket.gaierror: [Errno 11001] getaddrinfo failed"
        ),
    ),
    (
        "hostname-resolution",
        "ssh",
        (
            "pdsh@node-a: node-b: ssh exited with exit code 255\nnode-b: ssh: Could not resolve "
            "hostname node-b: Name or service not known"
        ),
    ),
    (
        "hostname-resolution",
        "a name for an address",
        (
            "[W1008 23:40:22.836678340 socket.cpp:767] [c10d] The client socket has failed to connect "
            "to [node-a.internal]:50745 (errno: 22 - Invalid argument).\n[E1008 23:41:22.800000000 "
            "socket.cpp:805] [c10d] The client socket has timed out after 60000ms while trying to "
            "connect to (node-a.internal, 50745)."
        ),
    ),
    (
        "hostname-resolution",
        "gloo's own name",
        (
            "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:99] rv "
            "== 0. -2 vs 0"
        ),
    ),
    (
        "hub-unreachable",
        "a name of the web",
        (
            "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', "
            "port=443): Max retries exceeded with url: /m/resolve/main/config.json (Caused by "
            "NameResolutionError: Failed to resolve 'huggingface.co' ([Errno -3] Temporary failure in "
            "name resolution))"
        ),
    ),
    (
        "firewall-or-route",
        "the master",
        (
            f"{_W} (errno: 113 - No route to host).\n[E socket.cpp:610] [c10d] The client socket has "
            f"failed to connect to any network address of (node-a, 29500)."
        ),
    ),
    (
        "firewall-or-route",
        "the master is silent",
        f"{_W} (errno: 110 - Connection timed out).\n" * 3
        + "[E socket.cpp:719] [c10d] The client socket has timed out after 600s while trying to connect to (node-a, 29500).",
    ),
    (
        "firewall-or-route",
        "NCCL 2.4",
        "node-b:91:99 [0] NCCL INFO Call to connect returned Connection refused, retrying\n" * 3
        + "node-b:91:99 [0] include/socket.h:390 NCCL WARN Connect to 10.1.0.7<21724> failed : Connection refused\n"
        + _AT_BARRIER
        + "RuntimeError: NCCL error in: ../ProcessGroupNCCL.cpp:410, unhandled system error, NCCL version 2.4.8",
    ),
    (
        "firewall-or-route",
        "NCCL 2.18, last error",
        _BACKEND
        + _SYSTEM
        + "Last error:\nsocketStartConnect: Connect to 10.1.0.7<45763> failed : Software caused connection abort",
    ),
    (
        "firewall-or-route",
        "NCCL 2.2",
        (
            "node-b:91:99 [0] include/socket.h:360 WARN Call to connect failed : Connection timed "
            "out\nnode-b:91:98 [0] include/socket.h:371 WARN Connection closed by remote peer"
        ),
    ),
    (
        "firewall-or-route",
        "gloo",
        (
            "RuntimeError: Gloo connectFullMesh failed with "
            "[../third_party/gloo/gloo/transport/tcp/pair.cc:144] timed out connecting: SO_ERROR: No "
            "route to host, remote=[10.1.0.7]:41234"
        ),
    ),
    (
        "firewall-or-route",
        "the proxy",
        _BACKEND + _INTERNAL + "Last error:\nProxy Call to rank 7 failed (Connect)",
    ),
    (
        "wrong-network-interface",
        "gloo at loopback",
        (
            "RuntimeError: Gloo connectFullMesh failed with "
            "[/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: "
            "Connection refused, remote=[127.0.0.1]:35001"
        ),
    ),
    (
        "wrong-network-interface",
        "gloo says nothing",
        _AT_START
        + "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
    ),
    (
        "wrong-network-interface",
        "gloo's interface",
        (
            "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:83] ifa "
            "!= nullptr. Unable to find address for: eth9"
        ),
    ),
    (
        "wrong-network-interface",
        "IPv4 and IPv6",
        (
            "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:288] "
            "ss1.ss_family == ss2.ss_family. 2 vs 10"
        ),
    ),
    (
        "wrong-network-interface",
        "NCCL's interface",
        "node-a:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eno9\nnode-a:1:1 [0] "
        "bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"
        + _AT_BARRIER
        + "RuntimeError: NCCL error in: ../ProcessGroupNCCL.cpp:911, internal error, NCCL version 2.7.8",
    ),
    (
        "wrong-network-interface",
        "an interface without an address",
        (
            "ncclInternalError: Internal check failed.\nLast error:\nncclSocketInit: connecting to "
            "address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)"
        ),
    ),
    (
        "wrong-network-interface",
        "docker0",
        (
            "node-a:77:77 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\nnode-b:88:99 [0] "
            "misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 172.17.0.1<40113> failed : "
            "Connection refused"
        ),
    ),
    (
        "ib-roce-misconfig",
        "NCCL 2.14",
        (
            "node-b:57:59 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer "
            "10.1.0.7<33092> with error 12, opcode 0, len 0, vendor err 129 (Recv)\nnode-b:57:59 [0] "
            "NCCL INFO transport/net.cc:1134 -> 6"
        ),
    ),
    (
        "ib-roce-misconfig",
        "NCCL 2.21, last error",
        _AT_BARRIER
        + "torch.distributed.DistBackendError: NCCL error in: ../c10d/ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error, NCCL version 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\nNET/IB: Got completion from peer 10.1.0.7<40020> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_3",
    ),
    (
        "ib-roce-misconfig",
        "queue pairs",
        (
            "node-b:57:59 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error "
            "Network is unreachable\nnode-b:57:58 [0] misc/socket.cc:49 NCCL WARN socketProgress: "
            "Connection closed by remote peer node-a<41109>"
        ),
    ),
    (
        "ib-roce-misconfig",
        "two fabrics",
        (
            "NCCL WARN NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and "
            "[1]mlx5_4:1/RoCE. Try selecting NICs of only one link type using NCCL_IB_HCA"
        ),
    ),
    (
        "ib-roce-misconfig",
        "EFA",
        (
            "node-b:57:59 [0] NCCL WARN NET/OFI Request 0x7f completed with error. RC: 21. Error: "
            "unknown error. Completed length: 0"
        ),
    ),
    (
        "network-fault",
        "after steps",
        "\n".join(
            f" iteration {step}/ 10000 | elapsed time per iteration (ms): 812.1 | lm loss: 3.1"
            for step in range(400, 420)
        )
        + "\nnode-b:57:59 [3] NCCL WARN NET/IB : mlx5_2:1 Got async event : port error\nnode-b:57:59 [3] NCCL WARN NET/IB : Got completion from peer 10.1.0.7<33092> with error 12, opcode 0, len 0, vendor err 129",
    ),
    (
        "memlock-limit",
        "NCCL 2.7",
        (
            "node-b:57:59 [0] misc/ibvwrap.cc:268 NCCL WARN Call to ibv_create_cq "
            "failed\nnode-b:57:59 [0] NCCL INFO transport/net_ib.cc:300 -> 2"
        ),
    ),
    (
        "memlock-limit",
        "last error",
        _BACKEND
        + _SYSTEM
        + "Last error:\nCall to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
    ),
    (
        "memlock-limit",
        "UCX",
        (
            "ib_log.c:246  UCX  ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please "
            "set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)"
        ),
    ),
    (
        "nccl-shm-segment",
        "NCCL 2.7",
        (
            "node-a:21:25 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space "
            "left on device\nnode-a:21:25 [1] include/shm.h:48 NCCL WARN Error while creating shared "
            "memory segment nccl-shm-recv-25-0-1-3 (size 9637888)"
        ),
    ),
    (
        "nccl-shm-segment",
        "NCCL 2.26",
        (
            "node-a:20:22 [0] misc/shmutils.cc:88 NCCL WARN Error: failed to extend "
            "/dev/shm/nccl-WU88OE to 9637892 bytes, error: No space left on device (28)\nnode-a:20:23 "
            "[2] proxy.cc:1326 NCCL WARN Socket recv failed while polling for opId=0x7f"
        ),
    ),
    (
        "nccl-shm-segment",
        "last error",
        _BACKEND
        + _SYSTEM
        + "Last error:\nError while creating shared memory segment /dev/shm/nccl-pZafXL (size 7340384)",
    ),
    (
        "nvls-multicast",
        "a bind in words of memory",
        _BACKEND
        + _CUDA
        + "Last error:\nFailed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'.",
    ),
    (
        "nvls-multicast",
        "CUDA 401",
        (
            "node-a:27:27 [1] transport/nvls.cc:254 NCCL WARN Cuda failure 401 'the operation cannot "
            "be performed in the present state'"
        ),
    ),
    (
        "nvls-multicast",
        "out of memory",
        (
            "node-a:1:2 [3] transport/nvls.cc:169 NCCL WARN Cuda failure 2 'out of "
            "memory'\nnode-a:1:2 [3] NCCL INFO init.cc:1089 -> 1"
        ),
    ),
    (
        "nccl-version-mismatch",
        "a symbol",
        (
            "ImportError: /env/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: undefined "
            "symbol: ncclCommRegister"
        ),
    ),
    (
        "nccl-version-mismatch",
        "two versions",
        "node-a:1:2 [0] init.cc:700 NCCL WARN Mismatched NCCL version detected : rank 0 version "
        "21805 rank 8 version 22005\n" + _BACKEND + _USAGE,
    ),
    (
        "nccl-version-mismatch",
        "the topology",
        (
            "node-a:7:9 [4] graph/rings.cc:38 NCCL WARN Error : ring 0 does not loop back to start "
            "(48 != 52)\nRuntimeError: NCCL error in: ../ProcessGroupNCCL.cpp:975, internal error, "
            "NCCL version 21.1.4"
        ),
    ),
    (
        "nccl-env-misconfig",
        "an algorithm",
        "node-a:1:2 [0] NCCL INFO NCCL_ALGO set by environment to NVLS\n"
        + _BACKEND
        + _USAGE
        + "Last error:\nError : no algorithm/protocol available for function AllReduce with datatype ncclFloat32. NCCL_ALGO was set to NVLS.",
    ),
    (
        "nccl-env-misconfig",
        "a network",
        "node-a:1:2 [0] NCCL INFO NCCL_NET set by environment to IBext\nnode-a:1:2 [0] net.cc:90 "
        "NCCL WARN Error: network IBext not found.\n" + _AT_BARRIER + "RuntimeError: " + _USAGE,
    ),
    (
        "p2p-blocked",
        "accelerate",
        (
            "NotImplementedError: Using RTX 4000 series doesn't support faster communication "
            'broadband via P2P or IB. Please set `NCCL_P2P_DISABLE="1"` and `NCCL_IB_DISABLE="1"`.'
        ),
    ),
    (
        "p2p-blocked",
        "NVLink",
        "node-a:1:2 [0] graph/paths.cc:300 NCCL WARN P2P is disabled between NVLINK connected "
        "GPUs 1 and 0. This should not be the case given their connectivity, and is probably due "
        "to a hardware issue.\n" + _BACKEND + _SYSTEM,
    ),
    (
        "duplicate-gpu",
        "last error",
        _BACKEND
        + _USAGE
        + "Last error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
    ),
    ("port-in-use", "torch 1.4", _AT_START + "RuntimeError: Address already in use"),
    (
        "port-in-use",
        "torch 2.13",
        _AT_START
        + "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
    ),
    (
        "port-in-use",
        "accelerate",
        (
            "ConnectionError: Tried to launch distributed communication on port `29500`, but another "
            "process is utilizing it. Please specify a different port"
        ),
    ),
    (
        "rendezvous-incomplete",
        "torchrun",
        "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to 10.1.0.7:1234\ntorch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
    ),
    (
        "rendezvous-incomplete",
        "torch 1.8",
        _AT_START + "RuntimeError: connect() timed out. Original timeout was 1800000 ms.",
    ),
    (
        "rendezvous-incomplete",
        "refused by the master",
        f"{_W} (errno: 111 - Connection refused).\n" * 5,
    ),
    (
        "rendezvous-incomplete",
        "clients",
        _AT_START
        + "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined.",
    ),
    (
        "library-version-conflict",
        "libuv",
        "RuntimeError: use_libuv was requested but PyTorch was built without libuv support",
    ),
    (
        "rendezvous-incomplete",
        "ssh",
        (
            "node-b: job@node-b: Permission denied (publickey,password).\npdsh@node-a: node-b: ssh "
            "exited with exit code 255"
        ),
    ),
    (
        "world-size-mismatch",
        "too many",
        (
            "RuntimeError: Timed out initializing process group in store based barrier on rank: 2, "
            "for key: store_based_barrier_key:1 (world_size=2, worker_count=4, timeout=0:30:00)"
        ),
    ),
    (
        "world-size-mismatch",
        "DeepSpeed",
        (
            "AssertionError: Check batch related parameters. train_batch_size is not equal to "
            "micro_batch_per_gpu * gradient_acc_step * world_size 256 != 4 * 8 * 1"
        ),
    ),
    (
        "world-size-mismatch",
        "a rank twice",
        "node-a:1:2 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already "
        "checked in\n" + _AT_BARRIER + "RuntimeError: " + _SYSTEM,
    ),
    (
        "world-size-mismatch",
        "checkpoint",
        "AssertionError: Loading a checkpoint for MP=2 but world size is 1",
    ),
    (
        "launcher-args",
        "local-rank",
        (
            "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: "
            "--local-rank=0\nERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 2) "
            "local_rank: 0 (pid: 1234) of binary: /usr/bin/python"
        ),
    ),
    (
        "launcher-args",
        "no variable",
        (
            'Traceback (most recent call last):\n  File "train.py", line 20, in <module>\n    '
            'local_rank = int(os.environ.get("LOCAL_RANK"))\nTypeError: int() argument must be a '
            "string, a bytes-like object or a number, not 'NoneType'"
        ),
    ),
    (
        "launcher-args",
        "no group",
        (
            "ValueError: Default process group has not been initialized, please make sure to call "
            "init_process_group."
        ),
    ),
    (
        "launcher-args",
        "torchrun itself",
        (
            "torchrun: error: the following arguments are required: training_script, "
            "training_script_args"
        ),
    ),
    (
        "invalid-device-ordinal",
        "set_device",
        (
            'Traceback (most recent call last):\n  File "train.py", line 33, in main\n    '
            "torch.cuda.set_device(local_rank)\nRuntimeError: CUDA error: invalid device ordinal"
        ),
    ),
    (
        "invalid-device-ordinal",
        "Lightning",
        (
            "lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, "
            "1, 2, 3]\n But your machine only has: [0]"
        ),
    ),
    (
        "wrong-device-binding",
        "two GPUs",
        (
            "RuntimeError: Expected all tensors to be on the same device, but found at least two "
            "devices, cuda:1 and cuda:0! (when checking argument for argument mat1 in method "
            "wrapper_addmm)"
        ),
    ),
    (
        "wrong-device-binding",
        "a checkpoint",
        (
            "RuntimeError: Attempting to deserialize object on CUDA device 7 but "
            "torch.cuda.device_count() is 4. Please use torch.load with map_location to map your "
            "storages to an existing device."
        ),
    ),
    (
        "accidental-data-parallel",
        "a replica",
        (
            "RuntimeError: module must have its parameters and buffers on device cuda:0 "
            "(device_ids[0]) but found one of them on device: cuda:1"
        ),
    ),
    (
        "net-plugin-fork-failure",
        "EFA",
        (
            "node-a:1:2 [0] NCCL INFO NET/OFI Selected Provider is efa\nTraceback (most recent call "
            'last):\n  File "/job/train.py", line 189, in main\n    for batch in loader:\n  File '
            '"/env/lib/python3.11/multiprocessing/popen_fork.py", line 66, in _launch\n    self.pid = '
            "os.fork()\nOSError: [Errno 12] Cannot allocate memory"
        ),
    ),
    (
        "wrong-network-interface",
        "bridges of containers",
        (
            "node-a:77:77 [0] NCCL INFO NET/Socket : Using [0]eth0:10.2.0.3<0> "
            "[1]br-5f0c1a2b3d4e:172.19.0.1<0> [2]veth0a1b2c3:fe80::1%veth0a1b2c3<0>\n"
            "RuntimeError: NCCL error: unhandled system error\nncclSystemError: System call "
            "(socket, malloc, munmap, etc) failed."
        ),
    ),
    (
        "wrong-network-interface",
        "loopback before a lost actor",
        (
            "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport"
            "/tcp/pair.cc:152] timed out connecting: SO_ERROR: Connection refused, "
            "remote=[127.0.0.1]:40211 (rank=4, size=8, local=[127.0.0.1])\n\n"
            "ray.exceptions.ActorHandleNotFoundError: the handle was created in job 01000000\n"
            "RuntimeError: Engine core initialization failed"
        ),
    ),
    (
        "nccl-shm-segment",
        "before a kernel that failed without it",
        (
            "misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-abc123 to 9637892 "
            "bytes, error: No space left on device (28)\nterminate called after throwing an "
            "instance of 'EPException'\n  what():  Failed: CUDA error /job/ep.cpp:89 'an illegal "
            "memory access was encountered'"
        ),
    ),
    # What only looks like the network's fault.
    (
        "user-exception",
        "refused afterwards",
        (
            f'Traceback (most recent call last):\n  File "/job/train.py", line 88, in main\n    loss '
            f"= step(batch)\nValueError: bad batch\n{_W} (errno: 111 - Connection refused)."
        ),
    ),
    (
        "user-exception",
        "loopback on one host",
        (
            "node-a:1:1 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\nTraceback (most recent call "
            'last):\n  File "/job/train.py", line 88, in main\n    label = row[3]\nIndexError: list '
            "index out of range"
        ),
    ),
    (
        "user-exception",
        "a tensor on the CPU",
        (
            'Traceback (most recent call last):\n  File "/job/train.py", line 33, in main\n    out = '
            "model(x)\nRuntimeError: Expected all tensors to be on the same device, but found at "
            "least two devices, cpu and cuda:0!"
        ),
    ),
    (
        "cuda-oom",
        "refused afterwards",
        (
            'Traceback (most recent call last):\n  File "/job/train.py", line 88, in main\n    '
            "loss.backward()\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
            "GiB (GPU 0; 79.15 GiB total capacity; 70.10 GiB already allocated)\nnode-b:1:2 [0] "
            "misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.1.0.7<45763> failed : "
            "Connection refused"
        ),
    ),
    ("unknown", "NCCL's general words", _BACKEND + _SYSTEM),
]
