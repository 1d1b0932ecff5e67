import itertools

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

from models.networks import ImagePool, discriminator, gan_loss, generator


class CycleGANModel:
    def __init__(self, opt, rank):
        self.netG_A, self.netG_B = DDP(generator()), DDP(generator())
        self.netD_A, self.netD_B = DDP(discriminator()), DDP(discriminator())
        self.pool_A, self.pool_B = ImagePool(50, rank), ImagePool(50, rank + 7)
        self.opt_G = torch.optim.Adam(
            itertools.chain(self.netG_A.parameters(), self.netG_B.parameters()), lr=opt.lr, betas=(0.5, 0.999))
        self.opt_D = torch.optim.Adam(
            itertools.chain(self.netD_A.parameters(), self.netD_B.parameters()), lr=opt.lr, betas=(0.5, 0.999))
        self.l_cyc = opt.lambda_cyc

    def set_grad_D(self, flag):
        for net in (self.netD_A, self.netD_B):
            for p in net.parameters():
                p.requires_grad_(flag)

    def optimize_parameters(self, real_A, real_B):
        self.real_A, self.real_B = real_A, real_B
        self.set_grad_D(False)
        self.fake_B = self.netG_A(real_A)
        self.fake_A = self.netG_B(real_B)
        self.rec_A = self.netG_B.module(self.fake_B)
        self.rec_B = self.netG_A.module(self.fake_A)
        g_A = gan_loss(self.netD_A.module(self.fake_B), True)
        g_B = gan_loss(self.netD_B.module(self.fake_A), True)
        cyc = (self.rec_A - real_A).abs().mean() + (self.rec_B - real_B).abs().mean()
        loss_G = g_A + g_B + self.l_cyc * cyc
        self.opt_G.zero_grad()
        loss_G.backward()
        self.opt_G.step()

        self.set_grad_D(True)
        self.opt_D.zero_grad()
        loss_D = 0
        for net, real, fake in (
            (self.netD_A, real_B, self.pool_B.query(self.fake_B)),
            (self.netD_B, real_A, self.pool_A.query(self.fake_A)),
        ):
            pred = net(torch.cat([real, fake]))
            pr, pf = pred.chunk(2)
            loss_D = loss_D + 0.5 * (gan_loss(pr, True) + gan_loss(pf, False))
        loss_D.backward()
        self.opt_D.step()
        self.losses = {"G_A": g_A.item(), "G_B": g_B.item(), "cyc": cyc.item(), "D": loss_D.item()}

    def visuals(self):
        return {k: getattr(self, k) for k in
                ("real_A", "fake_B", "rec_A", "real_B", "fake_A", "rec_B")}
