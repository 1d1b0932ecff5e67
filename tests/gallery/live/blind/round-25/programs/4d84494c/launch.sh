#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
export TRACKING_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export HF_HOME=$(mktemp -d)
$PYTHON artifact_store.py $TRACKING_PORT &
sleep 1
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 finetune.py
