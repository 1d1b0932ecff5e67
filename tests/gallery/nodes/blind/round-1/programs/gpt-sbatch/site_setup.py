def before(rig):
    """firewalld of node2 lets ssh, SLURM and the rendezvous in, and no other new connection."""
    rig.host("node2").takes_no_new("20000-65535")
