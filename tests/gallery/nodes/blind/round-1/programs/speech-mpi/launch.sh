#!/bin/bash
cat > hostfile <<H
node1 slots=2
node2 slots=2
H
mpirun --allow-run-as-root -np 4 --hostfile hostfile --bind-to none --map-by slot \
    --mca plm_rsh_agent "$CLUSTER_SSH" --mca oob_tcp_if_include eth0 --mca btl self,tcp \
    -x PATH -x OMP_NUM_THREADS=1 -x MASTER_ADDR=node1 -x MASTER_PORT=29622 -wdir "$PWD" \
    python train_ctc.py --fbank-dir /scratch/fbank
