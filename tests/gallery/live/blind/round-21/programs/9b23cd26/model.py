import time

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F

from cuts import N_FEATS, N_TOKENS


class StreamingEncoder(nn.Module):
    def __init__(self, dim=48, chunk=20):
        super().__init__()
        self.chunk = chunk
        self.conv = nn.Conv1d(N_FEATS, dim, 4, stride=4)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, N_TOKENS)

    def forward(self, feats):
        state, logits = None, []
        for part in feats.split(self.chunk, dim=1):
            if part.shape[1] < 4:
                continue
            h = self.conv(part.transpose(1, 2)).transpose(1, 2)
            h, state = self.rnn(h, state)
            logits.append(self.out(h))
            time.sleep(0.025)
        return torch.cat(logits, dim=1)


class AsrModule(L.LightningModule):
    def __init__(self, warmup_steps):
        super().__init__()
        self.encoder = StreamingEncoder()
        self.warmup_steps = warmup_steps

    def training_step(self, batch, batch_idx):
        feats, feat_lens, tokens, token_lens = batch
        if self.global_step < self.warmup_steps:
            feats, feat_lens = feats[:, :64], feat_lens.clamp(max=64)
            tokens, token_lens = tokens[:, :3], token_lens.clamp(max=3)
        logp = self.encoder(feats).log_softmax(-1)
        out_lens = (feat_lens // 4).clamp(max=logp.shape[1])
        loss = F.ctc_loss(logp.transpose(0, 1), tokens, out_lens, token_lens, zero_infinity=True)
        if self.global_rank == 0 and self.global_step % 10 == 0:
            print(f"step {self.global_step} ctc {loss.item():.3f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)
