#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1
export RUN_DIR=${RUN_DIR:-$(mktemp -d /tmp/pretrain.XXXXXX)}
export HF_HOME=$RUN_DIR/hf
$PYTHON import_run.py --run-dir "$RUN_DIR" --step 64000
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 pretrain.py --run-dir "$RUN_DIR" --resume
