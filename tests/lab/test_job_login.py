"""Jobs on a machine run as a login of their own: what a hostile one tries there, and what it may do."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import lone_machine
import pytest
from gpu_machines import LINE_SECONDS
from ssh_hosts import Site

from infra.clouds.local.nodes.site import MACHINE_UID, MACHINE_USER
from infra.handover import Handover
from ops.errors import CommandError
from ops.jobs import rendezvous
from ops.jobs import ssh as jobs
from ops.jobs.runs import Run
from ops.nodes import ssh

JOB = "gpufleet-job"
OLD_RUN = "/data/runs/old-1/checkpoints/step-5"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A machine as an earlier version left it: jobs ran as the operator, who owns their folders."""
    with lone_machine.running(tmp_path_factory.mktemp("j")) as site:
        root_says(
            site,
            f"install -d -o {MACHINE_USER} -g {MACHINE_USER} /var/lib/gpufleet /var/lib/gpufleet/jobs",
            "ln -s /etc/hostname /var/lib/gpufleet/proven.json && chown -h ops: /var/lib/gpufleet/proven.json",
            f"sudo -u {MACHINE_USER} mkdir -p {OLD_RUN}",
            f"sudo -u {MACHINE_USER} sh -c 'echo weights > {OLD_RUN}/rank-0'",
            f"sudo -u {MACHINE_USER} ln -s /etc/passwd {OLD_RUN}/link",
            f"sudo -u {MACHINE_USER} mkfifo {OLD_RUN}/pipe",
            "cp -p /data/runs/old-1/checkpoints/step-5/rank-0 /data/secret",
            f"ln /data/secret {OLD_RUN}/hard",
        )
        yield site


def ran(site: Site, line: str, given: str = "") -> subprocess.CompletedProcess[str]:
    told = Handover.model_validate(site.handover)
    return ssh.run(told, told.nodes[0], line, given, seconds=LINE_SECONDS)


def root_says(site: Site, *lines: str) -> str:
    answer = ran(site, f"sudo sh -ec {shlex.quote('; '.join(lines))}")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def job_tries(site: Site, line: str) -> subprocess.CompletedProcess[str]:
    """A shell line of a job, started as `gpufleet train` starts a launcher."""
    told = Handover.model_validate(site.handover)
    program = f"import subprocess, sys; sys.exit(subprocess.run(['sh', '-c', {line!r}]).returncode)"
    return ran(site, rendezvous.python(told, told.nodes[0], ["-c", program]))


@pytest.fixture(scope="module")
def configured(site: Site) -> Site:
    root_says(site, "sh -c 'GPUFLEET_SECRET=of-root sleep 3600 > /dev/null 2>&1 &'")
    ran(site, "GPUFLEET_SECRET=of-ops nohup sleep 3600 > /dev/null 2>&1 &")
    played = site.play("gpu_node.yml")
    assert played.code == 0, played.output
    return site


def test_a_second_run_changes_nothing(configured: Site) -> None:
    second = configured.play("gpu_node.yml")

    assert (second.code, second.changed) == (0, 0), second.output


def test_a_job_has_a_login_of_its_own_with_no_other_group(configured: Site) -> None:
    answer = job_tries(configured, "id -un; id -Gn; pwd; echo $HOME; stat -c '%a %U' $HOME; umask")

    assert answer.stdout.split() == [JOB, JOB, f"/home/{JOB}", f"/home/{JOB}", "700", JOB, "0022"], answer.stderr


ATTACKS = (
    "id",
    "echo {} > /var/lib/gpufleet/ready.json",
    "rm /var/lib/gpufleet/ready.json",
    "touch /var/lib/gpufleet/x",
    "touch /var/lib/gpufleet/jobs/x",
    "echo {} > /etc/gpufleet/node.json",
    "touch /etc/gpufleet/x",
    "touch /opt/gpufleet/x",
    "echo > /opt/gpufleet/current/training/__init__.py",
    "touch /usr/local/lib/gpufleet/x",
    f"ls /home/{MACHINE_USER}",
    f"cat /home/{MACHINE_USER}/.ssh/authorized_keys",
    "cat /etc/shadow",
    "cat /proc/1/environ",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_job_fails_by_itself_and_with_sudo(configured: Site, attack: str) -> None:
    become = f"sudo -n sh -c {shlex.quote(attack)}"

    by_itself, with_sudo = job_tries(configured, attack), job_tries(configured, become)

    assert with_sudo.returncode != 0, with_sudo.stdout
    assert "sudo: " in with_sudo.stderr
    assert attack == "id" or by_itself.returncode != 0


def test_a_job_may_not_ask_the_container_engine_for_anything(configured: Site) -> None:
    serve = "import os, socket; socket.socket(socket.AF_UNIX).bind('/run/docker.sock')"
    root_says(configured, "groupadd -f docker", f"gpasswd -a {MACHINE_USER} docker", f'python3 -c "{serve}"')
    root_says(configured, "chgrp docker /run/docker.sock", "chmod 660 /run/docker.sock")
    ask = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"/run/docker.sock\")'"

    of_operator, of_job = ran(configured, ask), job_tries(configured, ask)
    root_says(configured, "rm /run/docker.sock", "groupdel docker")

    assert "ConnectionRefusedError" in of_operator.stderr, "nobody listens, but it may knock"
    assert "PermissionError" in of_job.stderr


def test_a_job_sees_no_process_and_no_environment_of_others(configured: Site) -> None:
    others = root_says(configured, "pgrep -x sleep").split()
    line = f"for p in {' '.join(others)} 1; do cat /proc/$p/environ /proc/$p/cmdline; done; ls /proc | grep -c '^[0-9]'"

    answer = job_tries(configured, line)

    assert len(others) == 2
    assert answer.stderr.count("No such file or directory") == 6
    assert "of-" not in answer.stdout
    seen, all_of_them = int(answer.stdout), int(root_says(configured, "ls /proc | grep -c '^[0-9]'"))
    assert seen < 10 < all_of_them


def test_services_that_ask_of_whom_a_process_is_still_see_it(configured: Site) -> None:
    line = "grep Groups /proc/$(pgrep -x systemd-logind)/status; getent group gpufleet-procs; loginctl list-sessions"

    groups, entry, *_ = root_says(configured, line).splitlines()

    assert entry.split(":")[2] in groups.split()


def test_nobody_logs_in_as_the_login_of_jobs_whatever_it_puts_into_its_home(configured: Site) -> None:
    told = Handover.model_validate(configured.handover)
    public = (configured.folder / "key.pub").read_text().strip()
    planted = job_tries(configured, f"umask 077; mkdir -p ~/.ssh; echo {shlex.quote(public)} > ~/.ssh/authorized_keys")
    intruder = told.model_copy(update={"access": told.access.model_copy(update={"user": JOB})})

    answer = ssh.run(intruder, intruder.nodes[0], "id")

    assert planted.returncode == 0, planted.stderr
    assert (answer.returncode, answer.stdout) == (255, "")


def test_a_job_writes_where_jobs_write_and_reads_its_file(configured: Site) -> None:
    ran(configured, "umask 027; cat > /var/lib/gpufleet/jobs/a.toml", "steps = 1\n")

    answer = job_tries(configured, "cat /var/lib/gpufleet/jobs/a.toml; mkdir -p /data/runs/a /var/lib/gpufleet/runs/a")

    assert (answer.returncode, answer.stdout) == (0, "steps = 1\n"), answer.stderr
    assert root_says(configured, "stat -c %a.%U /var/lib/gpufleet/jobs /data/runs").split() == [
        f"2750.{MACHINE_USER}",
        f"750.{JOB}",
    ]


def test_a_run_of_an_earlier_version_changes_hands_but_nothing_that_its_links_lead_to(configured: Site) -> None:
    owners = root_says(
        configured,
        f"cd {OLD_RUN}",
        "stat -c %U /data/runs/old-1 . rank-0 link pipe /data/secret /etc/passwd /etc/hostname",
        "ls -A /var/lib/gpufleet",
        "find /var/lib/gpufleet -maxdepth 1 -type l",
    )

    assert owners.split() == [
        *(JOB, JOB, JOB, MACHINE_USER, MACHINE_USER, MACHINE_USER, "root", "root"),
        *("jobs", "ready.json", "runs"),
    ]


@pytest.mark.parametrize("planted", ["ln -s /etc/shadow", "ln -s /dev/zero", "mkfifo", "mkdir"])
def test_a_result_that_leads_elsewhere_is_not_fetched(configured: Site, tmp_path: Path, planted: str) -> None:
    told, run = Handover.model_validate(configured.handover), Run(tmp_path)
    (tmp_path / "place").write_text(f"planted-{os.urandom(4).hex()}")
    file = f"/data/runs/{run.place}/metrics.jsonl"
    job_tries(configured, f"mkdir -p $(dirname {file}) && {planted} {file}")

    with pytest.raises(CommandError, match=f"^cannot fetch {file} from box-1"):
        jobs._fetch(told, told.nodes[0], run)

    assert [file.name for file in tmp_path.iterdir()] == ["place"]


def test_the_exit_code_standard_input_and_environment_reach_a_job_as_they_are(configured: Site) -> None:
    told = Handover.model_validate(configured.handover)
    program = "import os, sys; print(sys.stdin.read(), os.environ['A'], os.environ['PYTHONPATH']); sys.exit(75)"
    line = rendezvous.python(told, told.nodes[0], ["-c", program], {"A": "it's; $HOME"})

    answer = ran(configured, line, "given")

    package = ran(configured, "readlink -f /opt/gpufleet/current").stdout
    assert (answer.returncode, answer.stdout) == (75, f"given it's; $HOME {package}"), answer.stderr


def test_a_login_that_is_in_a_group_as_good_as_root_is_refused(configured: Site) -> None:
    root_says(configured, "groupadd docker", f"gpasswd -a {JOB} docker")

    refused = configured.play("gpu_node.yml")
    root_says(configured, f"gpasswd -d {JOB} docker", "groupdel docker")

    assert refused.code == 2
    assert f"login: {JOB} is in docker: take it out" in refused.output


def test_hiding_outlives_a_reboot(configured: Site) -> None:
    before = ran(configured, "cat /proc/sys/kernel/random/boot_id; sudo systemctl reboot").stdout
    told = Handover.model_validate(configured.handover)
    machine_is_back(told, before)

    assert f"uid={MACHINE_UID}" in ran(configured, "id").stdout
    assert ran(configured, "cat /proc/1/cmdline").returncode == 1
    assert job_tries(configured, "cat /proc/1/cmdline").returncode == 1


def machine_is_back(told: Handover, before: str) -> None:
    while ssh.run(told, told.nodes[0], "cat /proc/sys/kernel/random/boot_id").stdout in ("", before):
        time.sleep(0.2)
