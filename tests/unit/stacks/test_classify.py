"""What a stack is waiting for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user, module_importing, user_frame
from trainprobe.stacks.progress import moved
from trainprobe.stacks.rules import LEAVES

SITE = "/env/lib/python3.11/site-packages/"
STD = "/env/lib/python3.11/"
TRAIN = Frame("train", "/job/train.py", 88)
MAIN = Frame("<module>", "/job/train.py", 99)
C10D = SITE + "torch/distributed/distributed_c10d.py"
LOADER = SITE + "torch/utils/data/dataloader.py"
WRAPPER = Frame("_exception_logger.<locals>.wrapper", SITE + "torch/distributed/c10d_logger.py", 83)
JOURNAL = Frame(
    "journal_calls.<locals>.with_journal.<locals>.journalled",
    SITE + "trainprobe/_probes/_witness/_collectives.py",
    104,
)


def stack(*inner: Frame) -> tuple[Frame, ...]:
    return (MAIN, TRAIN, *inner)


GET = (
    Frame("Queue.get", STD + "multiprocessing/queues.py", 113),
    Frame("_poll", STD + "multiprocessing/connection.py", 256),
    Frame("select", STD + "selectors.py", 415),
)
NEXT = (
    Frame("__next__", LOADER, 725),
    Frame("_next_data", LOADER, 1505),
    Frame("_get_data", LOADER, 1464),
    Frame("_try_get_data", LOADER, 1310),
)

CASES = {
    "a manager's own process": (
        stack(
            Frame("Server.serve_forever", STD + "multiprocessing/managers.py", 176),
            Frame("Event.wait", STD + "threading.py", 629),
        ),
        "worker-idle",
        "servant",
    ),
    "what others put into a manager": (
        stack(
            Frame("BaseProxy._callmethod", SITE + "multiprocess/managers.py", 822),
            Frame("Connection.recv", SITE + "multiprocess/connection.py", 253),
        ),
        "child-wait",
        "manager",
    ),
    "a manager's lock": (
        stack(
            Frame("AcquirerProxy.acquire", STD + "multiprocessing/managers.py", 1046),
            Frame("BaseProxy._callmethod", STD + "multiprocessing/managers.py", 822),
        ),
        "lock",
        "manager",
    ),
    "batches that a thread of its own buffers": (
        stack(
            Frame("__iter__", SITE + "fairseq/data/iterators.py", 59),
            Frame("BufferedIterator.__next__", SITE + "fairseq/data/iterators.py", 648),
            Frame("Queue.get", STD + "queue.py", 170),
            Frame("Condition.wait", STD + "threading.py", 302),
        ),
        "dataloader",
        "prefetch",
    ),
    "batches of a background generator": (
        stack(
            Frame("BackgroundGenerator.next", SITE + "prefetch_generator/__init__.py", 87),
            Frame("Queue.get", STD + "queue.py", 170),
        ),
        "dataloader",
        "prefetch",
    ),
    "parameters that ZeRO-3 gathers": (
        stack(
            Frame("fetch_sub_module", SITE + "deepspeed/runtime/zero/coordinator.py", 386),
            Frame(
                "all_gather_coalesced",
                SITE + "deepspeed/runtime/zero/partition_parameters.py",
                1254,
            ),
        ),
        "comm-wait",
        "all_gather",
    ),
    "a collective of DeepSpeed's own": (
        stack(Frame("all_reduce", SITE + "deepspeed/comm/comm.py", 500)),
        "comm-wait",
        "all_reduce",
    ),
    "waits for somebody to connect": (
        stack(Frame("socket.accept", STD + "socket.py", 294)),
        "net-io",
        "accept",
    ),
    "serves until somebody ends it": (
        stack(
            Frame("BaseServer.serve_forever", STD + "socketserver.py", 235),
            Frame("select", STD + "selectors.py", 415),
        ),
        "net-io",
        "accept",
    ),
    "collective": (stack(WRAPPER, Frame("all_reduce", C10D, 3252)), "comm-wait", "all_reduce"),
    "collective behind our journal": (
        stack(JOURNAL, WRAPPER, Frame("all_reduce", C10D, 3252)),
        "comm-wait",
        "all_reduce",
    ),
    "object collective": (
        stack(
            WRAPPER,
            Frame("all_gather_object", C10D, 3100),
            WRAPPER,
            Frame("all_gather", C10D, 4287),
        ),
        "comm-wait",
        "all_gather_object",
    ),
    "backward": (
        stack(
            Frame("Tensor.backward", SITE + "torch/_tensor.py", 623),
            Frame("_engine_run_backward", SITE + "torch/autograd/graph.py", 979),
        ),
        "comm-wait",
        "backward",
    ),
    "joining": (
        stack(
            WRAPPER,
            Frame("init_process_group", C10D, 1800),
            Frame("_env_rendezvous_handler", SITE + "torch/distributed/rendezvous.py", 275),
        ),
        "store-wait",
        "rendezvous",
    ),
    "leaving": (
        stack(Frame("destroy_process_group", C10D, 2300)),
        "teardown",
        "destroy_process_group",
    ),
    "synchronise": (
        stack(Frame("synchronize", SITE + "torch/cuda/__init__.py", 1100)),
        "gpu-wait",
        "synchronize",
    ),
    "loader": (stack(*NEXT, *GET), "dataloader", "dataloader"),
    "own dataset in this process": (
        stack(
            *NEXT[:2],
            Frame("fetch", SITE + "torch/utils/data/_utils/fetch.py", 54),
            Frame("__getitem__", "/job/data.py", 4),
        ),
        "python-run",
        "",
    ),
    "idle worker": (
        stack(
            NEXT[0],
            Frame("run", STD + "multiprocessing/process.py", 108),
            Frame("_worker_loop", SITE + "torch/utils/data/_utils/worker.py", 341),
            *GET,
        ),
        "worker-idle",
        "index-queue",
    ),
    "file baton": (
        stack(
            Frame("load", SITE + "torch/utils/cpp_extension.py", 1600),
            Frame("wait", SITE + "torch/utils/file_baton.py", 50),
        ),
        "lock",
        "FileBaton",
    ),
    "build": (
        stack(
            Frame("_run_ninja_build", SITE + "torch/utils/cpp_extension.py", 2500),
            Frame("run", STD + "subprocess.py", 500),
        ),
        "compile",
        "extension-build",
    ),
    "imports a compiler": (
        stack(
            Frame("<module>", SITE + "torch/_export/wrappers.py", 10),
            Frame("<module>", SITE + "torch/_inductor/utils.py", 40),
        ),
        "python-run",
        "",
    ),
    "event": (
        stack(
            Frame("Event.wait", STD + "threading.py", 629),
            Frame("Condition.wait", STD + "threading.py", 327),
        ),
        "lock",
        "threading",
    ),
    "subprocess": (
        stack(Frame("run", STD + "subprocess.py", 550), Frame("select", STD + "selectors.py", 415)),
        "child-wait",
        "subprocess",
    ),
    "web": (
        stack(Frame("get", SITE + "requests/api.py", 73), Frame("recv_into", STD + "ssl.py", 1100)),
        "net-io",
        "http",
    ),
    "import lock": (
        stack(
            Frame("_find_and_load", "<frozen importlib._bootstrap>", 1170),
            Frame("_ModuleLock.acquire", "<frozen importlib._bootstrap>", 110),
        ),
        "import-lock",
        "import",
    ),
    "end of the interpreter": (
        stack(
            Frame("_shutdown", STD + "threading.py", 1590),
            Frame("_wait_for_tstate_lock", STD + "threading.py", 1132),
        ),
        "teardown",
        "threads-at-exit",
    ),
    "save": (
        stack(
            Frame("save", SITE + "torch/serialization.py", 900),
            Frame("_save", SITE + "torch/serialization.py", 1100),
        ),
        "file-io",
        "torch.save",
    ),
    "own code": (stack(), "python-run", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_where_a_stack_ends(name: str) -> None:
    frames, leaf, op = CASES[name]
    place = classify(frames)
    assert (place.leaf, place.op) == (leaf, op)
    assert place.leaf in LEAVES
    assert place.user == (frames[-1] if name.startswith("own dataset") else TRAIN)


def test_the_kernel_says_what_a_c_function_waits_in() -> None:
    assert classify(stack(), wchan="hrtimer_nanosleep").leaf == "sleep"
    assert classify(stack(), syscall="230 0x1 0x0").leaf == "sleep"
    assert classify(stack(), wchan="locks_lock_inode_wait").op == "flock"
    assert classify(stack(), wchan="hrtimer_nanosleep", state="R").leaf == "python-run"
    assert classify(stack(), wchan="rpc_wait_bit_killable", state="D").op == "nfs"


def test_a_backward_that_computes_is_not_a_wait() -> None:
    frames, _, _ = CASES["backward"]
    assert classify(frames, state="R").leaf == "native-run"
    assert classify(frames, state="S", wchan="futex_do_wait").in_backward


def test_the_path_of_a_lock_is_in_its_frame_s_locals() -> None:
    waiting = Frame(
        "acquire", SITE + "filelock/_api.py", 300, locals={"lock_filename": "'/cache/x.lock'"}
    )
    place = classify(stack(waiting))
    assert (place.leaf, place.op, place.lock_path) == ("lock", "filelock", "/cache/x.lock")


def test_a_native_stack_tells_more() -> None:
    native = Frame(
        "c10d::Work::wait(std::chrono::duration<long>)", "/env/torch/lib/libtorch_cpu.so", 0
    )
    assert classify(stack(native)).leaf == "native-run"
    assert (
        classify(stack(Frame("cuStreamSynchronize", "/usr/lib/libcuda.so.1", 0))).leaf == "gpu-wait"
    )


def test_the_module_that_is_being_imported() -> None:
    imported = Frame("<module>", SITE + "numpy/core/__init__.py", 3)
    load = Frame("_find_and_load", "<frozen importlib._bootstrap>", 1170)
    assert module_importing((MAIN, load, imported)) == "numpy.core"
    assert (
        module_importing(
            (MAIN, load, Frame("<module>", SITE + "pandas/__init__.py", 1), load, imported)
        )
        == "pandas"
    )
    assert module_importing((MAIN, load, Frame("<module>", "/job/model.py", 1))) == "model"
    assert module_importing((Frame("_run_code", STD + "runpy.py", 88), MAIN)) == ""
    assert module_importing((MAIN, TRAIN)) == ""
    # two ranks' tracebacks, written into each other
    assert module_importing((MAIN, TRAIN, MAIN, TRAIN)) == ""


def test_the_program_itself_is_no_import_in_a_native_stack() -> None:
    interpreter = (
        Frame("_start", "python3.11", 0),
        Frame("Py_RunMain", "/usr/lib/libpython3.11.so.1.0", 0),
    )
    assert not module_importing(
        (
            *interpreter,
            Frame("<module>", "/job/train.py", 5),
            Frame("pause", "/usr/lib/libc.so.6", 0),
        )
    )


def test_without_own_code_the_library_s_frame_is_shown() -> None:
    frames = (Frame("main", SITE + "accelerate/launch.py", 5), Frame("all_reduce", C10D, 1))
    assert user_frame(frames) == frames[0]
    assert user_frame((Frame("all_reduce", C10D, 1),)) is None


def test_polling_is_no_movement() -> None:
    one, other = stack(*NEXT, *GET), stack(*NEXT[:3])
    assert moved([one]) is None
    assert moved([one, other]) is False
    assert moved([one, one, (MAIN, Frame("train", "/job/train.py", 90), *NEXT)]) is True
    assert (
        moved(
            [
                stack(Frame("forward", SITE + "transformers/bert.py", 5)),
                stack(Frame("forward", SITE + "transformers/bert.py", 9)),
            ]
        )
        is True
    )
    assert moved([(), stack()]) is None


FRAMES = st.builds(
    Frame,
    st.text(max_size=20),
    st.sampled_from(["", C10D, LOADER, "/job/a.py", "<frozen x>", "/usr/lib/libc.so.6"])
    | st.text(max_size=20),
    st.integers(-5, 10**9),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(FRAMES, max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_every_stack_has_a_class(frames: list[Frame], wchan: str, syscall: str) -> None:
    assert classify(frames, wchan=wchan, syscall=syscall).leaf in (*LEAVES, "")
    assert moved([frames, frames]) in (None, False)


def test_a_call_of_torch_that_sleeps_in_c_waits_for_the_other_ranks() -> None:
    built = (
        Frame("DistributedDataParallel.__init__", SITE + "torch/nn/parallel/distributed.py", 1064),
        Frame("_verify_param_shape_across_processes", SITE + "torch/distributed/utils.py", 286),
    )
    unknown = Frame("_negotiate", SITE + "torch/distributed/_new/meeting.py", 9)

    assert classify(stack(*built), wchan="futex_do_wait", state="S").leaf == "comm-wait"
    assert classify(stack(unknown), wchan="futex_do_wait", state="S").leaf == "comm-wait"
    assert classify(stack(unknown), state="R").leaf == "python-run"


@pytest.mark.parametrize(
    ("file", "mine"),
    [
        ("C:/Python37/lib/runpy.py", False),
        ("D:/tools/miniconda3/envs/t/Lib/multiprocessing/spawn.py", False),
        ("C:/Users/a/work/lib/train.py", True),
        ("C:/Users/a/python-course/train.py", True),
    ],
)
def test_pythons_own_library_on_windows_is_nobodys_own_code(file: str, mine: bool) -> None:
    assert is_user(Frame("run", file, 3)) is mine


@pytest.mark.parametrize(
    ("file", "mine"),
    [
        ("/opt/src/torch/distributed/distributed_c10d.py", False),
        ("/job/deps/torch/autograd/graph.py", False),
        ("/job/deps/torch/nn/parallel/distributed.py", False),
        ("/home/a/torch/train.py", True),
        ("/home/a/torch/distributed/train.py", True),
    ],
)
def test_torch_is_known_by_its_own_folders_wherever_it_is_installed(file: str, mine: bool) -> None:
    assert is_user(Frame("run", file, 3)) is mine


def test_a_remote_call_is_named_for_what_it_is() -> None:
    api = SITE + "torch/distributed/rpc/api.py"
    frames = (
        Frame("train", "/job/run.py", 32),
        Frame("_require_initialized.<locals>.wrapper", api, 99),
        Frame("rpc_sync", api, 842),
    )
    place = classify(frames, wchan="futex_wait_queue")
    assert (place.leaf, place.op) == ("comm-wait", "rpc_sync")
