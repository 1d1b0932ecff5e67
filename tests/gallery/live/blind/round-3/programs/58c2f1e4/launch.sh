#!/bin/bash
# one process per device
export MASTER_ADDR=localhost MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3 OMP_NUM_THREADS=1
for RANK in 0 1 2; do
  export RANK
  "$PYTHON" -u sft.py --cache_dir ./hf_cache > train_rank$RANK.log 2>&1 &
done
wait
