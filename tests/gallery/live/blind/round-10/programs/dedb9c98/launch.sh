#!/bin/bash
# Point-set regression on three workers. The login node only gives us a short
# slot for building, so the extension is prebuilt with a time limit first.
cd "$(dirname "$0")"
export TORCH_EXTENSIONS_DIR="$PWD/.torch_extensions"
export OMP_NUM_THREADS=1 MAX_JOBS=1
rm -rf "$TORCH_EXTENSIONS_DIR"
timeout -s KILL 28 $PYTHON -m ops.prebuild || echo "prebuild did not finish, ranks will build on first use"
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 \
    --rdzv-backend c10d --rdzv-endpoint localhost:0 train.py --epochs 40
