"""Action `python_program`: runs one of our Python programs on a node, all of it fed through one pipe.

file: the program, found as `copy` finds its src. arguments, stdin: what it is given. interpreter: without it the one
that Ansible has on the node. Returns what `command` does: rc, and stdout and stderr without empty lines at their end.

Nothing of it is left on the node, whose list of processes and log of sudo show none of its arguments. `command` would
run it inside a module, whose libraries the node compiles anew at every task: most of what such a task costs it. The
interpreter is isolated (`-I`): it imports nothing from the folder that it starts in, which is the home of a login.
"""

from pathlib import Path

from ansible.plugins.action import ActionBase

OPTIONS = {
    "file": {"type": "str", "required": True},
    "arguments": {"type": "list", "elements": "str", "default": []},
    "stdin": {"type": "str", "default": ""},
    "interpreter": {"type": "str"},
}
MOST = 4 << 20  # characters: the longest honest answer is a list of packages; every play would carry a longer one along
LAUNCH = """import io, sys
sys.argv, sys.stdin = {argv!a}, io.StringIO({stdin!a})
exec(compile({program!a}, {name!a}, "exec"))
"""


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _, options = self.validate_argument_spec(argument_spec=OPTIONS)
        if self._task.check_mode:
            return {**result, "skipped": True}
        file = Path(self._find_needle("files", options["file"]))
        program = {"name": file.name, "argv": [file.name, *options["arguments"]], "stdin": options["stdin"]}
        launched = LAUNCH.format(program=file.read_text(encoding="utf-8"), **program).encode()
        interpreter = self._connection._shell.quote(options["interpreter"] or task_vars["ansible_python_interpreter"])
        ran = self._low_level_execute_command(f"{interpreter} -I -", in_data=launched)
        if len(ran["stdout"]) + len(ran["stderr"]) > MOST:
            return {**result, "failed": True, "rc": 1, "msg": f"{file.name} says more than {MOST >> 20} MiB"}
        for stream in ("stdout", "stderr"):
            ran[stream] = ran[stream].rstrip("\r\n")
            ran[f"{stream}_lines"] = ran[stream].splitlines()
        failed = {"failed": True, "msg": "non-zero return code"} if ran["rc"] else {}
        return {**result, **ran, **failed, "changed": True}
