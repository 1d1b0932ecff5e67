def before(rig):
    """On node2 the cluster's network is ens5, and eth0 is the management one."""
    host = rig.host("node2")
    ip = lambda *words: host.run("ip", *words)
    ip("link", "set", "eth0", "down")
    assert ip("link", "set", "eth0", "name", "ens5").returncode == 0
    ip("link", "set", "ens5", "up")
    ip("route", "add", "default", "via", host.bridge.address)
    made = ip("link", "add", "eth0", "type", "veth", "peer", "name", "ipmi0")
    assert made.returncode == 0, made.stderr
    ip("addr", "add", "10.0.50.2/24", "dev", "eth0")
    ip("link", "set", "ipmi0", "up")
    ip("link", "set", "eth0", "up")
