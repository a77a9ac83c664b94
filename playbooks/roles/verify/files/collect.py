"""Run on the controlling computer: keeps what nodes say of themselves, one JSON file each, and prints it as one table.

Argument: FOLDER, where the files are; the inventory takes its group `ready` from them. Standard input: a JSON object a
line for each node, {"node","report"}. A node without a report keeps its file: it had none of this run's checks.
"""

import json
import sys
from pathlib import Path

TOLD_OF_THE_READY = ("environment", "versions", "gpus", "rdma", "all_reduce")


def row(node, report):
    """One line for a person: what a ready node is, why another is not ready."""
    if report["ready"]:
        told = [check["detail"] for check in report["checks"] if check["name"] in TOLD_OF_THE_READY]
        return node["name"], "ready", " · ".join(text for text in told if text not in ("none asked", "not measured"))
    reasons = [f"{check['name']}: {check['detail']}" for check in report["checks"] if not check["ok"]]
    return node["name"], "NOT READY", "; ".join(reasons)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for line in filter(str.strip, sys.stdin):
        told = json.loads(line)
        node, file = told["node"], folder / f"{told['node']['name']}.json"
        if told["report"]:
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps({"node": node, **told["report"]}) + "\n")
            fresh.replace(file)
        if file.exists():
            rows.append(row(node, json.loads(file.read_text())))
    width = max((len(name) for name, _, _ in rows), default=0)
    print("\n".join(f"{name:<{width}}  {state:<9}  {text}" for name, state, text in rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
