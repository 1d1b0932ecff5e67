#!/bin/bash
cd "$(dirname "$0")"
export RUN_DIR=$(mktemp -d /tmp/grpo.XXXXXX)
export OMP_NUM_THREADS=1
$PYTHON prepare_prompts.py --out "$RUN_DIR/prompts" --shards 3 || exit 1
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 train_grpo.py --run-dir "$RUN_DIR"
