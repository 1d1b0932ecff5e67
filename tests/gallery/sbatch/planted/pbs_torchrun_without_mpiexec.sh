#!/bin/bash
#PBS -N train
#PBS -l select=2:ncpus=64:ngpus=4:mpiprocs=1
#PBS -l place=scatter
#PBS -l walltime=12:00:00
#PBS -q gpu
#PBS -j oe

cd $PBS_O_WORKDIR
module load pytorch/2.5
export MASTER_ADDR=$(head -n 1 $PBS_NODEFILE)
export MASTER_PORT=$((10000 + ${PBS_JOBID%%.*} % 20000))
NNODES=$(sort -u $PBS_NODEFILE | wc -l)
torchrun --nnodes=$NNODES --nproc-per-node=4 --rdzv-id=$PBS_JOBID --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT train.py
