import multiprocessing as mp
from concurrent.futures import ThreadPoolExecutor


def work(i):
    return i


def main():
    pool = ThreadPoolExecutor(4)
    pool.submit(print, 1)
    ctx = mp.get_context("fork")
    p = ctx.Process(target=work, args=(1,))
    p.start()
    p.join()


if __name__ == "__main__":
    main()
