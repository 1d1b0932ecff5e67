#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=4 PYTHONUNBUFFERED=1 HF_HOME=$PWD/.hf HF_DATASETS_CACHE=$PWD/.hf/datasets HF_HUB_OFFLINE=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2
for r in 0 1; do
  RANK=$r LOCAL_RANK=$r "$PYTHON" train_reranker.py 2>&1 | sed -u "s/^/[$r] /" &
done
wait
