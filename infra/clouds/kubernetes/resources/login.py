"""How the engine's provider logs in to a cluster that the same stack makes: by a program, never by a kept secret."""

from __future__ import annotations

from collections.abc import Sequence

from pulumi import Input, Output

NAME = "cluster"


def kubeconfig(server: Input[str], authority: Input[str], command: Sequence[Input[str]]) -> Output[str]:
    """The text of a kubeconfig. authority: the API's certificate authority, in base64. command: prints a credential.

    Source: Kubernetes, "client-go credential plugins" (ExecCredential, API client.authentication.k8s.io/v1beta1).
    """
    exec_ = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": command[0],
        "args": list(command[1:]),
        "interactiveMode": "Never",
    }
    return Output.json_dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": NAME, "user": {"exec": exec_}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
            "current-context": NAME,
        }
    )
