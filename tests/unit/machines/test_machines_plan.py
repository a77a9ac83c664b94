"""Own machines, decided: the order of ranks, what NCCL is told, and what the handover tells."""

from __future__ import annotations

from pathlib import Path

from own_machines import TRAINER, Project, shipped

from infra.clouds.machines.resources import cluster_handover
from infra.graph import plan_document
from infra.handover import Handover

ROOT = Path("/project")


def test_ranks_are_counted_rack_by_rack_whatever_the_order_of_the_file(machines: Project) -> None:
    cluster = shipped()
    a1, a2, b1, b2 = cluster["nodes"][TRAINER]["hosts"]
    cluster["nodes"][TRAINER]["hosts"] = [b2, a1, b1, a2]

    names = [node.name for node in machines.plan(cluster).groups[TRAINER].nodes]

    assert names == ["dgx-b2", "dgx-b1", "dgx-a1", "dgx-a2"]


def test_infiniband_tells_nccl_its_rails_and_the_index_of_its_partition(machines: Project) -> None:
    rdma = machines.plan(shipped()).groups[TRAINER].rdma

    assert rdma is not None
    assert rdma.nccl == {
        "NCCL_IB_HCA": "=mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11",
        "NCCL_CROSS_NIC": "0",
        "NCCL_IB_PKEY": "1",
    }
    assert (rdma.partition_key, rdma.partition_index) == ("0x8012", 1)


def test_roce_tells_nccl_its_gid_and_traffic_class(machines: Project) -> None:
    cluster = shipped()
    cluster["nodes"][TRAINER]["fabric"] = {
        "kind": "roce",
        "hcas": ["mlx5_0"],
        "gbits": 400,
        "gid_index": 3,
        "traffic_class": 106,
    }

    rdma = machines.plan(cluster).groups[TRAINER].rdma

    assert rdma is not None
    assert (rdma.link_layer, rdma.nccl["NCCL_IB_GID_INDEX"], rdma.nccl["NCCL_IB_TC"]) == ("Ethernet", "3", "106")


def test_the_handover_tells_hosts_as_they_are_and_their_ports(machines: Project) -> None:
    handover = cluster_handover(machines.plan(shipped()), ROOT)

    assert [(node.name, node.address, node.prefix) for node in handover.nodes][:2] == [
        ("login", "10.60.0.10", "/"),
        ("dgx-a1", "10.60.1.11", "/"),
    ]
    assert (handover.store.host, handover.store.address) == ("head", "10.60.0.10")
    trainer = handover.groups[TRAINER]
    assert trainer.rdma is not None
    assert (trainer.rdma.gbits, len(trainer.rdma.hcas)) == (400, 8)
    assert trainer.variables["NCCL_IB_PKEY"] == "1"
    assert Handover.model_validate(handover.to_json()) == handover


def test_without_a_head_the_controlling_computer_runs_the_store(machines: Project) -> None:
    cluster = shipped()
    del cluster["nodes"][0]
    cluster["access"]["control"] = "10.60.0.5"

    handover = cluster_handover(machines.plan(cluster), ROOT)

    assert (handover.store.host, handover.store.address) == ("control", "10.60.0.5")


def test_the_handover_tells_the_hosts_whom_their_packet_filters_let_log_in(machines: Project) -> None:
    cluster = shipped()
    cluster["access"]["ssh_from"] = ["10.60.0.0/24", "192.0.2.0/24"]

    plan = machines.plan(cluster)

    assert plan.errors == ()
    assert cluster_handover(plan, ROOT).access.ssh_from == ("10.60.0.0/24", "192.0.2.0/24")
    assert cluster_handover(machines.plan(shipped()), ROOT).access.ssh_from == ()


def test_the_handover_tells_the_hosts_what_to_make_of_their_disks(machines: Project) -> None:
    cluster = shipped()
    cluster["nodes"][TRAINER]["disks"] = [
        {"name": "scratch", "mount": "/scratch", "devices": ["/dev/nvme1n1", "/dev/nvme2n1"]},
        {"name": "kept", "mount": "/kept", "devices": ["/dev/disk/by-id/nvme-eui.0025"], "encrypted": True},
    ]

    plan = machines.plan(cluster)
    scratch, disks = cluster_handover(plan, ROOT).groups[TRAINER].disks

    assert plan.errors == ()
    assert (scratch.count, scratch.raid_level, scratch.chunk_kib, scratch.encrypted) == (2, 0, 512, False)
    assert (disks.count, disks.raid_level, disks.devices, disks.encrypted) == (
        1,
        None,
        ("/dev/disk/by-id/nvme-eui.0025",),
        True,
    )


def test_nothing_but_a_name_is_declared(machines: Project) -> None:
    machines.plan(shipped())

    document = plan_document(machines.root, "x")

    assert [row["custom"] for row in document["resources"]] == [False, False]  # the stack and the cluster
    assert document["cost"]["hourly"] == 0.0


def test_a_given_interpreter_is_shared_and_another_is_made(machines: Project) -> None:
    environment = cluster_handover(machines.plan(shipped()), ROOT).environment
    given = cluster_handover(machines.plan({**shipped(), "python": "/shared/venv/bin/python"}), ROOT).environment

    assert (environment.python, environment.shared) == ("/opt/gpufleet/venv/bin/python", False)
    assert (given.python, given.shared) == ("/shared/venv/bin/python", True)
