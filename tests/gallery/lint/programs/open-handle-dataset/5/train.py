from torch.utils.data import DataLoader
from zips import ZipImages

DataLoader(ZipImages("img.zip"), num_workers=8, multiprocessing_context="fork")
