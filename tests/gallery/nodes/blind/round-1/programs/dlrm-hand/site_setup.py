def before(rig):
    """The switch port of node4 has gone bad: every frame takes long."""
    rig.host("node4").delayed(70)
