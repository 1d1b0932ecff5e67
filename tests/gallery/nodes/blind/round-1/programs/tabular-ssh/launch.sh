#!/bin/bash
i=0
for host in node1 node2 node3; do
    $CLUSTER_SSH $host "cd /scratch/app && PATH=$PATH OMP_NUM_THREADS=1 MASTER_ADDR=node1 MASTER_PORT=29666 \
        WORLD_SIZE=3 RANK=$i LOCAL_RANK=0 python -u train.py --rows 100000" > rank$i.log 2>&1 &
    i=$((i + 1))
done
wait
