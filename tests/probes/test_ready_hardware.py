"""Checks of hardware that is not here: trees of /proc, /sys and /dev below another root, and a
program in the place of nvidia-smi.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.probes.conftest import PROBES, RunProbe
from tests.probes.test_ready_checks import check, states, values

GPU = """<gpu id="00000000:{bus:02X}:00.0"><product_name>NVIDIA H100 80GB HBM3</product_name><uuid>GPU-{bus}</uuid>
<persistence_mode>Enabled</persistence_mode><mig_mode><current_mig>Disabled</current_mig></mig_mode>
<gpu_recovery_action>None</gpu_recovery_action><compute_mode>Default</compute_mode>
<fabric><state>Completed</state><status>Success</status></fabric>
<pci><pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths></pci_gpu_link_info></pci>
<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown></clocks_event_reasons>
<fb_memory_usage><total>81559 MiB</total><used>5 MiB</used></fb_memory_usage>
<ecc_errors><volatile><sram_correctable>3</sram_correctable><sram_uncorrectable_parity>0</sram_uncorrectable_parity>
<dram_uncorrectable>0</dram_uncorrectable></volatile><aggregate><sram_threshold_exceeded>No</sram_threshold_exceeded></aggregate></ecc_errors>
<remapped_rows><remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
<temperature><gpu_temp>41 C</gpu_temp></temperature>
<applications_clocks><graphics_clock>1980 MHz</graphics_clock></applications_clocks>
<default_applications_clocks><graphics_clock>1980 MHz</graphics_clock></default_applications_clocks><processes></processes></gpu>"""


def tree(root: Path, files: Mapping[str, str]) -> str:
    for path, text in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return str(root)


def smi(folder: Path, gpus: list[str], links: str = "", behaves: str = "") -> str:
    """A program nvidia-smi in a folder of its own; returns a PATH that has it."""
    folder.mkdir(exist_ok=True)
    (folder / "log.xml").write_text(
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM'
        f' "nvsmi_device_v12.dtd">\n<nvidia_smi_log><driver_version>570.1</driver_version>{"".join(gpus)}</nvidia_smi_log>'
    )
    (folder / "links.txt").write_text(links)
    program = folder / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\n{behaves}\ncase "$1" in -q) cat {folder}/log.xml;; *) cat {folder}/links.txt;;'
        " esac\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{folder}:/usr/bin:/bin"


def node(root: Path, cards: int = 2, log: str = "") -> str:
    """A host with GPUs on its PCI bus, their device nodes, and a kernel log."""
    files = {
        f"/sys/bus/pci/devices/0000:{card:02x}:00.0/{name}": text
        for card in range(cards)
        for name, text in (("vendor", "0x10de\n"), ("class", "0x030200\n"))
    }
    files.update({f"/dev/nvidia{card}": "" for card in range(cards)})
    return tree(
        root,
        {
            **files,
            "/dev/nvidiactl": "",
            "/dev/kmsg": log or "6,1,1,-;Linux\n",
            "/proc/uptime": "90000 1\n",
        },
    )


def test_healthy_gpus(run_probe: RunProbe, tmp_path: Path) -> None:
    links = "".join(
        f"GPU {gpu}: NVIDIA H100 (UUID: x)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
        for gpu in range(2)
    )
    path = smi(tmp_path / "bin", [GPU.format(bus=bus) for bus in range(2)], links)
    done = run_probe("devices", "--root", node(tmp_path / "root"), env={"PATH": path})
    told = states(done)
    assert set(told.values()) == {"ok", "skip"}, done.output
    assert [name for name, state in told.items() if state == "skip"] == ["drv.peermem"]
    assert values(done) == {
        "driver.version": "570.1",
        "gpus_per_node": "2",
        "gpu.models": "NVIDIA H100 80GB HBM3",
        "gpu.memory_mib": "81559",
        "gpu.mig": "Disabled",
    }


BROKEN = {
    "drv.persist": ("<persistence_mode>Enabled", "<persistence_mode>Disabled"),
    "drv.recovery": ("<gpu_recovery_action>None", "<gpu_recovery_action>Reboot"),
    "drv.ecc": ("<dram_uncorrectable>0", "<dram_uncorrectable>2"),
    "drv.remap": ("pending>No", "pending>Yes"),
    "drv.fm": ("<state>Completed", "<state>In Progress"),
    "drv.mode": ("<compute_mode>Default", "<compute_mode>Prohibited"),
    "drv.throttle": ("hw_slowdown>Not Active", "hw_slowdown>Active"),
    "drv.clocks": (
        "<graphics_clock>1980 MHz</graphics_clock></applications",
        "<graphics_clock>1200 MHz</graphics_clock></applications",
    ),
    "drv.temp": ("<gpu_temp>41", "<gpu_temp>90"),
    "drv.pcie": ("<current_link_width>16x", "<current_link_width>8x"),
    "drv.memused": ("<used>5 MiB", "<used>40000 MiB"),
}


def test_each_illness_of_a_gpu_is_told_by_its_own_check_and_no_other(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    """All in one document: each GPU has one illness, so that each check must name just one of
    them.
    """
    gpus = [GPU.format(bus=place).replace(*change) for place, change in enumerate(BROKEN.values())]
    assert all(gpu != GPU.format(bus=place) for place, gpu in enumerate(gpus))
    links = "".join(
        f"GPU {gpu}: NVIDIA H100 (UUID: x)\n\t Link 0:"
        f" {'<inactive>' if gpu == 4 else '26.562 GB/s'}\n\t Link 1: 26.562 GB/s\n"
        for gpu in range(len(gpus))
    )
    path = smi(tmp_path / "bin", gpus, links)
    done = run_probe(
        "devices",
        "--root",
        node(tmp_path / "root", len(gpus)),
        env={"PATH": path, "SLURM_GPUS_ON_NODE": "12"},
    )
    for place, name in enumerate(BROKEN):
        told = check(done, name)
        assert told["status"] == ("warn" if name in ("drv.persist", "drv.temp") else "fail"), (
            name,
            told,
        )
        assert len(told["value"]) == 1, told
        assert told["value"][0].startswith(f"GPU {place} (00000000:{place:02X}:00.0)"), told
        assert told["fix"]
    assert "GPU 4 has 1 of 2 NVLinks up" in check(done, "drv.nvlink")["says"]
    assert "SLURM allocated 12, and 11 are there" in check(done, "drv.count")["says"]


XIDS = """4,100,5000000,-;NVRM: Xid (PCI:0000:1b:00): {code}, pid=4711, name=python, {text}
"""


@pytest.mark.parametrize(
    ("code", "text", "state", "fix"),
    [
        (79, "GPU has fallen off the bus.", "fail", "reboot"),
        (95, "Uncontained ECC error", "fail", "--gpu-reset"),
        (31, "MMU Fault", "ok", ""),
        (63, "Row Remapper", "ok", ""),
        (74, "NVLink", "warn", "the XID before it"),
        (999, "new", "warn", "the XID before it"),
        (
            154,
            "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
            "fail",
            "reboot",
        ),
        (154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "ok", ""),
    ],
)
def test_xids_by_the_table(code: int, text: str, state: str, fix: str) -> None:
    sys.path.insert(0, str(PROBES))
    try:
        from _devices import xids  # type: ignore[import-not-found,unused-ignore]  # as the program does
    finally:
        sys.path.remove(str(PROBES))
    bad, worth = xids.worst(xids.found([XIDS.format(code=code, text=text)] * 3))
    assert ("fail" if bad else "warn" if worth else "ok") == state
    assert len(bad + worth) <= 1
    assert not fix or fix in xids.FIX[(bad + worth)[0].action]


def test_names_of_programs_in_the_kernels_log_are_no_illness(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    """A user may call a program what he likes, and have it crash."""
    names = ("EDAC UE", "severity: fatal", "NVRM: Xid (1): ")
    log = "".join(
        f"6,{place},{place},-;{name}[77]: segfault at 0 ip 0 sp 0 error 4\n"
        for place, name in enumerate(names)
    )
    log += (
        "6,9,9,-;oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/user.slice/NVRM: Xid (PCI:0): 79,"
        " x,task=a,pid=7\n"
    )
    root = tree(
        tmp_path / "root",
        {
            "/dev/kmsg": log,
            "/proc/uptime": "90000 1\n",
            "/proc/meminfo": "MemTotal: 1 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
        },
    )
    assert check(run_probe("machine", "--root", root), "host.mce")["status"] == "ok"
    assert check(run_probe("devices", "--root", root), "drv.xid")["status"] == "ok"


@pytest.mark.parametrize(
    ("behaves", "answer", "module"),
    [
        ("sleep 60", "fail", "unknown"),
        (
            "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18",
            "fail",
            "fail",
        ),
        ("echo garbage; exit 0", "fail", "ok"),
    ],
)
def test_a_driver_that_does_not_answer(
    behaves: str, answer: str, module: str, run_probe: RunProbe, tmp_path: Path
) -> None:
    path = smi(tmp_path / "bin", [], behaves=behaves)
    log = XIDS.format(code=79, text="GPU has fallen off the bus.")
    done = run_probe(
        "devices",
        "--root",
        node(tmp_path / "root", log=log),
        env={"PATH": path, "TRAINPROBE_THRESHOLDS": '{"drv.answer": 0.3}'},
    )
    assert (check(done, "drv.answer")["status"], check(done, "drv.module")["status"]) == (
        answer,
        module,
    ), done.output
    assert check(done, "drv.ecc")["status"] == "unknown"  # not measured is not healthy
    assert (check(done, "drv.count")["status"], check(done, "drv.xid")["status"]) == (
        "fail",
        "fail",
    )


def test_an_old_xid_that_a_reset_mends_forbids_nothing(run_probe: RunProbe, tmp_path: Path) -> None:
    """A node would never start a job again; what only a reboot mends holds until then. The host
    is up for 90,000 s, the lines are of second 5.
    """
    path = smi(tmp_path / "bin", [GPU.format(bus=1)])
    for code, state in ((119, "ok"), (79, "fail")):
        root = node(tmp_path / str(code), 1, XIDS.format(code=code, text="of old"))
        assert (
            check(run_probe("devices", "--root", root, env={"PATH": path}), "drv.xid")["status"]
            == state
        )
    longer = run_probe(
        "devices",
        "--root",
        str(tmp_path / "119"),
        env={"PATH": path, "TRAINPROBE_THRESHOLDS": '{"drv.xid": 48}'},
    )
    assert check(longer, "drv.xid")["status"] == "fail"


def port(
    device: str,
    state: str = "4: ACTIVE",
    rate: str = "400 Gb/sec (4X NDR)",
    layer: str = "InfiniBand",
    downs: int = 0,
) -> dict[str, str]:
    top = f"/sys/class/infiniband/{device}/ports/1"
    physical = "5: LinkUp" if "ACTIVE" in state else "3: Disabled"
    return {
        f"{top}/state": state,
        f"{top}/phys_state": physical,
        f"{top}/rate": rate,
        f"{top}/link_layer": layer,
        f"{top}/counters/link_downed": str(downs),
    }


def test_adapters(run_probe: RunProbe, tmp_path: Path) -> None:
    healthy = {**port("mlx5_0"), **port("mlx5_1"), **port("mlx5_2"), "/proc/uptime": "86400 1\n"}
    done = run_probe("network", "--root", tree(tmp_path / "healthy", healthy))
    assert [states(done)[name] for name in ("ib.state", "ib.flap", "ib.gid")] == [
        "ok",
        "ok",
        "skip",
    ]
    assert values(done)["rdma.mlx5_0"] == "ACTIVE InfiniBand 400 Gb/s"
    ill = {
        **healthy,
        **port("mlx5_1", rate="200 Gb/sec (4X HDR)", downs=40),
        **port("mlx5_3", "1: DOWN", downs=1),
    }
    done = run_probe("network", "--root", tree(tmp_path / "ill", ill))
    assert check(done, "ib.state")["status"] == check(done, "ib.flap")["status"] == "fail"
    assert "mlx5_1 runs at 200 of 400 Gb/s" in check(done, "ib.state")["says"]
    assert "mlx5_3 port 1 is DOWN/Disabled and was up before" in check(done, "ib.state")["says"]
    assert values(done)["rdma.ports"] == 3
    done = run_probe(
        "network", "--root", str(tmp_path / "ill"), env={"NCCL_IB_HCA": "^mlx5_1,mlx5_3"}
    )
    assert check(done, "ib.state")["status"] == "ok"
    usual = {
        **healthy,
        **port("mlx5_3", rate="200 Gb/sec (4X HDR)"),
        **port("mlx5_4", "1: DOWN"),
    }  # one for storage, one without a cable
    root = tree(tmp_path / "usual", usual)
    for env, state in (
        ({}, "warn"),
        ({"NCCL_IB_HCA": "mlx5_4"}, "fail"),
        ({"TRAINPROBE_THRESHOLDS": '{"ib.state": 5}'}, "fail"),
    ):
        assert check(run_probe("network", "--root", root, env=env), "ib.state")["status"] == state
    roce = {
        **port("mlx5_0", layer="Ethernet"),
        "/sys/class/infiniband/mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001",
    }
    roce["/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0"] = "IB/RoCE v1"
    done = run_probe("network", "--root", tree(tmp_path / "roce", roce))
    assert check(done, "ib.gid")["status"] == "fail"


def test_a_machine_with_every_illness_that_its_kernel_tells(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    root = tree(
        tmp_path / "root",
        {
            "/proc/uptime": "100 1\n",
            "/proc/sys/kernel/osrelease": "4.18.0-553.el8\n",
            "/proc/meminfo": (
                "MemTotal: 100000000 kB\nSwapTotal: 50000000 kB\nSwapFree: 10000000"
                " kB\nHugePages_Free: 40000\nHugepagesize: 2048 kB\n"
            ),
            "/proc/sys/vm/max_map_count": "1000\n",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 50000000 kB\n",
            "/sys/devices/system/node/node0/cpulist": "0-15\n",
            "/sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 0 kB\n",
            "/sys/devices/system/node/node1/cpulist": "16-31\n",
            "/sys/devices/system/edac/mc/mc0/ue_count": "2\n",
            "/dev/kmsg": (
                "2,1,1,-;mce: [Hardware Error]: CPU 3: Machine Check: Uncorrected\n6,2,2,-;mce:"
                " CPU0: using 20 MCE banks\n"
            ),
        },
    )
    told = states(run_probe("machine", "--root", root))
    ill = {name for name, state in told.items() if state in ("warn", "fail")}
    assert ill >= {
        "host.kernel",
        "host.uptime",
        "host.swap",
        "host.memory",
        "host.clock",
        "host.governor",
        "host.numa",
        "host.mce",
        "lim.sysctl",
    }
    assert told["host.mce"] == "fail"
    assert not ill & {"host.procstate", "host.thp", "host.virt"}
    nothing = states(run_probe("machine", "--root", str(tmp_path / "nothing")))
    assert nothing["host.mce"] == "unknown"  # what may not be read is not healthy
    assert "fail" not in nothing.values()


RULES = [
    ("eth", ["eth0", "eth1"]),
    ("=eth", []),
    ("=eth1", ["eth1"]),
    ("^eth", ["ib0", "docker0", "lo"]),
    ("^=eth0", ["ib0", "eth1", "docker0", "lo"]),
    ("eth1:2,ib", ["ib0", "eth1"]),
]


@pytest.mark.parametrize(("rule", "names"), RULES)
def test_nccls_rule_for_interfaces(rule: str, names: list[str]) -> None:
    sys.path.insert(0, str(PROBES))
    try:
        from _network import interfaces  # type: ignore[import-not-found,unused-ignore]  # as the program does
    finally:
        sys.path.remove(str(PROBES))
    on = interfaces.UP | interfaces.RUNNING
    rows = [
        interfaces.Interface("eth9", "10.9.0.1", "10.9.0.0/24", interfaces.UP),  # no carrier
        interfaces.Interface("ib0", "10.0.0.1", "10.0.0.0/24", on),
        interfaces.Interface("eth0", "fe80::1", "fe80::/64", on),
        interfaces.Interface("eth1", "10.1.0.1", "10.1.0.0/24", on),
        interfaces.Interface("docker0", "172.17.0.1", "172.17.0.0/16", on),
        interfaces.Interface("lo", "127.0.0.1", "127.0.0.0/8", on | interfaces.LOOPBACK),
    ]
    assert [one.name for one in interfaces.matching(rule, rows)] == names
    assert interfaces.nccl(rows, {})[0][0].name == "ib0"
    assert interfaces.nccl(rows[3:], {})[0][0].name == "eth1"
    assert interfaces.nccl(rows[4:], {})[0][0].name == "docker0"
    assert interfaces.nccl(rows[5:], {})[0][0].name == "lo"
    taken = [
        interfaces.gloo(rows, {"GLOO_SOCKET_IFNAME": "eth1,ib0"}, []),
        interfaces.gloo(rows, {}, ["10.0.0.1"]),
        interfaces.gloo(rows, {}, ["192.0.2.1"]),
    ]
    assert [one.address for one in taken if one] == ["10.1.0.1", "10.0.0.1", "127.0.0.1"]


def test_mounts_that_fstab_plans_and_caches_on_the_network(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    data, scratch = tmp_path / "my data", tmp_path / "scratch"
    data.mkdir()
    scratch.mkdir()
    planned = str(data).replace(" ", "\\040")
    mounted = (
        f"21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n30 21 0:44 / {scratch} rw,relatime - nfs4"
        " server:/scratch rw,vers=4.2\n"
    )
    fstab = (
        f"# a comment\nserver:/data {planned} nfs defaults 0 0\nserver:/old /old nfs noauto 0 0\n"
    )
    root = tree(tmp_path / "root", {"/proc/self/mountinfo": mounted, "/etc/fstab": fstab})
    done = run_probe(
        "storage",
        "--root",
        root,
        env={"TRAINPROBE_PATHS": f"{data}:{scratch}", "TMPDIR": str(scratch)},
    )
    assert check(done, "fs.mounts")["status"] == "fail"
    assert (
        f"{data} should lie on {data} (nfs), which is not mounted"
        in check(done, "fs.mounts")["says"]
    )
    assert "/old" not in check(done, "fs.mounts")["says"]
    assert (
        f"TMPDIR={scratch} (nfs4 server:/scratch at {scratch})" in check(done, "fs.cache")["says"]
    )
    told = values(done)
    assert (told[f"mount.{data}"], told[f"mount.{scratch}"]) == (
        "ext4 at /",
        f"nfs4 server:/scratch at {scratch}",
    )
    unnamed = run_probe("storage", "--root", root)
    assert (
        check(unnamed, "fs.mounts")["status"] == "warn"
    )  # planned and not there, and the job does not need it


def test_quotas_as_their_tools_tell_them(run_probe: RunProbe, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "quota"
    program.write_text(
        "#!/bin/sh\ncat <<'END'\nDisk quotas for user me (uid 1000):\n     Filesystem  blocks  "
        " quota   limit   grace   files   quota   limit   grace\nserver:/home 9500000* 9000000"
        " 10000000       0    1200       0       0       0\n/dev/sdb1    1000 0 0 0 10 0 100"
        " 0\nEND\n"
    )
    program.chmod(0o755)
    done = run_probe("storage", env={"PATH": f"{folder}:/usr/bin:/bin"})
    assert check(done, "fs.quota")["value"] == ["server:/home is 106% used"]


def test_hundreds_of_nodes_do_not_all_ask_for_all_names() -> None:
    sys.path.insert(0, str(PROBES))
    try:
        from _network import name_checks  # type: ignore[import-not-found,unused-ignore]  # as the program does
    finally:
        sys.path[:] = [
            entry for entry in sys.path if entry != str(PROBES)
        ]  # _emit takes it off by itself
    nodes = tuple(f"node{number}" for number in range(1, 513))
    asked = {own: name_checks.sample(nodes, own) for own in nodes}
    assert max(len(names) for names in asked.values()) == 32
    assert all(
        own not in names and (own == "node1" or names[0] == "node1") for own, names in asked.items()
    )
    assert {name for names in asked.values() for name in names} == set(nodes)
    assert name_checks.sample(("a", "b.site", "c"), "b") == ["a", "c"]
    assert name_checks.sample((), "b") == []
