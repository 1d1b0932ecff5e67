import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F


class CenterGroupHead(nn.Module):
    def __init__(self, joints=12, dim=192):
        super().__init__()
        self.norm = nn.BatchNorm1d(joints * 2)
        self.inp = nn.Linear(joints * 2, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, dim * 2, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.affinity = nn.Linear(dim, dim, bias=False)
        self.visible = nn.Linear(dim, 1)

    def forward(self, points):
        points = self.norm(points.transpose(1, 2)).transpose(1, 2)
        h = self.encoder(self.inp(points))
        return torch.einsum("bnd,bmd->bnm", self.affinity(h), h) / h.size(-1) ** 0.5, self.visible(h).squeeze(-1)


class GroupingModule(L.LightningModule):
    def __init__(self, lr=5e-4, log_grouping_every=2):
        super().__init__()
        self.save_hyperparameters()
        self.net = CenterGroupHead()
        self.val_groups = []

    def _losses(self, batch):
        points, group, visible = batch
        affinity, vis_logit = self.net(points)
        target = (group[:, :, None] == group[:, None, :]).float()
        return affinity, {
            "grouping": F.binary_cross_entropy_with_logits(affinity, target),
            "visibility": F.binary_cross_entropy_with_logits(vis_logit, visible),
        }

    def training_step(self, batch, batch_idx):
        _, losses = self._losses(batch)
        loss = sum(losses.values())
        self.log("train/loss", loss, prog_bar=False)
        return loss

    def validation_step(self, batch, batch_idx):
        affinity, losses = self._losses(batch)
        for name, value in losses.items():
            self.log(f"val/{name}", value, on_epoch=True, sync_dist=True)
        same = batch[1][:, :, None] == batch[1][:, None, :]
        self.val_groups.append(((affinity > 0) == same).float().mean((1, 2)))

    def on_validation_epoch_end(self):
        quality = torch.cat(self.val_groups)
        self.val_groups.clear()
        epoch = self.current_epoch
        if epoch > 0 and epoch % self.hparams.log_grouping_every == 0 and self.trainer.global_rank == 0:
            self._log_grouping(quality)
        self.log("val/accuracy", quality.mean(), sync_dist=True)

    def _log_grouping(self, quality):
        hist = torch.histc(quality, bins=5, min=0.0, max=1.0)
        self.print(f"grouping quality histogram {[int(v) for v in hist]}")
        self.log("val/hard_fraction", (quality < 0.6).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
