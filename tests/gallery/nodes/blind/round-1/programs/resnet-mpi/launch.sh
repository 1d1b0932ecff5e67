#!/bin/bash
export MASTER_ADDR=node1 MASTER_PORT=29611
export GLOO_SOCKET_IFNAME=eth0
mpirun --allow-run-as-root -np 3 -H node1:1,node2:1,node3:1 -bind-to none -map-by slot \
    --mca plm_rsh_agent "$CLUSTER_SSH" --mca oob_tcp_if_include 10.213.196.0/24 --mca btl self,tcp \
    -x PATH -x OMP_NUM_THREADS -x MASTER_ADDR -x MASTER_PORT -x GLOO_SOCKET_IFNAME -wdir "$PWD" \
    python main.py --model resnet18 --epochs 90
