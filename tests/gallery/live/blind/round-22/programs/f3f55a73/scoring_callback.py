import json
import os
import subprocess
import sys
import tempfile

from lightning.pytorch.callbacks import Callback

HERE = os.path.dirname(os.path.abspath(__file__))


class CaptionScore(Callback):
    def __init__(self):
        self.work = tempfile.mkdtemp(prefix="capscore-")
        self.rows = []

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero:
            self.rows.extend(outputs)

    def on_validation_epoch_end(self, trainer, pl_module):
        if not trainer.is_global_zero or trainer.sanity_checking:
            self.rows.clear()
            return
        path = os.path.join(self.work, f"epoch{trainer.current_epoch}.tsv")
        with open(path, "w") as f:
            for ref, hyp in self.rows:
                f.write(f"{' '.join(ref)}\t{' '.join(hyp)}\n")
        self.rows.clear()
        proc = subprocess.Popen(["bash", os.path.join(HERE, "score.sh"), path, self.work],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "PYTHON": sys.executable})
        out, _ = proc.communicate()
        result = json.loads(out.strip().splitlines()[-1])
        print(f"epoch {trainer.current_epoch} overlap {result['overlap']:.3f} "
              f"over {result['words']} words", flush=True)
