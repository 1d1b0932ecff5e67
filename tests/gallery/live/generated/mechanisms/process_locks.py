"""One rank, or a loader worker of it, waits or computes inside its own process."""

from __future__ import annotations

from tests.gallery.live.generated.fault import DATA, MAIN, Fault, Situation, mechanism, one, under
from tests.gallery.live.generated.mechanisms.file_locks import in_worker

ANYWHERE = (*MAIN, *DATA)
THREADS = "import queue\nimport threading\n"


@mechanism("process locks")
def lock_of_a_waiting_thread(s: Situation) -> Fault:
    definitions = """
$guard = threading.Lock()
$queue = queue.Queue()


def $prepare():
    with $guard:
        entry = $queue.get()
        $seen.append(entry)

"""
    code = under(
        s.when,
        """
$thread = threading.Thread(target=$prepare, daemon=True)
$thread.start()
time.sleep(0.2)
with $guard:
    $queue.put($step)
""",
    )
    also = ("queue-deadlock", "rank-stuck")
    return Fault(
        "thread-deadlock",
        one(s.rank),
        also=also,
        code=code,
        definitions=definitions,
        imports=THREADS,
    )


@mechanism("process locks")
def two_locks_in_two_orders(s: Situation) -> Fault:
    definitions = """
$guard, $second = threading.Lock(), threading.Lock()


def $prepare():
    with $second:
        time.sleep(0.4)
        with $guard:
            $seen.append(0)


def $clean():
    with $guard:
        time.sleep(0.4)
        with $second:
            $seen.append(1)

"""
    code = under(s.when, "$thread = threading.Thread(target=$prepare)\n$thread.start()\n$clean()")
    return Fault(
        "thread-deadlock", one(s.rank), code=code, definitions=definitions, imports=THREADS
    )


@mechanism("process locks", places=ANYWHERE)
def lock_taken_twice(s: Situation) -> Fault:
    definitions = """
$guard = threading.Lock()


def $clean(value):
    with $guard:
        return value + 1


def $prepare(value):
    with $guard:
        return $clean(value) * 2

"""
    return Fault(
        "thread-deadlock",
        one(s.rank),
        also=in_worker(s, "rank-stuck"),
        code=under(s.when, "$prepare(3)"),
        definitions=definitions,
        imports=THREADS,
    )


@mechanism(
    "process locks",
    places=("getitem",),
    frameworks=("ddp", "fsdp2", "tp", "datasets"),
    workers=True,
)
def lock_held_while_forking(s: Situation) -> Fault:
    definitions = """
$guard = threading.Lock()


def $prepare():
    with $guard:
        for part in range(100):
            $stats[f"part{part}"] = part
            time.sleep(0.1)

"""
    made = under(
        f"workers and {s.who}",
        "threading.Thread(target=$prepare, daemon=True).start()\ntime.sleep(0.3)",
    )
    return Fault(
        "fork-inherited-lock",
        one(s.rank),
        also=("data-worker-stuck",),
        code='with $guard:\n    $stats["reads"] += 1',
        definitions=definitions,
        imports=THREADS,
        inserts={"made": made},
        first_steps=0,
    )


@mechanism("process locks", places=ANYWHERE)
def interpreter_held_by_c(s: Situation) -> Fault:
    call = s.rng.choice(["ctypes.PyDLL(None).sleep(86_400)", "ctypes.PyDLL(None).pause()"])
    return Fault(
        "gil-held",
        one(s.rank),
        also=in_worker(s),
        code=under(s.when, call),
        imports="import ctypes\n",
    )


@mechanism("process locks", places=ANYWHERE)
def expression_that_explodes(s: Situation) -> Fault:
    pattern, text = s.rng.choice(
        [
            (r"^(\w+\s?)+$$", '"abcdefghij" * 4 + "!"'),
            (r"(a|aa)+b", '"a" * 60'),
            (r"([a-z]+)*\d", '"q" * 48'),
        ]
    )
    definitions = f"""
TOKEN = re.compile(r"{pattern}")


def $clean(text):
    return TOKEN.match(text) is not None

"""
    return Fault(
        "gil-held",
        one(s.rank),
        also=in_worker(s, "rank-stuck"),
        code=under(s.when, f"$clean({text})"),
        definitions=definitions,
        imports="import re\n",
    )


@mechanism("process locks", places=ANYWHERE)
def rejection_without_end(s: Situation) -> Fault:
    definitions = s.rng.choice(
        [
            """
def $clean(limit):
    draws = random.Random(limit)
    while True:
        value = draws.gauss(0.0, 1.0)
        if value > limit:
            return value

""",
            """
def $clean(limit):
    start = 1
    while start % 6 != limit:
        start = (start * 7) % 6_000_003 | 1
    return start

""",
            """
def $clean(limit):
    while True:
        crop = torch.rand(4)
        if crop.sum() > limit:
            return crop

""",
        ]
    )
    cause, also = ("data-worker-stuck", ("rank-stuck",)) if s.in_worker else ("rank-stuck", ())
    return Fault(
        cause, one(s.rank), also=also, code=under(s.when, "$clean(40)"), definitions=definitions
    )


@mechanism("process locks")
def import_that_does_not_return(s: Situation) -> Fault:
    body = s.rng.choice(
        [
            'import os\nimport time\n\nwhile not os.path.exists("$artifact.bin"):\n    time.sleep(0.25)\nTABLE = "$artifact.bin"\n',
            "import threading\n\nready = threading.Event()\nready.wait()\nVERSION = 2\n",
            "import multiprocessing\n\nleft, right = multiprocessing.Pipe()\nSETTINGS = left.recv()\n",
        ]
    )
    return Fault(
        "import-hang",
        one(s.rank),
        also=("rank-stuck",),
        code=under(s.when, "import $extra"),
        files={"$extra.py": body},
    )
