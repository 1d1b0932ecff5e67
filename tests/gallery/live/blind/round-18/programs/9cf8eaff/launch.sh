#!/bin/bash
cd "$(dirname "$0")"
export HF_HUB_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1 OMP_NUM_THREADS=1
export RUN_DIR=${RUN_DIR:-$(mktemp -d /tmp/lm-mix.XXXXXX)}
export HF_HOME=$RUN_DIR/hf
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 train.py --config mix.json
