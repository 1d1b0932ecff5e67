#!/bin/bash
set -e
export OMP_NUM_THREADS=1 HF_DATASETS_CACHE=$PWD/.hf_cache HF_HOME=$PWD/.hf TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" prepare_corpus.py --out data
exec "$PYTHON" -m torch.distributed.run --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port $PORT \
    --log-dir logs --redirects 0 --tee 3 train_stream.py --data data --epochs 5
