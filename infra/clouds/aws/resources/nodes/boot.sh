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
