def before(rig):
    """The data was copied to each node's own disk; the copy to node2 ended early."""
    code = ("import numpy as np, pathlib, sys; p = pathlib.Path('/scratch/laion'); p.mkdir(); "
            "[np.savez(p / f'shard-{i:03d}.npz', image=np.random.rand(32, 3, 16, 16).astype('f4'), text=np.random.randint(0, 300, (32, 8))) "
            "for i in range(int(sys.argv[1]))]")
    for name, count in (("node1", 24), ("node2", 20)):
        done = rig.call(rig.host(name), f'python -c "{code}" {count}')
        assert done.returncode == 0, done.stderr
