#!/bin/bash
# Turns this machine into a node of its stack, by the playbook that people run by hand too. Log: /var/log/gpufleet-boot.log
set -euo pipefail
exec >>/var/log/gpufleet-boot.log 2>&1
umask 022
export DEBIAN_FRONTEND=noninteractive
not_ready() { # a node that cannot make itself says so, and whoever waits for it need not wait on
  install -d /var/lib/gpufleet
  [ -e /var/lib/gpufleet/ready.json ] || printf '{"ready": false, "checks": [{"name": "boot", "ok": false, "detail": "%s: see /var/log/gpufleet-boot.log"}]}\n' "$1" \
    >/var/lib/gpufleet/ready.json
}
step="apt-get" && trap 'not_ready "$step fails"' ERR
# The repeats are ours: apt's own, before 3.1.3, wait for ever when one repository of a server is down (LP: #2003851).
for pause in 1 2 4 8 16 30 60 60; do
  apt-get -o Acquire::Retries=0 -o APT::Update::Error-Mode=any -qq update && break
  sleep "$pause"
done
apt-get -o Acquire::Retries=10 -qq -y install python3-boto3 python3-venv
install -d -m 0755 /etc/gpufleet /opt/gpufleet/bundle
cat >/etc/gpufleet/boot.json <<'GPUFLEET'
@BOOT@
GPUFLEET
step="the bundle"
python3 - <<'GPUFLEET'
import hashlib, json, pathlib, socket, subprocess, sys
import boto3

boot = json.loads(pathlib.Path("/etc/gpufleet/boot.json").read_text())
bundle = boot["bundle"]
answer = boto3.client("s3", region_name=boot["handover"]["region"]).get_object(Bucket=bundle["bucket"], Key=bundle["key"])
content = answer["Body"].read()
if hashlib.sha256(content).hexdigest() != bundle["sha256"]:
    sys.exit(f"s3://{bundle['bucket']}/{bundle['key']} is not what this node was started with")
subprocess.run(["tar", "-xC", "/opt/gpufleet/bundle"], input=content, check=True)

way = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
way.connect(("169.254.169.254", 80))  # sends nothing: it only tells which address leads out
address = way.getsockname()[0]
node = {"name": socket.gethostname(), "group": boot["group"], "address": address, "port": 22, "host_key": "", "prefix": "/"}
told = {**boot["handover"], "nodes": [node]}
pathlib.Path("/etc/gpufleet/handover.json").write_text(json.dumps(told, indent=1))
GPUFLEET
cd /opt/gpufleet/bundle
step="ansible-core" # of the lock, hash by hash: the distribution has another one
python3 -m venv /opt/gpufleet/ansible
/opt/gpufleet/ansible/bin/pip -q --disable-pip-version-check --retries 10 install --require-hashes --no-deps -r ansible.txt
export ANSIBLE_CONFIG=playbooks/ansible.cfg GPUFLEET_HANDOVER=/etc/gpufleet/handover.json LC_ALL=C.UTF-8
step="gpu_node.yml" # which says more by itself, once it has come to its checks
/opt/gpufleet/ansible/bin/ansible-playbook -i playbooks/inventory -e ansible_connection=local playbooks/gpu_node.yml
