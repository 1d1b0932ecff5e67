"""accelerate, as its documentation has it."""

import torch
from accelerate import Accelerator
from kit import Log, make_batch, make_model, options, start


def main(args):
    accelerator = Accelerator(cpu=True)
    log = Log(args, accelerator.process_index)
    model = make_model(args.seed)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    for step in range(args.steps):
        loss = model(make_batch(args.seed))
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        log.step(step, loss.detach())
        if step % 10 == 0:
            accelerator.gather(loss.detach().reshape(1)).mean()


if __name__ == "__main__":
    start(main, options())
