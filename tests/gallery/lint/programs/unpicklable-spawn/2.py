import torch.multiprocessing as mp


def main():
    def worker(rank, x):
        print(rank, x)

    mp.spawn(worker, args=(1,), nprocs=2)


if __name__ == "__main__":
    main()
