#!/bin/bash
export FORCE_TORCHRUN=1
"$PYTHON" -m torch.distributed.run --nnodes 1 --node_rank 0 --nproc_per_node 3 \
  --master_addr 127.0.0.1 --master_port $((20000 + RANDOM % 20000)) \
  cli_train.py --config qwen2vl_full_sft.yaml
