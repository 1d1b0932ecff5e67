"""The published examples that need no cluster: valid in form, and their commands run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.conftest import ROOT
from trainprobe.checks import catalogue
from trainprobe.ready.slots import ADMIN
from trainprobe.site import read_site, site_rows

EXAMPLES = ROOT / "docs" / "examples"
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def table(required: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": required.split(),
    }


def rows(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of, "minItems": 1}


LABELS = {"type": "object", "additionalProperties": TEXT}
CONTAINER = table(
    "name image command",
    name=TEXT,
    image=TEXT,
    command=rows(TEXT),
    env=rows(
        table(
            "name valueFrom",
            name=TEXT,
            valueFrom=table("fieldRef", fieldRef=table("fieldPath", fieldPath=TEXT)),
        )
    ),
    resources=table("limits", limits=LABELS),
    volumeMounts=rows(table("name mountPath", name=TEXT, mountPath=TEXT)),
)
TERM = table(
    "topologyKey labelSelector",
    topologyKey=TEXT,
    labelSelector=table("matchLabels", matchLabels=LABELS),
)
POD = table(
    "containers restartPolicy",
    restartPolicy={"enum": ["Never", "OnFailure"]},
    initContainers=rows(CONTAINER),
    containers=rows(CONTAINER),
    volumes=rows(
        table(
            "name",
            name=TEXT,
            emptyDir=table(medium={"const": "Memory"}, sizeLimit=TEXT),
            persistentVolumeClaim=table("claimName", claimName=TEXT),
        ),
    ),
    affinity=table(
        podAntiAffinity=table(requiredDuringSchedulingIgnoredDuringExecution=rows(TERM))
    ),
)
JOB = table(
    "apiVersion kind metadata spec",
    apiVersion={"const": "batch/v1"},
    kind={"const": "Job"},
    metadata=table("name", name=TEXT),
    spec=table(
        "template",
        parallelism=WHOLE,
        completions=WHOLE,
        completionMode={"enum": ["Indexed", "NonIndexed"]},
        backoffLimit=WHOLE,
        activeDeadlineSeconds=WHOLE,
        template=table("spec", metadata=table(labels=LABELS), spec=POD),
    ),
)


def pod(name: str) -> dict[str, Any]:
    job = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    Draft202012Validator(JOB).validate(job)
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    return found


def ran(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A container's command on this host, with its folders moved below `folder`."""
    assert command[0] == "trainprobe"
    words = [str(folder / word[1:]) if word.startswith("/") else word for word in command[1:]]
    (folder / "data").mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "trainprobe", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_jobs_for_kubernetes_are_such_and_mount_what_they_name() -> None:
    for name in ("kubernetes-job.yaml", "kubernetes-node-check.yaml"):
        found = pod(name)
        volumes = {volume["name"] for volume in found.get("volumes", [])}
        used = {
            mount["name"]
            for one in (*found["containers"], *found.get("initContainers", []))
            for mount in one.get("volumeMounts", [])
        }
        assert used == volumes
    init, train = (
        pod("kubernetes-job.yaml")["initContainers"][0],
        pod("kubernetes-job.yaml")["containers"][0],
    )
    assert [init[key] for key in ("image", "resources", "volumeMounts")] == [
        train[key] for key in ("image", "resources", "volumeMounts")
    ]


@pytest.mark.soak
@pytest.mark.skipif(
    shutil.which("nvidia-smi") is not None,
    reason="this host may have the eight GPUs that are asked for",
)
def test_the_init_container_keeps_a_job_without_its_gpus_from_starting(tmp_path: Path) -> None:
    done = ran(pod("kubernetes-job.yaml")["initContainers"][0]["command"], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_check_of_each_node_writes_junit(tmp_path: Path) -> None:
    done = ran(pod("kubernetes-node-check.yaml")["containers"][0]["command"], tmp_path)
    root = ET.fromstring(done.stdout)
    bad = int(root.attrib["failures"]) + int(root.attrib["errors"])
    assert (root.tag, int(root.attrib["tests"]) > 20, bad == 0) == (
        "testsuites",
        True,
        done.returncode == 0,
    )


def test_the_rules_of_the_example_are_all_there_are_and_name_checks_that_there_are(
    tmp_path: Path,
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text((EXAMPLES / "site.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    site = read_site(str(path), path.stat().st_uid)
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    told = {f"{key}.{inner}" for key in ("keep",) for inner in text[key]} | {
        key for key in text if key != "keep"
    }
    assert (site.notes, site.unknown(list(catalogue())), told) == (
        (),
        (),
        {row.key for row in site_rows()},
    )


@pytest.mark.parametrize(
    "path", [*sorted(EXAMPLES.glob("*.sh")), EXAMPLES / "job.sbatch"], ids=lambda path: path.name
)
def test_the_scripts_parse_and_pass_on_no_code_but_one(path: Path) -> None:
    shell = "bash" if path.suffix == ".sbatch" else "sh"
    assert (
        subprocess.run([shell, "-n", str(path)], capture_output=True, check=False).returncode == 0
    )
    slots = re.findall(r"--slot (\w+)", path.read_text(encoding="utf-8"))
    assert slots == [] if path.suffix == ".sbatch" else len(slots) == 1 and slots[0] in ADMIN


def test_each_check_of_a_slot_stands_in_a_program_of_that_slot() -> None:
    """What the table of slots promises is what the programs' own headers say."""
    headers = {
        path.stem: re.search(r"^# slots: \[(.*)\]$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in (ROOT / "probes").glob("*.py")
    }
    for spec in catalogue().values():
        if spec.program and spec.program in headers:
            found = headers[spec.program]
            assert set(spec.slots) <= set(found.group(1).split(", ") if found else ["step"]), (
                spec.id
            )
