import multiprocessing
import socket


def learner_main(rank, world, port, kinds):
    import learner

    learner.train(rank, world, port, multiprocessing.get_context("spawn"), kinds)


def main():
    kinds = ["joints", "camera"]
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = multiprocessing.get_context("spawn")
    learners = [
        ctx.Process(target=learner_main, args=(rank, len(kinds), port, kinds), name=f"learner-{rank}")
        for rank in range(len(kinds))
    ]
    for p in learners:
        p.start()
    for p in learners:
        p.join()


if __name__ == "__main__":
    main()
