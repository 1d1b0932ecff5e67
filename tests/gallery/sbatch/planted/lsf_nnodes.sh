#!/bin/bash
#BSUB -J train
#BSUB -n 8
#BSUB -R "span[ptile=4]"
#BSUB -gpu "num=4:mode=exclusive_process"
#BSUB -W 12:00
#BSUB -q gpu
#BSUB -o train_%J.out

module load pytorch/2.5
hosts=$(uniq $LSB_DJOB_HOSTFILE)
MASTER_ADDR=$(head -n 1 $LSB_DJOB_HOSTFILE)
blaunch -z "$hosts" torchrun --nnodes=4 --nproc-per-node=4 --rdzv-id=$LSB_JOBID --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$((10000 + LSB_JOBID % 20000)) train.py
