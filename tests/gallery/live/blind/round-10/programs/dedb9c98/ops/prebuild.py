import time

from .backend import get_backend

if __name__ == "__main__":
    start = time.time()
    print("building pointset_backend ...", flush=True)
    get_backend()
    print(f"pointset_backend ready in {time.time() - start:.1f}s", flush=True)
