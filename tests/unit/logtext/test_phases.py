"""A log that simply stops: in which phase, what usually stops a job there, and what must not be
guessed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from trainprobe import causes
from trainprobe.logtext.phases import phases, read_phase, signs_in
from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain

SURE_FROM = 0.8  # a phase alone is worth less
BUILT = {cause.id for cause in causes.built()}

# Two excerpts for each phase, and who leads then.
EXCERPTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "rendezvous": (
        (
            (
                "Seed set to 7\nInitializing distributed: GLOBAL_RANK: 1, MEMBER: 2/6\n"
                "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/6\n"
                "\nJOBID PARTITION NAME ST NODES\n 912 long fit R 3\n"
            ),
            "rendezvous-incomplete",
        ),
        (
            (
                "2031-04-02 10:00:01 - INFO - model: mlp\n"
                "[2031-04-02 10:00:04,100] [INFO] [comm.py:637:init_distributed] cdb=None\n"
            ),
            "rendezvous-incomplete",
        ),
    ),
    "store-reached": (
        (
            (
                "settings: seed 4\n[I socket.cpp:725] [c10d] The client socket has connected to"
                " [alpha]:23456 on [beta]:42352.\n"
            ),
            "",
        ),
        (
            (
                "[I socket.cpp:624] [c10d - debug] The client socket will attempt to connect to an"
                " IPv6 address of (alpha, 29511).\n[I socket.cpp:849] [c10d - trace] The client"
                " socket is attempting to connect to [alpha]:29511.\n"
            ),
            "",
        ),
    ),
    "store-barrier": (
        (
            (
                "rank 0 is up\nWaiting in store based barrier to initialize process group for rank: 0,"
                " key: store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)\n"
            ),
            "rendezvous-incomplete",
        ),
        (
            (
                "INFO:c10d:Waiting in store based barrier to initialize process group for rank: 5, key:"
                " store_based_barrier_key:2 (world_size=6, worker_count=2, timeout=0:10:00)\n"
            ),
            "unknown",
        ),
    ),
    "met": (
        (
            "GPU: NVIDIA GeForce RTX 4090 x 2\n"
            "All distributed processes registered. Starting with 2 processes\n" + "-" * 60 + "\n",
            "p2p-blocked",
        ),
        (
            (
                "building the trainer\nLOCAL_RANK: 1 - CUDA_VISIBLE_DEVICES: [0,1]\n"
                "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]\n"
            ),
            "p2p-blocked",
        ),
    ),
    "nccl-bootstrap": (
        (
            (
                "alpha:71:71 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.2<0>\n"
                "beta:65:65 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.2<0>\n"
                "beta:65:65 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so)\n"
            ),
            "wrong-network-interface",
        ),
        (
            (
                "alpha:71:80 [0] NCCL INFO Using network Socket\n"
                "alpha:72:81 [1] NCCL INFO Using network Socket\n"
            ),
            "p2p-blocked",
        ),
    ),
    "nccl-connect": (
        (
            (
                "alpha:71:80 [0] NCCL INFO Channel 00/0 : 0[1000] -> 1[2000] via P2P/CUMEM\n"
                "alpha:72:81 [1] NCCL INFO Channel 00/0 : 1[2000] -> 0[1000] via P2P/CUMEM\n"
            ),
            "p2p-blocked",
        ),
        (
            (
                "alpha:71:80 [0] NCCL INFO Channel 00 : 0[1000] -> 1[2000] via SHM/direct/direct\n"
                "alpha:71:80 [0] NCCL INFO Connected all rings\n"
            ),
            "nccl-shm-segment",
        ),
    ),
    "nccl-multicast": (
        (
            "alpha:71:80 [0] NCCL INFO NVLS comm 0x55aa headRank 0 nHeads 8 buffSize 4194304\n",
            "nvls-multicast",
        ),
        (
            (
                "alpha:71:80 [0] NCCL INFO NVLS multicast support is available on dev 0\n"
                "alpha:71:80 [0] NCCL INFO Channel 01/16 :    0   1   2   3\n"
                "alpha:71:80 [0] NCCL INFO NVLS Creating Multicast group nranks 4 size 8 on rank 0\n"
            ),
            "nvls-multicast",
        ),
    ),
    "nccl-ready": (
        (
            (
                "alpha:71:80 [0] NCCL INFO Connected all trees\n"
                "          64            16      half     sum      -1     9.17    0.01    0.01"
                "      0\n"
                "         128            32      half     sum      -1     9.32    0.01    0.02"
                "      0\n"
            ),
            "p2p-blocked",
        ),
        (
            (
                "alpha:71:80 [0] NCCL INFO comm 0x7f10 rank 0 nranks 2 cudaDev 0 - Init COMPLETE\n"
                "alpha:72:81 [1] NCCL INFO comm 0x7f20 rank 1 nranks 2 cudaDev 1 - Init COMPLETE\n"
            ),
            "p2p-blocked",
        ),
        (
            (
                "alpha:71:80 [0] NCCL INFO comm 0x7f10 rank 0 nranks 2 cudaDev 0 - Init COMPLETE\n"
                "alpha:71:71 [0] NCCL INFO Launch mode Parallel\n"
            ),
            "p2p-blocked",
        ),
    ),
    "engine": (
        (
            (
                "Loading extension module fused_adam...\nTime to load fused_adam op: 2.1 seconds\n"
                "cards: 4 x RTX A6000\nTime to load fused_adam op: 2.2 seconds\n"
            ),
            "p2p-blocked",
        ),
        ("> setting random seeds to 99 ...\n> compiling dataset index builder ...\n", "unknown"),
    ),
    "extension-build": (
        (
            "Creating extension directory /tmp/ext/ops...\nDetected CUDA files, patching ldflags\n",
            "extension-build-lock",
        ),
        ("Using /tmp/ext as PyTorch extensions root...\n" * 2, "extension-build-lock"),
        ('weights read\nSetting up PyTorch plugin "filtered_lrelu"...\n', "extension-build-lock"),
    ),
    "processes-forked": (
        (
            (
                "/py/lib/multiprocessing/popen_fork.py:67: DeprecationWarning: This process"
                " (pid=88) is multi-threaded, use of fork() may lead to deadlocks in the child.\n"
                "  self.pid = os.fork()\n"
            ),
            "fork-inherited-lock",
        ),
        (
            (
                "loader: 4 workers\nOMP: Warning #191: Forking a process while a parallel region is"
                " active is potentially unsafe.\n"
            ),
            "",
        ),
    ),
    "pipeline-start": (
        (
            (
                "[rank0]:V0102 11:00:01 /w/torch/distributed/pipelining/stage.py:1344] Shape"
                " inference: stage 0 skipping recv, because shape info passed in via `args`\n"
            ),
            "",
        ),
        (
            (
                "V0102 11:00:01 torch/distributed/pipelining/stage.py:1290] Finished pipeline stage"
                " init, self.stage_index=1, self.is_first=False, running shape-inference\n"
            ),
            "",
        ),
    ),
    "parameters-fetched": (
        ("Invalidate trace cache @ step 12: expected module 31, but got module 40\n", ""),
        (
            (
                "vision tower loaded\nInvalidate trace cache @ step 0 and module 7: cache has only"
                " 0 modules\n"
            ),
            "",
        ),
    ),
    "compile": (
        ("step plan ready\nStart compiling function <code object forward>\n", "rank-compiling"),
        (
            "kv cache: 8 GiB\nCapturing CUDA graph shapes:   3%|3         | 1/35\n",
            "rank-compiling",
        ),
    ),
    "ranks-spawned": (
        (
            (
                "DDP: debug command /env/bin/python -m torch.distributed.run --nproc_per_node 2"
                " /root/.config/Ultralytics/DDP/_temp.py\n"
            ),
            "unknown",
        ),
        ("Launching training on 4 GPUs.\n", "unknown"),
    ),
    "pods-start": (
        (
            "NAME READY STATUS RESTARTS AGE\njob-worker-0 0/1 Init:0/1 0 20m\n",
            "unknown",
        ),
        (
            (
                "Warning  FailedScheduling  default-scheduler  0/5 nodes are available: 5 Insufficient"
                " nvidia.com/gpu.\n"
            ),
            "launcher-args",
        ),
    ),
    "workers-asked": (
        (
            (
                "WARNING worker.py:1245 -- The actor or task with ID ffff9c08 cannot be scheduled"
                " right now.\nRequired resources for this actor or task: {GPU: 1.000000}\n"
                "Available resources on this node: {4.000000/4.000000 CPU, 0.000000/1.000000 GPU}\n"
                "In total there are 0 pending tasks and 2 pending actors on this node.\n"
            ),
            "world-size-mismatch",
        ),
        ("head node up\nNo current placement group found. Creating a new placement group.\n", ""),
        ("(Engine pid=4) Waiting for creating a placement group of specs for 30 seconds.\n", ""),
    ),
    "model-load": (
        ("building tokenizer\nStarting to load model demo/base...\n", ""),
        ("all ranks are up\nInstantiating Demo model under default dtype torch.float16.\n", ""),
    ),
    "shared-dataset": (
        (
            (
                "epochs: 3\nrank0[12][MainThread]: WARNING: streaming.base.dataset: Because"
                " `predownload` was not specified, it will default to 512\n"
            ),
            "unknown",
        ),
        ("StreamingDataset: num_canonical_nodes defaults to 2\n", "unknown"),
    ),
    "data-prepare": (
        ("vocabulary: 32000\n> building train, validation, and test datasets ...\n", ""),
        ("rank 0 of 4\nGenerating train split\n", ""),
    ),
    "first-step": (
        ("***** Running training *****\n  Num examples = 900\n  Num Epochs = 3\n", "unknown"),
        ("hooks: 4\nworkflow: [('train', 1), ('val', 1)], max: 24 epochs\n", "unknown"),
    ),
    "first-steps": (
        ("2031-04-02 - mmcv - INFO - Reducer buckets have been rebuilt in this iteration.\n", ""),
        ("lr 0.02\nReducer buckets have been rebuilt in this iteration.\n", ""),
    ),
    "evaluation": (
        ("rank 0: before eval\nrank 2: before eval\nrank 1: before eval\n", "uneven-inputs"),
        ("metrics: acc\n***** Running Evaluation *****\n", "rank-conditional-collective"),
    ),
    "saving": (
        ("reached the save interval\nSaving model checkpoint to out/step-40\n", ""),
        ("12:00:04 INFO saving checkpoint at iteration 900 to /data/out\n", ""),
    ),
    "end-of-epoch": (
        (
            "NCCL version 2.19\nEpoch 1/4: 100%|##########| 40/40 [00:20<00:00,  2.00it/s]\n",
            "uneven-inputs",
        ),
        (
            "world size 4\nTraining epoch 2/9: 100%|##########| 40/40 [00:20<00:00,  2.00it/s]\n",
            "uneven-inputs",
        ),
    ),
    "workers-awaited": (
        (
            (
                "(APIServer pid=1) INFO 11-11 09:42:51 [client.py:470] Waiting for 1 local, 0 remote core"
                " engine proc(s) to start.\n"
            ),
            "unknown",
        ),
        ("ready\nINFO [shm.py:5] No available block found in 60 second.\n", "unknown"),
    ),
    "cluster-start": (
        (
            "seed 3\n2031-01-12 01:23:00,460 INFO worker.py:2023 -- Started a local Ray instance.\n",
            "unknown",
        ),
        ("up\nINFO worker.py:1 -- Connected to Ray cluster.\n", "unknown"),
    ),
    "engine-warm-up": (
        ("INFO [kv_cache_utils.py:634] GPU KV cache size: 233,936 tokens\n", "unknown"),
        ("[2031-01-12 01:23:00 TP0] Capture cuda graph begin. This can take minutes.\n", "unknown"),
    ),
    "tracker": (
        (
            "".join(f"wandb: {one} 85.1 MB of 85.1 MB uploaded\n" for one in "/-|/-|/-|"),
            "remote-service-wait",
        ),
        ("bye\nwandb: / 0.011 MB of 0.011 MB uploaded\n", "remote-service-wait"),
        ("hello\nwandb: Uploading history steps 10-12, summary\n", "remote-service-wait"),
    ),
    "extension-load": (
        ("Loading extension module rays...\n", "extension-build-lock"),
        ("step into\nImporting the voxel ops extension now\n", "extension-build-lock"),
    ),
    "call-announced": (
        ("[0] calling dist.barrier() ...\n", "rank-stuck"),
        ("loaded 12 shards\n[worker 1] before forward (step 3)\n", "rank-stuck"),
        ("rank=0: batch ready\nrank=0: before loss.item\n", "rank-stuck"),
        ("W0 it 4 -> backward_begin\nW1 it 4 -> backward_begin\n", "rank-stuck"),
    ),
}


def explained(folder: Path, text: str) -> Report:
    path = folder / "a.log"
    path.write_text(text, encoding="utf-8")
    return explain([str(path)])


@pytest.mark.parametrize(
    ("phase", "text", "leads"),
    [(phase, *one) for phase, both in EXCERPTS.items() for one in both],
    ids=[f"{phase}-{number}" for phase, all_ in EXCERPTS.items() for number in range(len(all_))],
)
def test_a_log_that_stops_tells_its_phase(
    phase: str, text: str, leads: str, tmp_path: Path
) -> None:
    report = explained(tmp_path, text)

    assert report.verdict in ("undetermined", "hung")
    first = report.causes[0]
    known = {f"stops-in-{phase}"} <= {one.id for cause in report.causes for one in cause.classes}
    assert known or first.named  # evidence of its own says more than a phase
    assert leads in ("", first.id)
    assert first.named or first.id == "unknown" or first.confidence < SURE_FROM


def test_the_end_of_an_epoch_blames_no_other_rank_where_there_may_be_none(tmp_path: Path) -> None:
    bar = "Epoch 1/10\n100%|##########| 1400/1400 [4:48:03<00:00, 12.35s/it, loss=0.051]\n"

    assert not explained(tmp_path, bar).causes
    assert explained(tmp_path, f"0: shard 0\n1: shard 1\n{bar}").causes


def test_every_cause_of_a_phase_exists_and_has_a_reason() -> None:
    for phase in phases().values():
        for likely in (phase.causes, *phase.given.values()):
            assert set(likely) <= BUILT, phase.id
            assert all(
                one.reason and one.reason[-1] != "." for one in likely.values() if one.points
            )
            assert all(one.points in (0, 3, 6, 10, 13) for one in likely.values())


def test_the_later_phase_counts() -> None:
    told = [read_phase(line) for line in ("NCCL version 2.21.5+cuda12.4", "plain words")]
    assert [one.id if one else "" for one in told] == ["nccl-bootstrap", ""]
    assert "over-network" in signs_in("Channel 00 : 0[1] -> 1[1] [send] via NET/Socket/0")


@pytest.mark.parametrize(
    "text",
    [
        # steps go on
        "***** Running training *****\nstep 1 loss 3.0\nstep 2 loss 2.9\nstep 3 loss 2.9\n",
        # the program said more since than the phase
        "Added key: store_based_barrier_key:1 to store for rank: 0\none\ntwo\nthree\n",
        # other ranks went on
        "NCCL version 2.21.5+cuda12.4\n[rank0]: one\n[rank1]: one\n[rank0]: two\n[rank1]: two\n",
        # what was written is no epoch, and a loss came after
        "Writing model shards: 100%|##########| 1/1 [00:00<00:00, 9.1it/s]\n",
        "Epoch 1/3: 100%|##########| 4/4 [00:02<00:00, 2.00it/s]\n{'loss': 4.3, 'epoch': 1.0}\n",
        # a sentence that says what comes before what announces nothing
        "You must set the seed before training\nGPU memory before forward: 12 GB\n",
        "WARNING: before loading the model, call set_device\n",
        # steps were made
        "step 3 loss 2.9\nNCCL version 2.21.5+cuda12.4\n",
        # a warning is what somebody asks about
        (
            "All distributed processes registered. Starting with 2 processes\n"
            "/opt/x.py:4: UserWarning: the argument `foo` is deprecated\n"
        ),
        "WARNING: this may hang; call init_process_group() with device_id\n",
        # the extension was built
        'Setting up PyTorch plugin "filtered_lrelu"... Done.\n',
        # the launcher alone tells of nothing
        (
            "*****************************************\nSetting OMP_NUM_THREADS environment variable"
            " for each process to be 1 in default\n*****************************************\n"
        ),
    ],
)
def test_nothing_is_guessed(text: str, tmp_path: Path) -> None:
    report = explained(tmp_path, text)

    assert (report.verdict, report.causes) == ("undetermined", ())


@pytest.mark.parametrize(
    "more",
    [
        "^C\n",
        "it gets stuck here forever\n",
        (
            "\n$ nvidia-smi\n| NVIDIA-SMI 550.1  Driver Version: 550.1 |\n"
            "| N/A   41C    P0    80W / 300W |   2100MiB / 81920MiB |    100%      Default |\n"
        ),
    ],
)
def test_it_is_hung_where_the_text_says_that_it_waits(more: str, tmp_path: Path) -> None:
    said = "alpha:71:80 [0] NCCL INFO Channel 00/0 : 0[1000] -> 1[2000] via P2P/IPC\n"
    report = explained(tmp_path, said + more)

    assert report.verdict == "hung"
    assert not report.causes[0].named


def test_a_bandwidth_test_that_is_slower_with_peer_access(tmp_path: Path) -> None:
    matrix = "     0 800.00  {0}\n     1  {0} 800.00\n"
    text = (
        "alpha:71:71 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.4<0>\n\n"
        "$ ./p2pBandwidthLatencyTest\nUnidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n"
        f"{matrix.format('14.00')}"
        "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
    )
    slow, fast = (
        explained(tmp_path, text + matrix.format(rate)).causes[0].id for rate in ("1.40", "26.00")
    )

    assert (slow, fast) == ("p2p-blocked", "wrong-network-interface")


def test_ranks_that_never_came_to_the_last_phase(tmp_path: Path) -> None:
    lines = [f"[rank{rank}]: NCCL version 2.21.5+cuda12.4" for rank in range(4)]
    lines += [
        f"[rank{rank}]: alpha:7{rank}:80 [{rank}] NCCL INFO Connected all rings"
        for rank in (0, 1, 3)
    ]
    report = explained(tmp_path, "\n".join(lines) + "\n")

    assert [suspect.ranks for suspect in report.suspects] == [(2,)]


LAUNCHED = "Starting elastic_operator with launch configs:\n  min_nodes        : {0}\n"


def test_the_launcher_waits_for_the_other_nodes(tmp_path: Path) -> None:
    several, one = (explained(tmp_path, LAUNCHED.format(nodes)) for nodes in (2, 1))

    assert several.causes[0].id == "rendezvous-incomplete"
    assert not one.causes


def test_ranks_that_meet_at_the_own_host_are_on_one(tmp_path: Path) -> None:
    text = "{0}\nINFO 09-03 02:15:42 pynccl.py:63] vLLM is using nccl==2.21.5\n"
    leads = [
        explained(tmp_path, text.format(before)).causes[0].id
        for before in ("distributed_init_method=tcp://127.0.0.1:39423", "ready")
    ]

    assert leads == ["p2p-blocked", "wrong-network-interface"]


def test_adapters_are_asked_about_where_nccl_connects_over_them(tmp_path: Path) -> None:
    text = "alpha:7:8 [6] NCCL INFO Channel 00/0 : 6[6] -> 14[6] [send] via NET/{0}\n"
    leads = [
        explained(tmp_path, text.format(net)).causes[0].id for net in ("IB/6/GDRDMA", "Socket/0")
    ]

    assert leads == ["ib-roce-misconfig", "wrong-network-interface"]


def test_words_behind_a_bar_that_count_a_step_show_that_it_goes_on(tmp_path: Path) -> None:
    bar = "Start train epoch 0\n  0%|          | 0/10 [00:00<?, ?it/s]"
    stands, goes_on = (
        explained(tmp_path, bar + more)
        for more in ("\n", "epoch: 0, batch_id: 0, avg_cost: 255.09\n")
    )

    assert stands.causes
    assert not goes_on.causes
