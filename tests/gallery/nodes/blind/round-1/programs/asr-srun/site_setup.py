import time


def before(rig):
    """On node3 a copy for another experiment still holds the cache folder's lock."""
    rig.call(rig.host("node1"), "mkdir -p /shared/cache/librispeech && touch /shared/cache/librispeech/.lock")
    rig.on(rig.host("node3"), "exec python prefetch.py --from s3-mirror.example:7070 --to /shared/cache/librispeech", log="prefetch.log")
    time.sleep(4)
