from pathlib import Path


def before(rig):
    """Each node has its own copy under /scratch/app; the last rsync did not reach node2."""
    for name in ("node1", "node2", "node3"):
        host = rig.host(name)
        done = rig.call(host, "mkdir -p /scratch/app && cp -r app/* /scratch/app/")
        assert done.returncode == 0, done.stderr
    old = Path(rig.run_dir / "before-rsync")
    assert rig.call(rig.host("node2"), "cp before-rsync/* /scratch/app/ && touch -d '2026-10-02 09:11' /scratch/app/*.py").returncode == 0
    rig.call(rig.host("node1"), "rm -rf before-rsync")
