import multiprocessing
import socket


def learner(rank, world, port):
    import ppo

    ppo.learn(rank, world, port, multiprocessing.get_context("spawn"))


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = multiprocessing.get_context("spawn")
    ranks = [ctx.Process(target=learner, args=(r, 2, port), name=f"rank{r}") for r in range(2)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()
