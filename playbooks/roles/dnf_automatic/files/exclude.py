"""Run on a node as root: keeps kernels from dnf-automatic, if there is one; prints the file if it was changed.

Argument: dnf-automatic's settings. They are one file, and the key may have been set by others: kernels join what they
exclude, behind a mark by which a reset knows that they are ours.
"""

import re
import sys
from pathlib import Path

OURS, MARK = "kernel*", "# gpufleet: kernel* is ours in the next line"
KEY = r"^excludepkgs[ \t]*=.*"


def excluding(text):
    lines = re.findall(KEY, text, re.MULTILINE)
    if any(OURS in re.split(r"[=,\s]+", line) for line in lines):
        return text
    text = text.replace(f"{MARK}\n", "")
    if lines:
        return re.sub(KEY, rf"{MARK}\n\g<0>,{OURS}", text, count=1, flags=re.MULTILINE)
    return re.sub(r"^\[base\]", rf"\g<0>\n{MARK}\nexcludepkgs={OURS}", text, count=1, flags=re.MULTILINE)


file = Path(sys.argv[1])
before = file.read_text() if file.exists() else ""
if (after := excluding(before)) != before:
    file.write_text(after)
    print(file)
