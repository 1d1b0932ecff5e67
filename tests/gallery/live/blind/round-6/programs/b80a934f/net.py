from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=300, d=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.enc = nn.GRU(d, d, batch_first=True)
        self.dec = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, vocab)

    def encode(self, src):
        return self.enc(self.emb(src))[1]

    def step(self, memory, toks):
        o, _ = self.dec(self.emb(toks), memory)
        return self.out(o[:, -1])

    def forward(self, src, tgt):
        o, _ = self.dec(self.emb(tgt), self.encode(src))
        return self.out(o)
