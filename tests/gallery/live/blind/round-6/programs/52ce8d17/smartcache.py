from concurrent.futures import ThreadPoolExecutor

from torch.utils.data import Dataset


class SmartCache(Dataset):
    """Keeps a window of the items in memory and moves it on after every epoch."""

    def __init__(self, items, load, cache_num, replace_num, workers):
        self.items, self.load, self.cache_num, self.replace_num = items, load, cache_num, replace_num
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="cache")
        self.start = 0
        self.cache = [load(items[k % len(items)], None) for k in range(cache_num)]

    def __len__(self):
        return self.cache_num

    def __getitem__(self, k):
        return self.cache[k]

    def update(self):
        first = self.start + self.cache_num
        fresh = [self.items[(first + k) % len(self.items)] for k in range(self.replace_num)]
        loaded = list(self.pool.map(lambda it: self.load(it, self.pool), fresh))
        self.cache = self.cache[self.replace_num:] + loaded
        self.start += self.replace_num
