from multiprocessing import get_context


def run(items):
    scale = 3
    ctx = get_context("spawn")
    p = ctx.Process(target=lambda: print(scale, items))
    p.start()


if __name__ == "__main__":
    run([1])
