"""One rank, or a loader worker of it, waits for a file or for a lock on one."""

from __future__ import annotations

from tests.gallery.live.generated.fault import DATA, MAIN, Fault, Situation, mechanism, one, under

ANYWHERE = (*MAIN, *DATA)
HOLDER = """import fcntl
import time

with open("$artifact.lock", "a") as handle:
    fcntl.@CALL@(handle, fcntl.LOCK_EX)
    while True:
        time.sleep(5)
"""
HOLDER_LIBRARY = """import threading

from filelock import FileLock

with FileLock("$artifact.lock"):
    threading.Event().wait()
"""


def in_worker(s: Situation, *also: str) -> tuple[str, ...]:
    return (*also, "data-worker-stuck") if s.in_worker else also


@mechanism("files", places=ANYWHERE)
def file_that_nobody_writes(s: Situation) -> Fault:
    waits = [
        'while not os.path.exists("$artifact.ready"):\n    time.sleep(0.5)',
        "while not os.path.isfile(path):\n    time.sleep(random.uniform(0.2, 1.0))\n",
        "for attempt in range(10**6):\n    if os.path.exists(path):\n        break\n    time.sleep(1)",
    ]
    body = s.rng.choice(waits).replace("\n", "\n    ")
    definitions = f"""
def $prepare(path):
    {body}
    return path

"""
    code = under(s.when, '$prepare("$artifact.ready")')
    cause, also = ("data-worker-stuck", ("rank-stuck",)) if s.in_worker else ("rank-stuck", ())
    return Fault(cause, one(s.rank), also=also, code=code, definitions=definitions)


@mechanism("files", places=ANYWHERE)
def lock_of_another_process(s: Situation) -> Fault:
    call = s.rng.choice(["flock", "lockf", "library"])
    if call == "library":
        own = 'with FileLock("$artifact.lock"):\n        return os.path.getsize("$artifact.lock")'
        imports, holder = "from filelock import FileLock\n", HOLDER_LIBRARY
    else:
        own = f'with open("$artifact.lock", "a") as handle:\n        fcntl.{call}(handle, fcntl.LOCK_EX)\n        return handle.tell()'
        imports, holder = "import fcntl\n", HOLDER.replace("@CALL@", call)
    definitions = f"\ndef $prepare():\n    {own}\n\n"
    return Fault(
        "file-lock-held",
        one(s.rank),
        also=in_worker(s),
        code=under(s.when, "$prepare()"),
        definitions=definitions,
        imports=imports,
        files={"$aside.py": holder},
        beside=("$aside.py",),
    )


@mechanism("files", places=("loop", "after", "eval", "ckpt"))
def lock_kept_over_a_call(s: Situation) -> Fault:
    code = under(
        f"$step >= {s.step}",
        f"""
time.sleep(0.5 * int($rank != {s.rank}))
with open("$artifact.lock", "a") as handle:
    fcntl.flock(handle, fcntl.LOCK_EX)
    handle.write(f"{{$rank}}\\n")
    dist.barrier()
""",
    )
    also = ("rank-conditional-collective",)
    return Fault("file-lock-held", one(s.rank), also=also, code=code, imports="import fcntl\n")


@mechanism("files", places=ANYWHERE)
def lock_file_of_an_ended_process(s: Situation) -> Fault:
    definitions = """
def $prepare(path):
    while True:
        try:
            return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR)
        except FileExistsError:
            time.sleep(0.3)

"""
    return Fault(
        "file-lock-held",
        one(s.rank),
        also=in_worker(s, "rank-stuck"),
        code=under(s.when, 'handle = $prepare("$artifact.lock")'),
        definitions=definitions,
        files={"$artifact.lock": f"{s.rng.randint(3_000_000, 4_000_000)}\n"},
    )


@mechanism("files", places=("loop", "after", "setup"))
def lock_of_a_build(s: Situation) -> Fault:
    code = under(
        s.who if s.place == "setup" else s.when,
        """
os.makedirs("build", exist_ok=True)
baton = FileBaton("build/lock")
if not baton.try_acquire():
    baton.wait()
""",
    )
    also = ("file-lock-held", *(("rendezvous-incomplete",) if s.place == "setup" else ()))
    return Fault(
        "extension-build-lock",
        one(s.rank),
        also=also,
        code=code,
        imports="from torch.utils.file_baton import FileBaton\n",
        files={"build/lock": ""},
        first_steps=0 if s.place == "setup" else -1,
    )
