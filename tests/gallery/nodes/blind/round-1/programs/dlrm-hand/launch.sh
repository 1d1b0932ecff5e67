#!/bin/bash
# parallel start by hand, one torchrun a node
n=0
for host in node1 node2 node4; do
    $CLUSTER_SSH $host "cd $PWD && PATH=$PATH OMP_NUM_THREADS=1 torchrun --nnodes 3 --node-rank $n --nproc-per-node 1 \
        --master-addr node1 --master-port 29688 dlrm.py" > $host-out.log 2>&1 &
    n=$((n + 1))
done
wait
