import threading

import torch
import torch.nn as nn


def trunk(dim, layers):
    return nn.Sequential(*[nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
                           for _ in range(layers)])


class Stage(nn.Module):
    def setup(self):
        self.opt = torch.optim.SGD(self.parameters(), lr=0.05)
        self.lock = threading.Lock()

    def update(self):
        with self.lock:
            self.opt.step()
            self.opt.zero_grad()
        return True


class Encoder(Stage):
    """First half of the model; passes its activations on to the decoder."""

    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.trunk = trunk(dim, 2)
        self.decoder = None
        self.setup()

    def attach(self, decoder):
        self.decoder = decoder
        return True

    def train_microbatch(self, tokens):
        hidden = self.trunk(self.embed(tokens))
        loss, grad = self.decoder.rpc_sync(timeout=0).train_microbatch(hidden.detach(), tokens)
        with self.lock:
            hidden.backward(grad)
        return loss


class Decoder(Stage):
    """Second half; computes the loss and hands the gradient of its input back."""

    def __init__(self, vocab, dim):
        super().__init__()
        self.trunk = trunk(dim, 2)
        self.out = nn.Linear(dim, vocab)
        self.setup()

    def train_microbatch(self, hidden, tokens):
        hidden.requires_grad_(True)
        with self.lock:
            logits = self.out(self.trunk(hidden))
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
            loss.backward()
        return loss.item(), hidden.grad
