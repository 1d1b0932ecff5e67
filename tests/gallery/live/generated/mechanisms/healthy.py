"""Nothing is wrong, though it may look so for some seconds."""

from __future__ import annotations

from tests.gallery.live.generated.fault import HEALTHY, MAIN, Fault, Situation, mechanism, under


def well(code: str = "", definitions: str = "", imports: str = "", **more: object) -> Fault:
    return Fault(
        "none", [[]], HEALTHY, code=code, definitions=definitions, imports=imports,
        settled="advancing", **more,  # type: ignore[arg-type]
    )  # fmt: skip


def often(s: Situation) -> str:
    """True every so many steps at the place."""
    return f"$step % {s.step} == 0" if s.place in ("loop", "after") else "$step >= 0"


def now_and_then(within_s: float) -> str:
    """True in a stretch of each half minute: a pause of seconds at every pass would be no pause."""
    return f"time.time() % 30 < {within_s:g}"


@mechanism("healthy", places=("outside",))
def plain(_: Situation) -> Fault:
    return well()


@mechanism("healthy", places=("eval", "ckpt"), rank=0)
def main_rank_takes_its_time(s: Situation) -> Fault:
    definitions = f"""
def $prepare():
    total = 0
    for part in range({s.rng.randint(20, 60)}):
        total += sum(number % 7 for number in range(60_000))
        time.sleep(0.05)
    return total

"""
    return well(under(f"$rank == 0 and {now_and_then(2)}", "$prepare()"), definitions)


@mechanism("healthy", places=("after", "ckpt"))
def all_ranks_pause(s: Situation) -> Fault:
    pause = s.rng.choice(["gc.collect()\ntime.sleep(2)", "time.sleep(2.5)"])
    return well(under(often(s), pause), imports="import gc\n")


@mechanism("healthy", places=("loop",))
def slow_first_step(s: Situation) -> Fault:
    return well(under("$step == 0", f"time.sleep({s.rng.randint(4, 9)})"))


@mechanism("healthy", places=MAIN)
def download_that_succeeds_at_last(s: Situation) -> Fault:
    definitions = """
def $prepare(tries=4):
    for attempt in range(tries):
        try:
            return socket.create_connection(("127.0.0.1", @OTHER_PORT@), timeout=2)
        except OSError as problem:
            logging.warning("attempt %d: %s", attempt, problem)
            time.sleep(0.5)
    return None

"""
    return well(under(s.when.replace(">=", "=="), "$prepare()"), definitions, "import socket\n")


@mechanism("healthy", places=("loop",))
def idle_threads_and_helpers(s: Situation) -> Fault:
    definitions = """
$queue = queue.Queue()
$guard = threading.Lock()


def $prepare():
    while True:
        $seen.append($queue.get())


def $clean():
    gate = threading.Event()
    with $guard:
        gate.wait()

"""
    helper = "import sys\n\nfor line in sys.stdin:\n    print(line)\n"
    code = under(
        f"$step == {s.rng.randint(1, 4)}",
        """
for target in ($prepare, $prepare, $clean):
    threading.Thread(target=target, daemon=True).start()
helper = subprocess.Popen([sys.executable, "$aside.py"], stdin=subprocess.PIPE)
""",
    )
    return well(code, definitions, "import queue\n", files={"$aside.py": helper})


@mechanism("healthy", places=("after", "ckpt", "eval"))
def ranks_take_turns_at_a_lock(_: Situation) -> Fault:
    code = under(
        now_and_then(2),
        """
with open("$artifact.lock", "a") as handle:
    fcntl.flock(handle, fcntl.LOCK_EX)
    time.sleep(0.8)
""",
    )
    return well(code, imports="import fcntl\n")


@mechanism("healthy", places=("getitem",))
def data_that_pauses_now_and_then(s: Situation) -> Fault:
    return well(under(now_and_then(0.1), f"time.sleep({s.rng.uniform(1, 3):.1f})"))


@mechanism("healthy", places=("after", "eval"))
def caught_and_logged_exception(s: Situation) -> Fault:
    definitions = """
def $clean(entry):
    try:
        return entry["size"] / entry["count"]
    except (KeyError, ZeroDivisionError):
        logging.exception("could not read the entry; default used")
        return 1.0

"""
    return well(under(s.when, '$clean({"size": 3, "count": 0})'), definitions)


@mechanism("healthy", places=("after",))
def uneven_but_even_on_average(_: Situation) -> Fault:
    return well("time.sleep(random.Random($step * 31 + $rank).choice([0.0, 0.0, 0.02, 0.3]))")


@mechanism("healthy", places=("loop", "ckpt"))
def background_upload(s: Situation) -> Fault:
    definitions = """
def $prepare(number):
    digest = hashlib.sha256()
    for part in range(200):
        digest.update(bytes(65_536))
        time.sleep(0.01)
    $seen.append(digest.hexdigest())

"""
    code = under(
        f"$step % {s.step} == 1" if s.place == "loop" else "True",
        "threading.Thread(target=$prepare, args=($step,), daemon=True).start()",
    )
    return well(code, definitions, "import hashlib\n")
