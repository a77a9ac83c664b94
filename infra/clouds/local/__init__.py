"""Nodes on this very computer, through the real engine: the embedded default and the rehearsal room of every cloud.

`isolation: process` makes an SSH server on a loopback address for each node and needs no rights; `isolation: machine`
makes systemd-nspawn machines and needs root.
"""
