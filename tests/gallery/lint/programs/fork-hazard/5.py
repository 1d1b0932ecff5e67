import torch
from multiprocessing import get_context


class App:
    def __init__(self):
        self.net = torch.zeros(2, device="cuda")
        self.ctx = get_context("fork")

    def go(self):
        q = self.ctx.Pool(2)
        return q


App().go()
