#!/bin/bash
cd "$(dirname "$0")"
export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export MASTER_PORT=$((20000 + RANDOM % 20000))
export OUT_DIR="$(mktemp -d "${TMPDIR:-/tmp}/retr-XXXXXX")"
PIDS=()
for r in $(seq 0 $((WORLD_SIZE - 1))); do
  RANK=$r LOCAL_RANK=$r $PYTHON -m retrieval.train --out "$OUT_DIR" &
  PIDS+=($!)
done
./memwatch.sh 640 "${PIDS[@]}" &
WATCH=$!
for p in "${PIDS[@]}"; do wait "$p"; done
kill $WATCH 2>/dev/null
echo "job finished"
