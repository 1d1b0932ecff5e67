import filelock as fl
import torch.distributed as dist


class Cache:
    def __init__(self, path):
        self.lock = fl.FileLock(path)

    def get(self, obj):
        self.lock.acquire()
        try:
            dist.broadcast_object_list([obj], src=0)
        finally:
            self.lock.release()


dist.init_process_group("gloo")
