#!/bin/bash
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m torch.distributed.run --nproc_per_node=2 --master_port=$PORT pretrain.py --save-interval 60 --train-iters 100000
