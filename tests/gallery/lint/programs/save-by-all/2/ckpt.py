from torch import save


def write(state, step):
    save(state, f"ckpt-{step}.pt")
