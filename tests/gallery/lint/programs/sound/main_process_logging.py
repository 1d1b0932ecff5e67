from accelerate import Accelerator
from tqdm import tqdm


def main(model, loader, opt):
    accelerator = Accelerator()
    model, loader, opt = accelerator.prepare(model, loader, opt)
    bar = tqdm(range(10), disable=not accelerator.is_main_process)
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        opt.step()
        mean = accelerator.gather(loss).mean()
        if accelerator.is_main_process:
            print(mean.item())
        bar.update()
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        accelerator.unwrap_model(model).save_pretrained("out")


if __name__ == "__main__":
    main(None, None, None)
