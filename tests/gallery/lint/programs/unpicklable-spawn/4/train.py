import torch.multiprocessing
from torch.utils.data import DataLoader
from rows import Rows

if __name__ == "__main__":
    torch.multiprocessing.set_start_method("forkserver")
    DataLoader(Rows([1]), num_workers=3)
