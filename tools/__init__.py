"""Set-up: what the project needs and no package index carries. Standard library only; runs before any environment.

The modules keep to Python 3.9, so that an old interpreter is told what is wrong instead of failing to read them.
"""
