"""Secrets of published forms get into no file of a case, no JSON and onto no terminal, by
whatever way they come.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.unit.secret_specimens import Specimen, specimens
from trainprobe.case import Case
from trainprobe.cli import run
from trainprobe.redact import Redactor
from trainprobe.secret_forms import FORMS, compiled

EACH = [pytest.param(one, id=one.name.replace(" ", "-")) for one in specimens()]


def parts(one: Specimen) -> list[str]:
    """The secret, and for a long one each half: a part that stays is a leak too."""
    half = len(one.secret) // 2
    return [one.secret, *([one.secret[:half], one.secret[half:]] if half >= 12 else [])]


def leaked(one: Specimen, *places: str | Path) -> list[str]:
    texts = {
        str(place): place.read_text("utf-8", "replace") if isinstance(place, Path) else place
        for place in places
    }
    return [
        name[-200:]
        for name, text in texts.items()
        if any(part in text or json.dumps(part)[1:-1] in text for part in parts(one))
    ]


def saved(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def test_an_error_line_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, shown = [], 0
    for start in range(0, len(EACH), 4):
        group = specimens()[start : start + 4]
        folder = tmp_path / str(start)
        (folder / "logs").mkdir(parents=True)
        for rank, one in enumerate(group):
            lines = (
                "Traceback (most recent call last):",
                '  File "/w/train.py", line 3, in <module>',
                "    main()",
                f"RuntimeError: marker-{start + rank} {one.text}",
            )
            (folder / "logs" / f"rank_{rank}.log").write_text(
                "".join(f"[rank{rank}]: {line}\n" for line in lines)
            )
        code = run(
            [
                "explain",
                str(folder / "logs"),
                "--case",
                str(folder / "case"),
                "--json",
                str(folder / "out.json"),
                "--no-color",
            ]
        )
        said = capsys.readouterr()
        assert code in (1, 3)
        evidence = (folder / "case" / "evidence.jsonl").read_text()
        shown += sum(f"marker-{start + rank}" in evidence for rank in range(len(group)))
        found += [
            (one.name, leak)
            for one in group
            for leak in leaked(
                one, *saved(folder / "case"), folder / "out.json", said.out, said.err
            )
        ]
    assert found == []
    assert shown == len(EACH), "an error line that was not kept shows nothing"


@pytest.mark.parametrize("one", EACH)
def test_a_command_line_a_variable_and_a_local(one: Specimen, tmp_path: Path) -> None:
    option = f"--{one.variable.lower().replace('_', '-')}"
    argv = ["python", "train.py", option, one.secret, f"{option}={one.secret}", one.text]
    frame = {
        "file": "train.py",
        "line": 3,
        "text": f"{one.variable.lower()} = {one.secret!r}",
        "locals": {one.variable.lower(): repr(one.secret)},
    }
    with Case.create(str(tmp_path / "case"), "attach", argv) as case:
        case.add(
            "processes",
            data={"rows": [{"pid": 1, "argv": argv, "command": " ".join(argv)}]},
            source=" ".join(argv),
            reason=one.text,
        )
        case.add(
            "environment",
            data={"env": {one.variable: one.secret}, "lines": [f"{one.variable}={one.secret}"]},
        )
        case.add("stacks", data={"threads": [{"frames": [frame]}]})
        case.keep_file(
            "stack.txt",
            f"  File 'train.py', line 3\n    │ {one.variable.lower()} = {one.secret!r}"
            f" │\n{one.text}\n".encode(),
        )
    assert (
        leaked(one, *saved(tmp_path / "case"), *(json.dumps(row.data) for row in case.evidence))
        == []
    )


@pytest.mark.parametrize(
    ("argv", "secret"),
    [
        (["sshpass", "-p", "swordfish", "ssh", "node1"], "swordfish"),
        (["mysql", "-u", "me", "-pswordfish", "runs"], "swordfish"),
        (["python", "sweep.py", "-p", "Tr0ub4dor3"], "Tr0ub4dor3"),
        (["python", "sweep.py", "--pw", "swordfish"], "swordfish"),
        (["python", "sweep.py", "--db-pass", "swordfish"], "swordfish"),
        (["curl", "-u", "me:swordfish", "https://host"], "swordfish"),
        (["docker", "login", "-u", "me", "-p", "swordfish"], "swordfish"),
        (["sweep", "auth=('me', 'swordfish')"], "swordfish"),
        (["sweep", "token=b'swordfish'"], "swordfish"),
        (["sweep", "DB_PASSWORD=sword;fish&x2"], "fish"),
        (["sweep", 'password="sword\\"fish"'], "fish"),
    ],
)
def test_an_option_that_holds_a_password(argv: list[str], secret: str) -> None:
    for shown in (str(Redactor({}).data(argv)[0]), Redactor({}).text(" ".join(argv))[0]):
        assert secret not in shown
        assert argv[0] in shown


@pytest.mark.parametrize(
    "text",
    [
        "srun -p gpu-a100x8 --nodes=4 python -u train.py",
        "#SBATCH -p h100_80gb",
        "docker run -p 8080:80 -u 1000:1000 image",
        "ssh -p 22022 node1",
        "HEAD is at 3f786850e387550fdab836ed7e6dc881de23001b",
        "wandb: git commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "SHA256=n4bQgYhMfWWaLqgxVrQFaOTxsrC4Is0V1sFbDwCgggf0",
        "comm 0x5e8d1f20 rank 0 nranks 8 cudaDev 0 commId 0x9f3be2d1c4a85e07 - Init COMPLETE",
        "GPU-5f0c6a2e-1b9d-4c3a-8f7e-2d1c0b9a8f7e MIG-5f0c6a2e-1b9d-4c3a-8f7e-2d1c0b9a8f7e",
        "torch 2.9.1+cu128 cuda=12.8.93 nccl=2.27.5 driver=570.86.15",
        "open('/data/cache/dGhpc0lzQUZpbGVOYW1lMTIz/part-00017-of-00128.safetensors')",
        "path=/lustre/Run7/Ckpt12B/aB3dE5gH7jK9mN1pQ3sT5/model.pt",
        "shape=torch.Size([8, 4096, 14336]) dtype=torch.bfloat16 ptr=0x7f3a5c000000",
        "PYTHONPATH=/home/somebody/secrets:/opt/lib/python3.11",
        "host=gpu-node-017.cluster.example.org ip-10-0-12-34.eu-central-1.compute.internal",
        "kernel=_ZN4c10d16ProcessGroupNCCL8WorkNCCL11checkTimeoutEv",
        "run_id=aB3dE5gH7jK9mN1pQ3sT5uV7 --rdzv-id aB3dE5gH7jK9mN1pQ3sT5uV7",
        "--world_info=eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgM119",
        "the password is required, password is not set, wrong password",
        (
            "invalid token at line 3; token ids 12, 17; unknown key"
            " model.layers.31.mlp.gate_proj.weight"
        ),
        "sig=SIGKILL sig=11 exit=-9 pw=350W forward_pass=3 pass@1: 0.5",
    ],
)
def test_what_a_diagnosis_needs_stays(text: str) -> None:
    assert Redactor({}).text(text) == (text, 0)
    assert Redactor({}).data(text.split()) == (text.split(), 0)


def test_each_form_names_its_source_and_needs_its_literal() -> None:
    assert all(form.source and form.literal and form.name for form in FORMS)
    assert len({form.pattern for form in FORMS}) >= 50


@pytest.mark.parametrize("literal", sorted({form.literal for form in FORMS}))
def test_a_form_costs_no_more_than_its_text(literal: str) -> None:
    def cost_s(unit: str, size: int) -> float:
        text = "a_b+c.d-e%f~0123" + unit * (size // len(unit))
        began = time.process_time()
        for _, _, pattern, _ in (form for form in FORMS if form.literal in text):
            sum(1 for _ in compiled(pattern).finditer(text))
        return time.process_time() - began

    for unit in (literal, literal + "0", literal + "aA0-" * 12, f"https://{literal}/"):
        assert cost_s(unit, 2**15) < 10 * 4 * max(cost_s(unit, 2**12), 0.005), re.escape(unit)
