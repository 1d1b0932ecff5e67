#!/bin/bash
export GLOO_SOCKET_IFNAME=lo
export MASTER_PORT=$((20000 + RANDOM % 20000))
export TRACKING_PORT=$((41000 + RANDOM % 15000))
$PYTHON tracking_server.py --port $TRACKING_PORT --config server.json &
trap 'kill %1' EXIT
$PYTHON train.py
