#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error
export OUT_DIR=${OUT_DIR:-$(mktemp -d /tmp/distill.XXXXXX)}
export TEACHER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
$PYTHON teacher_service.py --port "$TEACHER_PORT" &
$PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 distill.py
wait
