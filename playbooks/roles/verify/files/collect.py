"""Run on the controlling computer: keeps what nodes say of themselves, one JSON file each, and prints it as one table.

Argument: FOLDER, where the files are; the inventory takes its group `ready` from them. Standard input: a JSON object a
line for each node, {"node","report"}, the report as the text that the node has sent. A node without a report keeps its
file: it had none of this run's checks. What a node sends may be anything: in the place of what is no report one is kept
that says so, and those of the other nodes all the same.
"""

import json
import sys
from pathlib import Path

REPORT_CHARACTERS, TEXT_LENGTH, MOST_CHECKS = 256 * 1024, 500, 200
TOLD_OF_THE_READY = ("environment", "versions", "gpus", "rdma", "all_reduce")


def parsed(text):
    """The report that a node has sent. Raises ValueError, with the reason, where it is none."""
    if len(text) > REPORT_CHARACTERS:
        raise ValueError(f"it has more than {REPORT_CHARACTERS // 1024} KiB")
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(report, dict) or not isinstance(report.get("ready"), bool):
        raise ValueError("it does not say whether the node is ready")
    checks = report.get("checks")
    if not isinstance(checks, list) or not all(map(is_check, checks)) or len(checks) > MOST_CHECKS:
        raise ValueError("its checks are none")
    if report["ready"] and not (checks and all(check["ok"] for check in checks)):
        raise ValueError("it says that the node is ready, and not that every check has passed")
    time = report.get("time")
    shown = [{"name": line(each["name"]), "ok": each["ok"], "detail": line(each["detail"])} for each in checks]
    return {"ready": report["ready"], "checks": shown, "time": line(time) if isinstance(time, str) else None}


def is_check(each):
    texts = isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get("detail"), str)
    return texts and isinstance(each.get("ok"), bool)


def line(text):
    """A node's words within one line, without what a terminal obeys."""
    words = " ".join(text[:TEXT_LENGTH].splitlines())
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in words)


def unreadable(reason):
    detail = f"the node sends an unreadable report: {reason}; run gpu_node.yml on it, or end it"
    return {"ready": False, "checks": [{"name": "checks", "ok": False, "detail": detail}], "time": None}


def row(node, report):
    """One line for a person: what a ready node is, why another is not ready."""
    if report["ready"]:
        details = [check["detail"] for check in report["checks"] if check["name"] in TOLD_OF_THE_READY]
        return node["name"], "ready", " · ".join(text for text in details if text not in ("none asked", "not measured"))
    reasons = [f"{check['name']}: {check['detail']}" for check in report["checks"] if not check["ok"]]
    return node["name"], "NOT READY", "; ".join(reasons)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for text in filter(str.strip, sys.stdin):
        answer = json.loads(text)
        node, file = answer["node"], folder / f"{answer['node']['name']}.json"
        if answer["report"]:
            try:
                report = parsed(answer["report"])
            except ValueError as fault:
                report = unreadable(fault)
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps({"node": node, **report}) + "\n")
            fresh.replace(file)
        if file.exists():
            rows.append(row(node, json.loads(file.read_text())))
    width = max((len(name) for name, _, _ in rows), default=0)
    print("\n".join(f"{name:<{width}}  {state:<9}  {text}" for name, state, text in rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
