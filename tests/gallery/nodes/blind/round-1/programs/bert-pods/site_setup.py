def before(rig):
    """The service's name: node2's resolver still has the pod of an earlier run."""
    good = f"{rig.host('node1').address} bert-pretrain-master-0\n"
    for name in ("node1", "node3"):
        rig.names(rig.host(name), good)
    rig.names(rig.host("node2"), f"{rig.host('node4').address} bert-pretrain-master-0\n")
