def worker(rank, x):
    print(rank, x)
