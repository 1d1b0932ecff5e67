from accelerate import Accelerator

accelerator = Accelerator()


def run(model, loader, steps):
    for step, batch in enumerate(loader):
        loss = model(**batch).loss
        accelerator.backward(loss)
        if step % 50 == 0 and accelerator.is_main_process:
            mean = accelerator.gather(loss).mean()
            print(step, mean.item())
        if accelerator.is_local_main_process:
            accelerator.wait_for_everyone()
