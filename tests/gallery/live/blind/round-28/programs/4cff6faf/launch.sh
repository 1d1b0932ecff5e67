#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export RUN_DIR=$(mktemp -d /tmp/ctr-run-XXXXXX)
for r in 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON train_ctr.py --steps 100000 &
done
RANK=0 LOCAL_RANK=0 exec $PYTHON train_ctr.py --steps 100000
