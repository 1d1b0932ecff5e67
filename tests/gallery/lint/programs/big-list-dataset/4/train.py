from torch.utils.data import DataLoader

from corpus import Corpus

loader = DataLoader(Corpus("corpus.txt"), batch_size=2, num_workers=12)
