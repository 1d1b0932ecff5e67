#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export TRACKING_PORT=$((10000 + RANDOM % 9000))
"$PYTHON" -u tracking_server.py --port $TRACKING_PORT --store mlruns.jsonl &
"$PYTHON" -m torch.distributed.run --nproc-per-node 2 --master-addr $MASTER_ADDR --master-port $MASTER_PORT train.py --tracking-port $TRACKING_PORT --epochs 500
