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
