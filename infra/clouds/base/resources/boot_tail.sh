cd /opt/gpufleet/bundle
step="ansible-core" # of the lock, hash by hash: the distribution has another one
python3 -m venv /opt/gpufleet/ansible
/opt/gpufleet/ansible/bin/pip -q --disable-pip-version-check --retries 10 install --require-hashes --no-deps -r ansible.txt
export ANSIBLE_CONFIG=playbooks/ansible.cfg GPUFLEET_HANDOVER=/etc/gpufleet/handover.json LC_ALL=C.UTF-8
step="gpu_node.yml" # which says more by itself, once it has come to its checks
/opt/gpufleet/ansible/bin/ansible-playbook -i playbooks/inventory -e ansible_connection=local playbooks/gpu_node.yml
