#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_DATASETS_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1
export WORK_DIR=${WORK_DIR:-$(mktemp -d /tmp/ae_reviews.XXXXXX)}
export HF_DATASETS_CACHE=$WORK_DIR/cache
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 classify.py
