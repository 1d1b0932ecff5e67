#!/bin/bash
# bring the cluster up, then run the driver on the head node
ulimit -n 65536
ray start --head --node-ip-address $(getent hosts node1 | cut -d' ' -f1) --port 6379 --num-cpus 2 \
    --object-store-memory 80000000 --include-dashboard=false --disable-usage-stats
$CLUSTER_SSH node2 "export PATH=$PATH OMP_NUM_THREADS=1; ray start --address node1:6379 --node-ip-address \$(getent hosts node2 | cut -d' ' -f1) --num-cpus 2 --object-store-memory 80000000 --disable-usage-stats"
export RAY_DEDUP_LOGS=0
python driver.py --workers 4 --epochs 30
