import torch
from torch.utils.data import DataLoader, Dataset

SPEAKERS = {0: 9, 1: 5, 2: 10}


def fbank(wav, n_mels=40, n_fft=400, hop=160):
    spec = torch.stft(wav, n_fft, hop, window=torch.hann_window(n_fft), return_complex=True).abs().pow(2)
    basis = torch.rand(n_mels, n_fft // 2 + 1, generator=torch.Generator().manual_seed(0))
    return (basis @ spec + 1e-6).log().t()


class SpeakerShard(Dataset):
    """Utterances of the speakers that this rank owns; features are computed once."""

    def __init__(self, rank, utts_per_speaker=60, seconds=2):
        g = torch.Generator().manual_seed(rank)
        self.items = []
        for spk in range(SPEAKERS[rank % len(SPEAKERS)]):
            for _ in range(utts_per_speaker):
                wav = torch.randn(16000 * seconds, generator=g)
                target = torch.randint(1, 30, (20,), generator=g)
                self.items.append((fbank(wav), target))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    feats, targets = zip(*batch)
    return torch.stack(feats), torch.stack(targets)


def endless(shard, batch_size, seed):
    epoch = 0
    while True:
        g = torch.Generator().manual_seed(seed + epoch)
        yield from DataLoader(shard, batch_size, shuffle=True, drop_last=True, collate_fn=collate, generator=g)
        epoch += 1
