#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$(( 20000 + RANDOM % 20000 ))
export WORLD_SIZE=3
export GLOO_SOCKET_IFNAME=lo TP_SOCKET_IFNAME=lo
export WORK=$(mktemp -d /tmp/qlearn.XXXXXX)
RANK=0 $PYTHON run.py --role trainer &
RANK=1 $PYTHON run.py --role learner &
RANK=2 $PYTHON run.py --role learner &
wait
