#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export CONTROL_PORT=$((40000 + RANDOM % 10000))
"$PYTHON" panel.py --send stop --after 22 &
"$PYTHON" -m torch.distributed.run --nproc-per-node 2 --master-addr $MASTER_ADDR --master-port $MASTER_PORT train_pose.py --epochs 500
wait
