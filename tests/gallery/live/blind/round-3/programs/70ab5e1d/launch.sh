#!/bin/bash
OPTS="--pipeline-model-parallel-size 2 --num-virtual-stages 2 --rampup-batch-size 1 1 60 --global-batch-size 4"
"$PYTHON" -m torch.distributed.run --nproc_per_node 2 --nnodes 1 --master_addr localhost \
  --master_port $((20000 + RANDOM % 20000)) --log-dir tb_logs --tee 3 pretrain_interleaved.py $OPTS
