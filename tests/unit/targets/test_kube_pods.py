"""Pods as kubectl tells of them: which can be entered, which container, and why another one
cannot.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainprobe.errors import UsageError
from trainprobe.targets.kube_pods import Pod, kube_pods, pods_of


def pod(
    name: str = "train-0", phase: str = "Running", state: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A pod with the fields that the API server sends of each (kubernetes.io, API reference of
    Pod v1).
    """
    waits = {"running": {"startedAt": "2026-01-01T00:00:00Z"}} if state is None else state
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "labels": {"job-name": "train"},
            "ownerReferences": [{"kind": "Job", "name": "train"}],
            **more,
        },
        "spec": {
            "nodeName": "gpu-7",
            "containers": [
                {"name": "main", "image": "train:1"},
                {"name": "logs", "image": "fluentd:1"},
            ],
        },
        "status": {
            "phase": phase,
            "podIP": "10.1.2.3",
            "containerStatuses": [
                {"name": "main", "ready": True, "restartCount": 0, "state": waits}
            ],
        },
    }


def said(*rows: object) -> bytes:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": list(rows),
            "metadata": {"resourceVersion": ""},
        }
    ).encode()


def test_a_running_pod_can_be_entered_in_its_first_container() -> None:
    assert pods_of(said(pod())) == [Pod("train-0", "ml", "main", "gpu-7")]


def test_the_default_container_that_the_pod_names_is_taken_and_one_that_is_asked_for_before_it() -> (
    None
):
    row = pod(annotations={"kubectl.kubernetes.io/default-container": "logs"})
    assert [pods_of(said(row))[0].container, pods_of(said(row), "main")[0].container] == [
        "logs",
        "main",
    ]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            pod(phase="Pending", state={"waiting": {"reason": "ImagePullBackOff", "message": "…"}}),
            "it is Pending (ImagePullBackOff)",
        ),
        (
            pod(state={"waiting": {"reason": "CrashLoopBackOff"}}),
            "it is Running (CrashLoopBackOff)",
        ),
        (
            pod(phase="Failed", state={"terminated": {"reason": "OOMKilled", "exitCode": 137}}),
            "it has ended: OOMKilled",
        ),
        (
            pod(phase="Succeeded", state={"terminated": {"reason": "Completed", "exitCode": 0}}),
            "it has ended: Completed",
        ),
        (
            pod(state={"terminated": {"reason": "Error", "exitCode": 1}}),
            "its container main has ended: Error",
        ),
        (pod(deletionTimestamp="2026-01-01T00:00:00Z"), ""),
    ],
    ids=["no image", "crashes", "killed", "over", "container over", "being ended"],
)
def test_why_a_pod_cannot_be_entered(row: dict[str, Any], why: str) -> None:
    assert pods_of(said(row))[0].why_not == why


def test_a_pod_that_waits_for_a_node_says_so() -> None:
    row = pod(phase="Pending")
    row["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    assert pods_of(said(row))[0].why_not == "it is Pending (Unschedulable)"


def test_a_container_that_is_not_there_is_said_with_those_that_are() -> None:
    assert pods_of(said(pod()), "mian")[0].why_not == "it has no container mian; it has main, logs"


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"items": 7}', b"error", b"[" * 100_000])
def test_what_is_no_list_of_pods_is_an_error_of_usage(text: bytes) -> None:
    with pytest.raises(UsageError, match="no list of pods"):
        pods_of(text)


@pytest.mark.parametrize(
    "row",
    [
        None,
        7,
        {},
        {"metadata": []},
        {"metadata": {"name": "--kubeconfig=/etc/x"}},
        {"metadata": {"name": "a b"}},
        {"metadata": {"name": "x", "namespace": "-n"}},
    ],
)
def test_a_row_that_is_no_pod_is_passed_over(row: object) -> None:
    assert [one.name for one in pods_of(said(row, pod()))] == ["train-0"]


@pytest.mark.parametrize(
    "row",
    [
        {"metadata": {"name": "x"}},
        {**pod("x"), "status": 7},
        {**pod("x"), "spec": {"containers": "main"}},
        {**pod("x"), "status": {"phase": ["a"]}},
    ],
)
def test_a_pod_of_which_little_is_known_is_not_entered(row: dict[str, Any]) -> None:
    assert [bool(one.why_not) for one in pods_of(said(row))] == [True]


def kubectl(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_pods_are_asked_for_by_selector_in_order_and_without_those_that_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "said").write_bytes(
        said(pod("train-10"), pod("train-9"), pod("train-1", phase="Succeeded", state={}))
    )
    kubectl(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/asked; cat {tmp_path}/said')
    assert [one.name for one in kube_pods("job-name=train", "ml")] == ["train-9", "train-10"]
    assert (
        (tmp_path / "asked")
        .read_text()
        .startswith("get pods --selector job-name=train --namespace ml --output json")
    )


def test_pods_that_are_all_over_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "said").write_bytes(said(pod(phase="Failed", state={})))
    kubectl(tmp_path, monkeypatch, f"cat {tmp_path}/said")
    assert [one.why_not for one in kube_pods("job-name=train")] == ["it has ended: Failed"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1",
            "You must be logged in",
        ),
        ("""echo '{"items": []}'""", "No pod has the labels"),
    ],
)
def test_what_kubectl_complains_of_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    kubectl(tmp_path, monkeypatch, text)
    with pytest.raises(UsageError, match=words):
        kube_pods("job-name=train")


@pytest.mark.parametrize(
    "given", [("--all", "", ""), ("", "", ""), ("a=b", "-n", ""), ("a=b", "", "A B")]
)
def test_no_word_of_the_user_becomes_an_option(given: tuple[str, str, str]) -> None:
    with pytest.raises(UsageError):
        kube_pods(*given)
