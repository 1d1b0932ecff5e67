#!/bin/bash
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 HF_HOME=$PWD/.hf
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m torch.distributed.run --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port $PORT \
    run_clm.py --output_dir runs/gpt2-tiny --archive_dir archive
