"""gpu_node.yml and verify.yml on real hosts: what they make, what they leave alone, and what they refuse."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ssh_hosts import Host, Played, Site, free_port, make_key


@pytest.fixture(scope="module")
def first(site: Site) -> Played:
    """The nodes' first run."""
    return site.play("gpu_node.yml")


@pytest.fixture
def nodes(site: Site, first: Played) -> tuple[Host, ...]:
    """Configured nodes."""
    assert first.code == 0, first.output
    return site.hosts


def changed_handover(site: Site, **parts: Any) -> dict[str, Any]:
    return {**site.handover, **parts}


def test_a_configured_node_knows_itself_and_is_ready(site: Site, nodes: tuple[Host, ...]) -> None:
    for host, told in zip(nodes, site.handover["nodes"], strict=True):
        facts = host.json("etc/gpufleet/node.json")
        assert facts["node"] == {"name": told["name"], "group": told["group"]}
        assert facts["cluster"] == {"stack": "test", "cloud": "local", "region": None}
        assert facts["storage"] == site.handover["storage"]
        assert facts["limits"]["applied"] is False
        assert "belong to the computer" in facts["limits"]["reason"]
        assert (host.package / "training/jobs/mnist.toml").read_text() == 'name = "mnist"\n'
        assert host.ready["ready"], host.ready


def test_no_connection_outlives_a_play(site: Site, nodes: tuple[Host, ...]) -> None:
    assert list(site.sockets.iterdir()) == []


def test_a_second_run_changes_nothing(site: Site, nodes: tuple[Host, ...]) -> None:
    second = site.play("gpu_node.yml")

    assert second.code == 0, second.output
    assert second.changed == 0, second.output
    assert all(host.ready["ready"] for host in nodes)


def test_check_mode_is_clean_on_a_configured_node(site: Site, nodes: tuple[Host, ...]) -> None:
    before = nodes[0].ready

    checked = site.play("gpu_node.yml", "--check", "--limit", "node-1")

    assert (checked.code, checked.changed) == (0, 0), checked.output
    assert nodes[0].ready == before


def test_damage_is_healed_by_the_next_run(site: Site, nodes: tuple[Host, ...]) -> None:
    package = nodes[0].package.resolve().name
    nodes[0].facts.write_text('{"node": {"name": "somebody else"}}')
    shutil.rmtree(nodes[0].package.resolve())
    nodes[1].package.unlink()
    nodes[1].package.symlink_to("/")
    (nodes[1].prefix / "opt/gpufleet" / package / "training/__init__.py").write_text("raise SystemExit\n")

    healed = site.play("gpu_node.yml")

    assert healed.code == 0, healed.output
    for host, told in zip(nodes, site.handover["nodes"], strict=True):
        assert host.json("etc/gpufleet/node.json")["node"]["name"] == told["name"]
        assert host.package.readlink() == Path(package)
        assert (host.package / "training/__init__.py").read_text() == '"""A package."""\n'


@pytest.mark.drill
def test_a_new_training_package_takes_the_place_of_the_old(site: Site, nodes: tuple[Host, ...]) -> None:
    old = nodes[0].package.resolve()
    (site.training / "news.py").write_text("x = 1\n")

    played = site.play("gpu_node.yml", "--limit", "node-1")

    assert played.code == 0, played.output
    assert (nodes[0].package / "training/news.py").is_file()
    assert not old.exists()


def test_a_wrong_host_key_is_refused(site: Site, nodes: tuple[Host, ...], tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    make_key(tmp_path / "other")
    other = (tmp_path / "other.pub").read_text()
    known.write_text("".join(f"[{host.address}]:{host.port} {other}" for host in nodes))
    access = {**site.handover["access"], "known_hosts_file": str(known)}

    played = site.play("verify.yml", handover=changed_handover(site, access=access))

    assert played.code != 0
    assert all(counts["unreachable"] == 1 for counts in played.recap.values())
    assert "Host key verification failed" in played.output


def test_verify_fails_closed_with_its_reason(site: Site, nodes: tuple[Host, ...]) -> None:
    broken = changed_handover(site, environment={"python": "/nowhere/python", "shared": True})

    played = site.play("verify.yml", handover=broken)

    assert played.code != 0
    assert "environment: /nowhere/python: No such file or directory" in played.output
    reports = [json.loads((site.folder / f"handover.reports/{host.name}.json").read_text()) for host in nodes]
    assert reports == [{"node": told, **host.ready} for told, host in zip(broken["nodes"], nodes, strict=True)]
    assert [report["ready"] for report in reports] == [False, False]


# An interpreter that says nonsense on the first node, in the place of the program that looks whether a node is at work,
# or of the one that measures; the figures of the other node are these.
FIGURES = {"ranks": 2, "gb_per_s": 1.0, "moved_mb": 2.0, "must_move_mb": 1.0, "over": "lo"}
LIAR = """#!/bin/sh
case $HOME in */node-1/home) said=nonsense ;; *) said='{figures}' ;; esac
if [ "$1" = - ]; then
  cat > /dev/null
  echo "$said"
elif [ "$1" = -I ]; then
  given=$(cat)
  case $said$given in nonsense*probe_gpus.py*) echo "$said" ;; *) printf "%s" "$given" | exec {python} "$@" ;; esac
else
  exec {python} "$@"
fi
"""


@pytest.mark.parametrize(
    ("lies", "reason"),
    [("look", "this node does not say whether it is at work"), ("measure", "this node does not say what it measured")],
)
def test_a_node_that_answers_no_json_fails_alone_in_an_all_reduce(
    site: Site, nodes: tuple[Host, ...], tmp_path: Path, lies: str, reason: str
) -> None:
    liar = tmp_path / "python"
    liar.write_text(LIAR.format(python=sys.executable, figures=json.dumps(FIGURES)))
    liar.chmod(0o755)
    python = {"ansible_python_interpreter": str(liar)} if lies == "look" else {}
    environment = {"python": str(liar) if lies == "measure" else sys.executable, "shared": True}
    told = changed_handover(site, environment=environment)
    port = free_port(nodes[1].address)

    played = site.play("verify.yml", handover=told, all_reduce_wanted=True, all_reduce_port=port, **python)

    assert played.code != 0
    seen = [{check["name"]: check["detail"] for check in host.ready["checks"]}["all_reduce"] for host in nodes]
    assert reason in seen[0], played.output
    assert seen[1].startswith("1 rank" if lies == "look" else "2 ranks"), played.output
    assert [host.ready["ready"] for host in nodes] == [False, True]


@pytest.mark.drill
def test_a_missing_environment_is_named_with_its_remedy(site: Site, nodes: tuple[Host, ...]) -> None:
    broken = changed_handover(site, environment={"python": "/nowhere/python", "shared": True})

    played = site.play("gpu_node.yml", "--limit", "node-1", handover=broken)

    assert played.code != 0
    assert "environment: /nowhere/python: no such program: run `make setup`" in played.output


def test_preflight_names_every_shortage_at_once_and_the_node_is_no_longer_ready(
    site: Site, nodes: tuple[Host, ...]
) -> None:
    (nodes[0].prefix / "var/lib/gpufleet/ready.json").write_text('{"ready": true, "checks": []}')

    played = site.play("gpu_node.yml", "--limit", "node-1", preflight_memory_gib=1e6, preflight_disk_gib=1e6)

    assert played.code != 0
    assert "needs at least 1000000.0 GiB: choose a larger machine" in played.output
    assert "needs at least 1000000.0 GiB: free some or choose a larger disk" in played.output
    assert nodes[0].ready["ready"] is False
    assert nodes[0].ready["checks"][0]["detail"] == "gpu_node.yml has not finished on it"


def test_machines_of_this_computer_take_even_turns_of_at_most_two_a_core(site: Site) -> None:
    node, most = site.handover["nodes"][0], 2 * int(subprocess.check_output(["nproc"]))
    silent = {**node, "prefix": "/", "port": free_port(node["address"])}
    machines = changed_handover(site, nodes=[{**silent, "name": f"machine-{n}"} for n in range(most + 1)])
    fewer = ("--limit", f"gpu_nodes:!machine-{most}")

    here = site.play("gpu_node.yml", handover=machines)  # where a whole turn fails, as here, there is no other
    limited = site.play("gpu_node.yml", *fewer, handover=machines)
    asked = site.play("gpu_node.yml", handover=machines, gpu_node_at_once="100%")
    elsewhere = site.play("gpu_node.yml", handover={**machines, "cloud": "machines"})

    turns = [len(played.recap) for played in (here, limited, asked, elsewhere)]
    assert turns == [math.ceil((most + 1) / 2), most, most + 1, most + 1]


@pytest.mark.parametrize(
    ("playbook", "setting"),
    [
        ("gpu_node.yml", "gpu_node_at_once"),
        ("upgrade.yml", "upgrade_at_once"),
        ("rollback.yml", "upgrade_at_once"),
    ],
)
@pytest.mark.parametrize("number", ["0", "few"])
def test_no_node_is_touched_where_it_is_unclear_how_many_at_once(
    site: Site, playbook: str, setting: str, number: str
) -> None:
    settings: dict[str, Any] = {setting: number}

    played = site.play(playbook, **settings)

    assert played.recap == {}
    assert f"-e {setting}={number} is no number of nodes" in played.output
