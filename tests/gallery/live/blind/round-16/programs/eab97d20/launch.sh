#!/bin/bash
cd "$(dirname "$0")"
mkdir -p logs
export REF_PORT=$($PYTHON -c "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); print(s.getsockname()[1])")
trap 'kill $REF_PID $GEN_PID 2>/dev/null' EXIT TERM INT

$PYTHON ref_server.py --port $REF_PORT > logs/ref_server.log 2>&1 &
REF_PID=$!
$PYTHON gen_worker.py --world 2 > logs/gen_worker.log 2>&1 &
GEN_PID=$!

$PYTHON -m torch.distributed.run --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint localhost:0 grpo_train.py &
wait $!
