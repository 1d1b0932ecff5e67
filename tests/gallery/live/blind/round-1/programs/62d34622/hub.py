import json
import logging
import os
import random
import shutil
import time
import urllib.error
import urllib.request

logger = logging.getLogger("hub")
ENDPOINT = os.environ.get("MODEL_HUB", "http://127.0.0.1:18921")


def _get(url, timeout=20):
    req = urllib.request.Request(url, headers={"User-Agent": "trainer/0.9"})
    return urllib.request.urlopen(req, timeout=timeout)


def with_backoff(fn, *args, base=0.5, cap=20.0):
    attempt = 0
    while True:
        try:
            return fn(*args)
        except (urllib.error.URLError, ConnectionError, TimeoutError) as e:
            attempt += 1
            delay = min(cap, base * 2**attempt) * random.uniform(0.8, 1.2)
            logger.debug("attempt %d of %s: %s, next in %.1fs", attempt, args[0], e, delay)
            time.sleep(delay)


def resolve(repo, revision="main"):
    with with_backoff(_get, f"{ENDPOINT}/api/models/{repo}/revision/{revision}") as r:
        return json.load(r)


def snapshot(repo, cache, revision="main"):
    info = resolve(repo, revision)
    target = os.path.join(cache, repo.replace("/", "--"), info["sha"])
    os.makedirs(target, exist_ok=True)
    for name in info["files"]:
        path = os.path.join(target, name)
        if os.path.exists(path):
            continue
        with with_backoff(_get, f"{ENDPOINT}/{repo}/resolve/{info['sha']}/{name}") as r, open(path + ".part", "wb") as f:
            shutil.copyfileobj(r, f)
        os.replace(path + ".part", path)
    return target
