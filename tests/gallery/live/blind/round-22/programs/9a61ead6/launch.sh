#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=4
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export SAVE_FOLDER=$(mktemp -d -t olm_run_XXXXXX)
for r in 0 1 2; do
    RANK=$r LOCAL_RANK=$r $PYTHON pretrain.py --save-folder "$SAVE_FOLDER" &
done
export RANK=3 LOCAL_RANK=3
exec $PYTHON pretrain.py --save-folder "$SAVE_FOLDER"
