#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1
export RUN_DIR=${RUN_DIR:-$(mktemp -d /tmp/clsft.XXXXXX)}
export HF_HOME=$RUN_DIR/hf
export LABEL_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
$PYTHON label_store.py &
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 finetune.py
