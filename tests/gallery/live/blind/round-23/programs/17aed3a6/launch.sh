#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 TOKENIZERS_PARALLELISM=false
export TRACKER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
$PYTHON board.py --port $TRACKER_PORT &
exec $PYTHON -m torch.distributed.run --standalone --nproc_per_node=3 train_lm.py
