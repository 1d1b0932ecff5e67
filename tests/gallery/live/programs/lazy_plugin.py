"""A plugin is imported at first use; at import it waits for its licence file."""

import os
import sys

from kit import Trainer, connect, options, start

PLUGIN = """
import os
import time

LICENCE = os.environ.get("PLUGIN_LICENCE", "/opt/plugin/licence.txt")
while not os.path.exists(LICENCE):
    time.sleep(1)


def schedule(step):
    return 1e-3
"""


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    if rank == args.pick:
        os.makedirs("plugins", exist_ok=True)
        with open("plugins/lr_plugin.py", "w") as file:
            file.write(PLUGIN)
    sys.path.insert(0, "plugins")
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            import lr_plugin

            lr_plugin.schedule(step)


if __name__ == "__main__":
    start(main, options())
