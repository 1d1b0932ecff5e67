#!/bin/bash
export OMP_NUM_THREADS=1
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m torch.distributed.run --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port $PORT \
    --log-dir tplogs --tee 3 generate_tp.py --prompts 600 --temperature 1.0 --greedy-prompts 12
