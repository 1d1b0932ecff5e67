"""Long work on rank 0 before the others' barrier, and clipping of sharded gradients."""

from __future__ import annotations

import pytest

from tests.unit.lint.reading_sources import found, lines_of
from trainprobe.lint.fixing import applied

LONG = """
import torch.distributed as dist
from datasets import load_dataset
def main():
    dist.init_process_group("nccl"{timeout})
    if dist.get_rank() == 0:
        {work}
    {after}
"""


@pytest.mark.parametrize(
    ("work", "after", "timeout", "count"),
    [
        ("load_dataset('x').map(f, num_proc=4)", "dist.barrier()", "", 1),
        ("load_dataset('x').map(f, num_proc=4)", "dist.barrier()", ", timeout=hours", 0),
        ("load_dataset('x').map(f, num_proc=4)", "print()", "", 0),
        ("print('started')", "dist.barrier()", "", 0),
        ("pool.map(f, names)", "dist.barrier()", "", 0),
    ],
)
def test_long_work_is_told_where_others_wait_with_the_default_timeout(
    work: str, after: str, timeout: str, count: int
) -> None:
    told = lines_of("rank0-long-task", train=LONG.format(work=work, after=after, timeout=timeout))
    assert len(told) == count


CLIP = """
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.nn.utils import clip_grad_norm_
model = {wrap}(net)
clip_grad_norm_(model.parameters(), 1.0)
"""


def test_clipping_of_a_sharded_model_is_rewritten() -> None:
    text = CLIP.format(wrap="FSDP")
    told = [one for one in found(train=text) if one.rule == "fsdp-clip-grad-norm"]
    assert [(one.id, one.line) for one in told] == [("multi-rank-mismatch", 5)]
    mended, done = applied(text, told)
    assert done == told
    assert mended.endswith("\nmodel.clip_grad_norm_(1.0)\n")
    assert lines_of("multi-rank-mismatch", train=mended) == []


def test_clipping_of_a_whole_model_is_left_alone() -> None:
    assert lines_of("multi-rank-mismatch", train=CLIP.format(wrap="wrap")) == []


def test_a_rewrite_that_does_not_parse_is_not_applied() -> None:
    text = CLIP.format(wrap="FSDP")
    (told,) = [one for one in found(train=text) if one.rule == "fsdp-clip-grad-norm"]
    broken = text.replace("model = FSDP", "model = (FSDP")
    assert applied(broken, [told]) == (broken, [])


def test_the_shards_of_another_package_are_not_those_of_torch() -> None:
    source = (
        "import torch\nfrom {} import fully_shard\nfrom torch.nn.utils import clip_grad_norm_\n"
        "fully_shard(model)\nn = clip_grad_norm_(model.parameters(), 1.0).item()\n"
    )
    assert "sharded-value" in {
        one.rule for one in found(train=source.format("torch.distributed.fsdp"))
    }
    assert found(train=source.format("megatron_fsdp")) == []
