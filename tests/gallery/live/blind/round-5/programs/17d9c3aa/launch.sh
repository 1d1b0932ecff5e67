#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export TRACK_PORT=$((41000 + RANDOM % 8000))
"$PYTHON" -u tracker_daemon.py $TRACK_PORT > tracker.log 2>&1 &
"$PYTHON" -m torch.distributed.run --nproc-per-node 2 --master-port $MASTER_PORT tools/train.py configs/yolox_s.py
