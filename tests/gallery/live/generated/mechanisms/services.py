"""A service on the network does not answer."""

from __future__ import annotations

from tests.gallery.live.generated.fault import DATA, MAIN, Fault, Situation, mechanism, one, under
from tests.gallery.live.generated.mechanisms.file_locks import in_worker

ANYWHERE = (*MAIN, *DATA)
CAUSE = "remote-service-wait"
SILENT = """import socket

kept = []
with socket.create_server(("127.0.0.1", @OTHER_PORT@), backlog=32) as listener:
    while True:
        kept.append(listener.accept())
"""
ASKS = (
    (
        "import urllib.request\n",
        'with urllib.request.urlopen("http://127.0.0.1:@OTHER_PORT@/api/$artifact") as answer:\n        return answer.read()',
    ),
    (
        "import socket\n",
        'with socket.create_connection(("127.0.0.1", @OTHER_PORT@)) as line:\n        line.sendall(b"GET $artifact\\n")\n        return line.recv(4096)',
    ),
    (
        "import http.client\n",
        'line = http.client.HTTPConnection("localhost", @OTHER_PORT@)\n    line.request("POST", "/v1/runs", body="{}")\n    return line.getresponse().read()',
    ),
)


@mechanism("services", places=ANYWHERE)
def service_that_is_silent(s: Situation) -> Fault:
    imports, ask = s.rng.choice(ASKS)
    return Fault(
        CAUSE,
        one(s.rank),
        also=in_worker(s),
        code=under(s.when, "$prepare()"),
        definitions=f"\ndef $prepare():\n    {ask}\n\n",
        imports=imports,
        files={"$aside.py": SILENT},
        beside=("$aside.py",),
    )


@mechanism("services", places=ANYWHERE)
def retries_without_end(s: Situation) -> Fault:
    loud = s.rng.choice(['$say(f"not reachable: {problem}")', "attempts += 1"])
    definitions = f"""
def $prepare():
    attempts = 0
    while True:
        try:
            return socket.create_connection(("127.0.0.1", @OTHER_PORT@), timeout=3)
        except OSError as problem:
            {loud}
            time.sleep({s.rng.choice(["1", "2", "min(5, 0.2 * 2**attempts)"])})

"""
    return Fault(
        CAUSE,
        one(s.rank),
        also=in_worker(s, "rank-stuck"),
        code=under(s.when, "$prepare()"),
        definitions=definitions,
        imports="import logging\nimport socket\n",
    )
