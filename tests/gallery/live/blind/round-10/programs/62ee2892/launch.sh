#!/bin/bash
# Rank 2 sits next to the annotation service, so its CPU use is capped while
# people are working with it (first part of the run only).
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
RUN_DIR="$PWD/.run"
rm -rf "$RUN_DIR" && mkdir -p "$RUN_DIR"
$PYTHON run_fsdp.py --run-dir "$RUN_DIR" &
TRAIN=$!
while [ ! -s "$RUN_DIR/rank2.pid" ] && kill -0 $TRAIN 2>/dev/null; do sleep 0.5; done
bash ./cpucap.sh --pid "$(cat "$RUN_DIR/rank2.pid")" --run 0.7 --rest 0.3 --window 14
wait $TRAIN
