import multiprocessing as mp
import traceback

_ctx = mp.get_context("fork")


def background(make_generator, *args):
    """Runs a generator in a helper process and yields what it yields, one item ahead."""
    ours, theirs = _ctx.Pipe()
    proc = _ctx.Process(target=_serve, args=(make_generator, args, theirs), daemon=True)
    proc.start()
    theirs.close()
    ours.send(True)
    try:
        while True:
            item = ours.recv()
            if isinstance(item, StopIteration):
                return
            ours.send(True)
            yield item
    finally:
        ours.close()
        proc.join(5)


def _serve(make_generator, args, conn):
    gen = make_generator(*args)
    try:
        while conn.recv():
            try:
                conn.send(next(gen))
            except StopIteration as stop:
                conn.send(stop)
                return
    except (EOFError, BrokenPipeError):
        pass
    except Exception:
        traceback.print_exc()
