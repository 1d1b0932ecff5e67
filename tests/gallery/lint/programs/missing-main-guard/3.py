import multiprocessing as mp

mp.set_start_method("spawn")


def f(x):
    return x * x


pool = mp.Pool(4)
print(pool.map(f, range(10)))
