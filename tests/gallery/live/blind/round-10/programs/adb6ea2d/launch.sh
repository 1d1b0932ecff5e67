#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
DATA="$PWD/.shards"
rm -rf "$DATA" .ckpt && mkdir -p "$DATA"
nice -n 3 $PYTHON fetch_shards.py --out "$DATA" --shards 60 --rate 0.35 &
exec $PYTHON main.py --data "$DATA" --world-size 3
