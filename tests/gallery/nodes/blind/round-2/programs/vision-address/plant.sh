echo 'export MASTER_ADDR=node2 NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0' > /run/cluster.env
