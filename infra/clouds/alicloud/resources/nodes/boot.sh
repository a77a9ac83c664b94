apt-get -o Acquire::Retries=10 -qq -y install python3-venv
install -d -m 0755 /etc/gpufleet /opt/gpufleet/bundle
cat >/etc/gpufleet/boot.json <<'GPUFLEET'
@BOOT@
GPUFLEET
step="the bundle"
python3 - <<'GPUFLEET'
import hashlib, hmac, json, os, pathlib, socket, subprocess, sys, urllib.request
from datetime import datetime, timezone

METADATA = os.environ.get("GPUFLEET_METADATA", "http://100.100.100.200")
OBJECTS = os.environ.get("GPUFLEET_OSS", "https://{bucket}.oss-{region}-internal.aliyuncs.com")


def fetched(url, method="GET", **headers):
    with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers), timeout=60) as answer:
        return answer.read()


def signed(credentials, region, bucket, key, now):
    """The headers of a GET of OSS by signature version 4, its payload unsigned as an empty one may be."""
    day, sts = now[:8], credentials["SecurityToken"]
    headers = {"x-oss-content-sha256": "UNSIGNED-PAYLOAD", "x-oss-date": now, "x-oss-security-token": sts}
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"GET\n/{bucket}/{key}\n\n{lines}\n\nUNSIGNED-PAYLOAD"
    scope = f"{day}/{region}/oss/aliyun_v4_request"
    text = f"OSS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    derived = ("aliyun_v4" + credentials["AccessKeySecret"]).encode()
    for part in scope.split("/"):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(derived, text.encode(), hashlib.sha256).hexdigest()
    credential = f"Credential={credentials['AccessKeyId']}/{scope}"
    return {**headers, "Authorization": f"OSS4-HMAC-SHA256 {credential}, Signature={signature}"}


boot = json.loads(pathlib.Path(os.environ.get("GPUFLEET_BOOT", "/etc/gpufleet/boot.json")).read_text())
bundle, region = boot["bundle"], boot["handover"]["region"]
permit = fetched(f"{METADATA}/latest/api/token", "PUT", **{"X-aliyun-ecs-metadata-token-ttl-seconds": "300"}).decode()
told = {"X-aliyun-ecs-metadata-token": permit}
credentials = json.loads(fetched(f"{METADATA}/latest/meta-data/ram/security-credentials/{boot['role']}", **told))
address = fetched(f"{METADATA}/latest/meta-data/private-ipv4", **told).decode()
now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
place = OBJECTS.format(bucket=bundle["bucket"], region=region)
content = fetched(f"{place}/{bundle['key']}", **signed(credentials, region, bundle["bucket"], bundle["key"], now))
if hashlib.sha256(content).hexdigest() != bundle["sha256"]:
    sys.exit(f"oss://{bundle['bucket']}/{bundle['key']} is not what this node was started with")
folder = os.environ.get("GPUFLEET_BUNDLE", "/opt/gpufleet/bundle")
subprocess.run(["tar", "-xC", folder], input=content, check=True)
node = {"name": socket.gethostname(), "group": boot["group"], "address": address, "port": 22, "host_key": "", "prefix": "/"}
handover = pathlib.Path(os.environ.get("GPUFLEET_HANDOVER", "/etc/gpufleet/handover.json"))
handover.write_text(json.dumps({**boot["handover"], "nodes": [node]}, indent=1))
GPUFLEET
