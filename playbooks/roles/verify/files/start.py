"""Run on a node: a program of several modules, as JSON {name: source} on standard input; the last one has its `main`.

Argument: what `main` is given, as a JSON list. It travels through one pipe: nothing of it is left on the node.
"""

import json
import sys
import types

for name, source in json.load(sys.stdin).items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
module.main(*json.loads(sys.argv[1]))
