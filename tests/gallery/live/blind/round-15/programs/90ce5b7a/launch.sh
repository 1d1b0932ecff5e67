#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
DATA=$(mktemp -d)
$PYTHON make_latents.py $DATA || exit 1
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$($PYTHON -c "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); print(s.getsockname()[1])")
export WORLD_SIZE=4
for RANK in 0 1 2 3; do
  RANK=$RANK LOCAL_RANK=$RANK $PYTHON -u distill.py --data-path $DATA &
done
wait
