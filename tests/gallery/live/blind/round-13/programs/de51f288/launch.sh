#!/bin/bash
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + RANDOM % 20000))
export GLOO_SOCKET_IFNAME=lo TP_SOCKET_IFNAME=lo
exec $PYTHON main.py --actors 2 --rollout-len 12
