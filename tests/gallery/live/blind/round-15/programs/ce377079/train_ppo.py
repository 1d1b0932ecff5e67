import argparse
import copy
import logging

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

from ppo.data import PromptStream, reward_fn
from ppo.model import PolicyWithValue
from ppo.trainer import PPOConfig, PPOTrainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--total-steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()

    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    logging.basicConfig(
        level=logging.INFO,
        format=f"%(asctime)s [rank{accelerator.process_index}] %(message)s",
    )
    log = logging.getLogger("ppo")

    config = PPOConfig()
    set_seed(args.seed)
    model = PolicyWithValue()
    ref_model = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    set_seed(args.seed + accelerator.process_index)

    trainer = PPOTrainer(config, model, ref_model, optimizer, accelerator)
    stream = PromptStream(accelerator.process_index, config.batch_size, config.prompt_len, args.seed)
    log.info("domain=%s", stream.domain)

    for step in range(args.total_steps):
        ids = trainer.rollout(stream.next())
        scores = reward_fn(stream.domain, ids[:, config.prompt_len:])
        stats = trainer.step(ids, scores)
        if accelerator.is_main_process:
            log.info(
                "step %d reward %.3f policykl %.4f kl %.3f loss %.3f (%.2fs)",
                step, stats["env/reward_mean"], stats["policy/policykl"],
                stats["objective/kl"], stats["loss/policy"], stats["time/ppo/total"],
            )


if __name__ == "__main__":
    main()
