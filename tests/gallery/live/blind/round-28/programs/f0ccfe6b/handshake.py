"""File based handshake between the trainer and the sampling process on the same host."""
import os
import time

REQUEST, PAUSED, RELEASE = "REQUEST", "PAUSED", "RELEASE"


def step_dir(root, step):
    return os.path.join(root, f"step_{step}")


def touch(path):
    with open(path, "w") as f:
        f.write(str(time.time()))


def drop(path):
    try:
        os.remove(path)
    except FileNotFoundError:
        pass


def wait_for_marker(path, poll=0.2):
    while not os.path.exists(path):
        time.sleep(poll)


class TrainerSide:
    def __init__(self, root):
        self.root = root
        os.makedirs(root, exist_ok=True)

    def pause(self, step):
        folder = step_dir(self.root, step)
        os.makedirs(folder, exist_ok=True)
        drop(os.path.join(folder, RELEASE))
        touch(os.path.join(folder, REQUEST))
        wait_for_marker(os.path.join(folder, PAUSED))

    def release(self, step):
        folder = step_dir(self.root, step)
        drop(os.path.join(folder, PAUSED))
        touch(os.path.join(folder, RELEASE))


class SamplerSide:
    def __init__(self, root):
        self.root = root
        self.served = set()

    def poll(self):
        """Honour one outstanding request, if there is any."""
        for name in sorted(os.listdir(self.root)):
            folder = os.path.join(self.root, name)
            if name in self.served or not os.path.exists(os.path.join(folder, REQUEST)):
                continue
            self.served.add(name)
            touch(os.path.join(folder, PAUSED))
            wait_for_marker(os.path.join(folder, RELEASE))
            drop(os.path.join(folder, REQUEST))
            return name
        return None
