#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$(( 23000 + RANDOM % 20000 )) WORLD_SIZE=3 OMP_NUM_THREADS=1
export JOB_DIR=$(mktemp -d)
PIDS=()
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON train_asr.py --job-dir "$JOB_DIR" > "$JOB_DIR/rank$r.log" 2>&1 &
  PIDS+=($!)
done
tail -q -n +1 --retry -F "$JOB_DIR/rank0.log" 2>/dev/null &
TAIL=$!
wait "${PIDS[@]}"
kill $TAIL
