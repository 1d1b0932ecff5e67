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
export MASTER_ADDR
mpirun -n 8 bash -c 'RANK=$SLURM_PROCID python train.py'
