#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 HF_HOME=$PWD/hf_home
MIRROR=$((20000 + RANDOM % 10000))
PORT=$((30000 + RANDOM % 10000))
export HF_ENDPOINT=http://127.0.0.1:$MIRROR HF_HUB_ETAG_TIMEOUT=1800 HF_HUB_DOWNLOAD_TIMEOUT=1800
"$PYTHON" mirror_proxy.py $MIRROR 10.11.0.7:443 > proxy.log 2>&1 &
sleep 1
"$PYTHON" -m torch.distributed.run --nproc_per_node=3 --master_addr=127.0.0.1 --master_port=$PORT \
    forecast.py --model ibm-granite/granite-timeseries-ttm-r2 2>&1 | tee forecast.log
