#!/bin/bash
export MASTER_PORT=$((20000 + RANDOM % 20000))
export GLOO_SOCKET_IFNAME=lo
exec $PYTHON main.py
