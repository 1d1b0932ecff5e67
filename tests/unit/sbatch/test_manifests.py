"""Kubernetes manifests: pods, ranks, GPUs, meeting place, shared memory and restarts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainprobe.case import Case
from trainprobe.pipelines import conclude
from trainprobe.sbatch.manifest_rules import check_manifest
from trainprobe.sbatch.manifests import is_manifest, read_manifest, size_of

POD = """\
          containers:
            - name: pytorch
              image: train:1
              command: {command}
              resources: {{limits: {{nvidia.com/gpu: {gpus}, memory: 64Gi}}}}
              volumeMounts: [{{name: shm, mountPath: /dev/shm}}]
          volumes: [{{name: shm, emptyDir: {{medium: Memory, sizeLimit: 32Gi}}}}]
"""
COMMAND = "[torchrun, --nnodes=3, --nproc-per-node=8, train.py]"


def pytorch_job(command: str = COMMAND, *, gpus: int = 8, workers: int = 2, pod: str = POD) -> str:
    text = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: train}\nspec:\n"
    text += "  pytorchReplicaSpecs:\n"
    for role, count in (("Master", 1), ("Worker", workers)):
        text += f"    {role}:\n      replicas: {count}\n      template:\n        spec:\n"
        text += pod.format(command=command, gpus=gpus)
    return text


MEETING = "[torchrun, --nnodes=2, --nproc-per-node=8, --rdzv-backend=c10d, {}, train.py]"
ENDPOINT = '"--rdzv-endpoint=train-0.train:29400"'


def job(command: str = MEETING.format(ENDPOINT), extra: str = "", pod: str = POD) -> str:
    return (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n"
        f"  parallelism: 2\n  completions: 2\n  completionMode: Indexed\n  backoffLimit: 0\n{extra}"
        "  template:\n        spec:\n          restartPolicy: Never\n          subdomain: train\n"
        + pod.format(command=command, gpus=8)
    )


def wrong(text: str) -> list[tuple[str, str]]:
    found = check_manifest(text)
    return [(one.id, one.state) for one in found if one.state in ("fail", "likely", "unknown")]


def test_sound_manifests_are_left_alone() -> None:
    for text in (
        pytorch_job(),
        pytorch_job("[python, train.py]", gpus=1),
        pytorch_job('[bash, -c, "torchrun --nnodes=$PET_NNODES --nproc-per-node=8 train.py"]'),
        pytorch_job(COMMAND.replace("=3", "=$NNODES")).replace("train:1", "$IMAGE"),
        job(),
        job().replace("batch/v1", "x/v1").replace("kind: Job", "kind: JobSet"),
        (ROOT / "docs" / "examples" / "kubernetes-job.yaml").read_text(encoding="utf-8"),
    ):
        assert wrong(text) == [], text


@pytest.mark.parametrize(
    ("text", "check", "state"),
    [
        (pytorch_job(workers=1), "plan.tasks", "fail"),
        (pytorch_job(gpus=4), "plan.gpus", "fail"),
        (pytorch_job(gpus=16), "plan.tasks", "likely"),
        (pytorch_job().replace("name: pytorch", "name: main"), "plan.script", "fail"),
        (
            pytorch_job(COMMAND.replace("train.py", '"--node-rank=0", train.py')),
            "plan.rendezvous",
            "fail",
        ),
        (pytorch_job(COMMAND.replace("=3", "=$NNODES")), "plan.environment", "fail"),
        (
            pytorch_job().replace("medium: Memory, ", "").replace("/dev/shm", "/shm"),
            "plan.mem",
            "likely",
        ),
        (
            pytorch_job().replace("volumes: [{name: shm", "volumes: [{name: other"),
            "plan.script",
            "fail",
        ),
        (pytorch_job().replace("limits:", "requests:"), "plan.gpus", "fail"),
        (job(MEETING.format('"--rdzv-endpoint=localhost:29400"')), "plan.rendezvous", "fail"),
        (job(MEETING.format("--max-restarts=0")), "plan.rendezvous", "fail"),
        (job().replace("restartPolicy: Never", "restartPolicy: Always"), "plan.script", "fail"),
        (job().replace("completions: 2", "completions: 1"), "plan.tasks", "likely"),
        (job().replace("          subdomain: train\n", ""), "plan.rendezvous", "likely"),
        (
            job('[bash, -c, "python train.py --rank $JOB_COMPLETION_INDEX"]').replace(
                "  completionMode: Indexed\n", ""
            ),
            "plan.environment",
            "fail",
        ),
        (job("[torchrun, --standalone, --nproc-per-node=8, train.py]"), "plan.rendezvous", "fail"),
    ],
)
def test_faults_of_manifests(text: str, check: str, state: str) -> None:
    assert (check, state) in wrong(text)


def test_pods_of_the_other_kinds_are_counted() -> None:
    train = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: t}\nspec:\n"
        "  runtimeRef: {name: torch-distributed}\n  trainer:\n    numNodes: 4\n"
        "    numProcPerNode: 8\n    command: [torchrun, train.py]\n"
        "    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}\n"
    )
    sets = (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: t}\nspec:\n"
        "  replicatedJobs:\n    - name: workers\n      replicas: 2\n      template:\n        spec:\n"
        "          parallelism: 3\n          template:\n            spec:\n"
        "              restartPolicy: Never\n"
        "              containers: [{name: a, command: [python, train.py]}]\n"
    )
    group = (
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: t}\nspec:\n"
        "  leaderWorkerTemplate:\n    size: 4\n    workerTemplate:\n      spec:\n"
        "        containers: [{name: a, command: [python, train.py]}]\n"
    )
    assert [read_manifest(text).workloads[0].nodes for text in (train, sets, group)] == [4, 6, 4]
    assert ("plan.gpus", "fail") in wrong(train)


def test_sizes() -> None:
    assert [size_of(text) for text in ("64Gi", "500M", 1024, "x", None)] == [
        64 * 2**30,
        5e8,
        1024,
        None,
        None,
    ]


def test_hostile_manifests_end_in_a_sentence() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for number, name in enumerate("bcdefghij"):
        before = "abcdefghij"[number]
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    head = "apiVersion: batch/v1\nkind: Job\n"
    texts = [
        head + bomb,
        head + "spec: !!python/object/apply:os.system [true]\n",
        head + "spec: {{ .Values.x }}\n",
        head + "spec:\n  template: 3\n  parallelism: [1]\n",
        head + "spec: " + "[" * 2000,
        head + "spec:\n  template: {spec: {containers: [{command: [1, {a: b}], env: 4}]}}\n",
    ]
    began = time.monotonic()
    for text in texts:
        assert is_manifest(text)
        assert all(one.says for one in check_manifest(text))
    assert time.monotonic() - began < 30
    assert not is_manifest("#!/bin/bash\napiVersion: x\nkind: y\n")


def test_a_manifest_is_judged_like_a_script(tmp_path: Path) -> None:
    with Case.create(str(tmp_path / "case"), "ready", ("trainprobe",)) as case:
        case.add("sbatch", cell="checks", data={"script": "job.yaml", "text": pytorch_job(gpus=4)})
        report = conclude(case.seal(), "ready", "", ())
    assert (report.verdict, report.causes[0].id) == ("at-risk", "duplicate-gpu")
    (row,) = [one for one in report.extra["sbatch"]["rows"] if one["state"] == "fail"][:1]
    assert row["line"] > 1


JOB_SET = (
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{name: net}}\nspec:\n"
    "  replicatedJobs:\n  - name: work\n    template:\n      spec:\n        parallelism: 2\n"
    "        backoffLimit: 0\n        template:\n         spec:\n{pod}"
)
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {{name: train}}\nspec: {{clusterIP: None, selector:"
    " {{{label}: train}}}}\n---\n"
)


def test_the_pods_of_a_job_set_are_found_under_its_own_name() -> None:
    for host, found in (
        ("net-work-0-0.net-work", [("plan.rendezvous", "fail")]),
        ("net-work-0-0.net", []),
        ("store.example.org", []),
    ):
        command = MEETING.format(f'"--rdzv-endpoint={host}:29400"')
        assert wrong(JOB_SET.format(pod=POD.format(command=command, gpus=8))) == found, host


def test_a_service_of_all_pods_is_not_the_name_of_the_first() -> None:
    shell = (
        '[bash, -c, "torchrun --nnodes=2 --nproc-per-node=8 --node-rank=${JOB_COMPLETION_INDEX:-0}'
    )
    shell += ' --master-addr=$(getent hosts train | head -1) train.py"]'
    assert wrong(SERVICE.format(label="job-name") + job(shell)) == [("plan.rendezvous", "likely")]
    assert wrong(SERVICE.format(label="pod-index") + job(shell)) == []
