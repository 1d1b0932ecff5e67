import hashlib
import time
from pathlib import Path

from transformers import TrainerCallback


class ChecksumManifest(TrainerCallback):
    """After a checkpoint, the main process writes a manifest with a digest per file."""

    def on_save(self, args, state, control, **kwargs):
        if not state.is_world_process_zero:
            return
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        lines = []
        for f in sorted(folder.rglob("*")):
            if f.is_file():
                lines.append(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}")
                time.sleep(0.4)
        (folder / "MANIFEST").write_text("\n".join(lines) + "\n")
        print(f"manifest for {folder.name}: {len(lines)} files", flush=True)
