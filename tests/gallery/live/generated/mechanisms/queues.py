"""A pipe or a queue whose other end does not do its part."""

from __future__ import annotations

from tests.gallery.live.generated.fault import Fault, Situation, mechanism, one, under

CAUSE = "queue-deadlock"
ALSO = ("rank-stuck",)


@mechanism("queues")
def full_pipe_to_a_helper(s: Situation) -> Fault:
    helper = """import sys
import time

for number, line in enumerate(sys.stdin):
    if number >= 3:
        while True:
            time.sleep(60)
"""
    code = under(
        s.when,
        """
$pipe = subprocess.Popen([sys.executable, "$aside.py"], stdin=subprocess.PIPE, text=True)
for row in range(20_000):
    $pipe.stdin.write(f"{row},{$step},{row * 0.5:.3f}\\n")
$pipe.stdin.close()
$pipe.wait()
""",
    )
    return Fault(CAUSE, one(s.rank), also=ALSO, code=code, files={"$aside.py": helper})


@mechanism("queues")
def helper_whose_output_is_not_read(s: Situation) -> Fault:
    helper = 'for row in range(60_000):\n    print("row", row, row * 3)\n'
    code = under(
        s.when,
        """
$pipe = subprocess.Popen([sys.executable, "$aside.py"], stdout=subprocess.PIPE)
code = $pipe.wait()
$say(f"converted: {code}")
""",
    )
    return Fault(CAUSE, one(s.rank), also=ALSO, code=code, files={"$aside.py": helper})


@mechanism("queues")
def producer_process_that_ended(s: Situation) -> Fault:
    definitions = f"""
def $prepare($queue):
    for number in range(3):
        $queue.put(number)
    {s.rng.choice(["os._exit(1)", "return None"])}

"""
    code = under(
        s.when,
        """
context = multiprocessing.get_context("fork")
$queue = context.Queue()
producer = context.Process(target=$prepare, args=($queue,), daemon=True)
producer.start()
ready = [$queue.get() for _ in range(8)]
""",
    )
    return Fault(
        CAUSE,
        one(s.rank),
        also=ALSO,
        code=code,
        definitions=definitions,
        imports="import multiprocessing\n",
    )


@mechanism("queues")
def producer_thread_that_ended(s: Situation) -> Fault:
    definitions = """
def $prepare($queue):
    for number in range(6):
        $queue.put(10 // (4 - number))

"""
    code = under(
        s.when,
        """
$queue = queue.Queue(4)
threading.Thread(target=$prepare, args=($queue,), daemon=True).start()
values = [$queue.get() for _ in range(6)]
""",
    )
    return Fault(
        CAUSE, one(s.rank), also=ALSO, code=code, definitions=definitions, imports="import queue\n"
    )


@mechanism("queues")
def consumer_thread_that_ended(s: Situation) -> Fault:
    definitions = """
def $prepare($queue):
    while True:
        entry = $queue.get()
        with open(f"series/{entry}.json", "a") as out:
            out.write("{}")

"""
    code = under(
        s.when,
        """
$queue = queue.Queue(maxsize=16)
threading.Thread(target=$prepare, args=($queue,), daemon=True).start()
for number in range(64):
    $queue.put(number)
""",
    )
    return Fault(
        CAUSE, one(s.rank), also=ALSO, code=code, definitions=definitions, imports="import queue\n"
    )


@mechanism("queues")
def join_before_the_queue_is_empty(s: Situation) -> Fault:
    definitions = """
def $prepare($queue):
    for number in range(64):
        $queue.put(bytes(8192))

"""
    code = under(
        s.when,
        """
context = multiprocessing.get_context("fork")
$queue = context.Queue()
packer = context.Process(target=$prepare, args=($queue,))
packer.start()
packer.join()
packed = [$queue.get() for _ in range(64)]
""",
    )
    return Fault(
        CAUSE,
        one(s.rank),
        also=ALSO,
        code=code,
        definitions=definitions,
        imports="import multiprocessing\n",
    )
