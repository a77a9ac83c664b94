"""Texts that somebody reads as more than text: Ansible, a shell, systemd, OpenSSH, the kubelet or a terminal.

Those that run something touch a file of the folder MARKS, which therefore must stay empty.
"""

from __future__ import annotations

import os

MARKS = f"/tmp/gpufleet-executed-{os.getpid()}"  # without a character that a shell would read as more than text
SHELL = [
    "$(touch @MARK)",
    "`touch @MARK`",
    ";touch @MARK;",
    "|touch @MARK",
    "&touch @MARK&",
    "&&touch @MARK",
    "||touch @MARK",
    ">@MARK",
    ">>@MARK",
    "\ntouch @MARK\n",
    "\r\ntouch @MARK\r\n",
    "';touch @MARK;'",
    '";touch @MARK;"',
    "')\ntouch @MARK\n('",
    "$(touch${IFS}@MARK)",
    "$'\\ntouch @MARK\\n'",
    "${x:-$(touch @MARK)}",
    "<(touch @MARK)",
    "\\\n;touch @MARK",
    "\nGPUFLEET\ntouch @MARK\nGPUFLEET\n",
    "*;touch @MARK",
    "!touch @MARK",
    "x\x00;touch @MARK",
    "{touch,@MARK}",
    "#\ntouch @MARK",
]
TEMPLATES = [
    "{{ lookup('pipe', 'touch @MARK') }}",
    "{{ query('ansible.builtin.pipe', 'touch @MARK') }}",
    "{% set x = lookup('pipe', 'touch @MARK') %}",
    "{{ cycler.__init__.__globals__.os.system('touch @MARK') }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}{{ lookup('file', '@MARK') }}",
    "{#\n#}{{ lookup('ansible.builtin.pipe', 'touch @MARK', errors='ignore') }}",
    "#jinja2: variable_start_string:'[['\n[[ lookup('pipe', 'touch @MARK') ]]",
    "{{ lookup('template', '/dev/stdin') }}{{ lookup('lines', 'touch @MARK') }}",
    "{\"__ansible_vault\": \"{{ lookup('pipe', 'touch @MARK') }}\"}",
    "{{ {{ lookup('pipe', 'touch @MARK') }} }}",
]
OPTIONS = [
    "-oProxyCommand=touch @MARK",
    "-o",
    "--",
    "-",
    "-F/dev/null",
    "--eval=touch @MARK",
    "-e",
    "-c",
    "-D@MARK",
    "@@MARK",
    "+x",
    "~root",
    "ro,exec,suid",
    "x,dev",
    "a:b",
    "x=y",
    "PATH=/tmp",
    "LD_PRELOAD=@MARK",
    "http://evil.example/",
    "../../x",
    "/",
    ".",
    "..",
]
SPECIFIERS = [
    "%h",
    "%n%t",
    "%%",
    "%(directory)s",
    "${HOME}",
    "$HOME",
    "$(POD_IP)",
    "$$",
    "%d/x",
    "\\x2d",
    "\\",
    "'",
    '"',
    "*",
    "?",
]
CONTROLS = [
    "\x1b[2J",
    "\x1b]0;x\x07",
    "\x9b2J",
    "\r",
    "\n",
    "\t",
    "\x00",
    "\x7f",
    "\u202e",
    "\u2066",
    "\u2028",
    "\u200b",
    "\u0085",
    "\ufeff",
]
LETTERS = [
    "ä",
    "日本",
    "\u0660\u0661",
    "🚀",
    "ﬁ",
    "Ⅷ",
    "ı",
    " ",
    "a b",
    " a",
    "a ",
    "x" * 5000,
    "",
    "null",
    "true",
    "[]",
    "{}",
]


def payloads() -> list[str]:
    """All of them, each with a mark of its own."""
    every = (*SHELL, *TEMPLATES, *OPTIONS, *SPECIFIERS, *CONTROLS, *LETTERS)
    return [each.replace("@MARK", f"{MARKS}/{number}") for number, each in enumerate(every)]


def wrapped(payload: str, right: str) -> list[str]:
    """The payload alone, behind a text that is right where it stands, and within it."""
    return list(dict.fromkeys([payload, right + payload, right[:1] + payload + right[1:]]))
