import http.client
import logging
import os
import time

log = logging.getLogger("store")


def put(key, data, retries=8, backoff=1.0):
    for attempt in range(1, retries + 1):
        try:
            c = http.client.HTTPConnection(os.environ["STORE"], timeout=30)
            c.request("PUT", key, data)
            r = c.getresponse()
            if r.status == 200:
                log.info("uploaded %s (%d bytes, attempt %d)", key, len(data), attempt)
                return True
            raise ConnectionError(f"{r.status} {r.reason}")
        except OSError as e:
            wait = min(backoff * 2 ** (attempt - 1), 3.0)
            log.error("ERROR uploading %s: %s; retrying in %.0fs (%d/%d)", key, e, wait, attempt, retries)
            time.sleep(wait)
    log.error("giving up on %s, keeping local copy", key)
    return False
