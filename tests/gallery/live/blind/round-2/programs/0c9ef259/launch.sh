#!/bin/bash
export OMP_NUM_THREADS=1
PORT=$((20000 + RANDOM % 20000))
export TRACKING_URI=http://127.0.0.1:$((40000 + RANDOM % 9000))
"$PYTHON" tracking_server.py --uri $TRACKING_URI > tracking.log 2>&1 &
TS=$!
sleep 2
"$PYTHON" -m torch.distributed.run --nnodes 1 --nproc-per-node 3 --master-addr 127.0.0.1 --master-port $PORT train.py --max-steps 5000
kill $TS
