def one(accelerator, model, b, opt):
    loss = model(**b).loss
    accelerator.backward(loss)
    opt.step()
