#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 HF_HOME=$PWD/.hf TRANSFORMERS_VERBOSITY=warning
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m torch.distributed.run --nproc_per_node=2 --master_addr=127.0.0.1 --master_port=$PORT \
    run_classification.py --output_dir out --num_workers 2 > train.log 2>&1
