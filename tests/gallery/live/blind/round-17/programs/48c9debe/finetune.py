import argparse
import json
import logging
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from grad import clip_by_norm, get_grad_norm_fp32, reduce_gradients
from lora_model import Stage
from pipeline import PipelineRunner

log = logging.getLogger("finetune")


def batches(dp_rank, micro_batches, batch=8, seq=32, vocab=128):
    gen = torch.Generator().manual_seed(1000 + dp_rank)
    while True:
        start = torch.randint(0, vocab, (micro_batches, batch, 1), generator=gen)
        stride = torch.randint(1, 5, (micro_batches, batch, 1), generator=gen)
        seqs = (start + stride * torch.arange(seq + 1)) % vocab
        yield seqs[..., :-1], seqs[..., 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pp", type=int, default=2)
    parser.add_argument("--schedule", required=True)
    args = parser.parse_args()
    with open(args.schedule) as f:
        cfg = json.load(f)

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (args.pp, dist.get_world_size() // args.pp), mesh_dim_names=("pp", "dp"))
    pp_rank, dp_rank = mesh.get_local_rank("pp"), mesh.get_local_rank("dp")
    reporter = pp_rank == args.pp - 1 and dp_rank == 0
    logging.basicConfig(level=logging.INFO if reporter else logging.WARNING, format="%(asctime)s %(message)s")

    torch.manual_seed(pp_rank)
    stage = Stage(pp_rank, args.pp)
    params = [p for n, p in stage.named_parameters() if "lora_" in n]
    optim = torch.optim.AdamW(params, lr=cfg["lr"])
    runner = PipelineRunner(stage, mesh, cfg["micro_batches"], (8, 32, 64))
    data = batches(dp_rank, cfg["micro_batches"])

    tic = time.time()
    for step in range(1, cfg["steps"] + 1):
        for entry in cfg["freeze"]:
            if entry["at_step"] == step:
                stage.freeze_layers(entry["layers"])
                log.info("step %d: adapters of layers %s frozen", step, entry["layers"])
        inputs, targets = next(data)
        loss = runner.step(inputs, targets)
        reduce_gradients(params, mesh.get_group("dp"))
        norm = get_grad_norm_fp32(params, mesh.get_group("dp"), mesh.get_group("pp"))
        clip_by_norm(params, cfg["max_grad_norm"], norm)
        optim.step()
        optim.zero_grad(set_to_none=True)
        if step % 10 == 0:
            log.info("step %d loss %.4f grad norm %.4f %.1f ms/step", step, loss, norm, 1e3 * (time.time() - tic) / step)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
