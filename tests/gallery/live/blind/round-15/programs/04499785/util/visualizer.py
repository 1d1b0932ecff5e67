import os
import struct
import tempfile
import time
import zlib

import torch

from util.html import HTML


def tensor2im(t):
    t = t.detach().float().clamp(-1, 1)
    return ((t + 1) / 2 * 255).to(torch.uint8).permute(1, 2, 0).contiguous().numpy()


def save_image(img, path):
    h, w, _ = img.shape
    raw = b"".join(b"\x00" + img[y].tobytes() for y in range(h))

    def chunk(kind, data):
        c = kind + data
        return struct.pack(">I", len(data)) + c + struct.pack(">I", zlib.crc32(c))

    head = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 1)) + chunk(b"IEND", b""))


class Visualizer:
    def __init__(self, opt):
        self.name = opt.name
        self.win_size = opt.display_winsize
        self.web_dir = os.path.join(opt.checkpoints_dir or tempfile.mkdtemp(prefix="cyc-"), opt.name)
        os.makedirs(self.web_dir, exist_ok=True)
        self.log = open(os.path.join(self.web_dir, "loss_log.txt"), "a")

    def display_current_results(self, visuals, epoch, iters):
        webpage = HTML(self.web_dir, f"Experiment name = {self.name}")
        ims, txts = [], []
        for label, image in visuals.items():
            for k, sample in enumerate(image):
                name = f"epoch{epoch:03d}_{iters:06d}_{label}_{k}.png"
                save_image(tensor2im(sample), os.path.join(webpage.img_dir, name))
                ims.append(name)
                txts.append(f"{label} {k}")
        webpage.add_header(f"epoch [{epoch}] iter [{iters}]")
        webpage.add_images(ims, txts, ims, width=self.win_size)
        webpage.save()

    def print_current_losses(self, epoch, iters, losses, t_comp):
        msg = f"(epoch: {epoch}, iters: {iters}, time: {t_comp:.3f}) " + " ".join(
            f"{k}: {v:.3f}" for k, v in losses.items())
        print(time.strftime("%H:%M:%S"), msg, flush=True)
        self.log.write(msg + "\n")
        self.log.flush()
