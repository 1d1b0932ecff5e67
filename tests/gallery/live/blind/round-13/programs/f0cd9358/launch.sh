#!/bin/bash
export GLOO_SOCKET_IFNAME=lo
mkdir -p out
exec $PYTHON run.py --world 3 --out out
