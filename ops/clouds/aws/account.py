"""The account at AWS, called through boto3 with the user's own credentials (environment, profile, role)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.printable import one_line
from ops.errors import CommandError

RETRIES = Config(retries={"mode": "standard", "max_attempts": 8})  # throttled calls are repeated
GLOBAL_REGION = "us-east-1"  # where services without regions, IAM above all, answer


@dataclass(frozen=True)
class Account:
    """One region of the account behind the credentials in use."""

    region: str

    @cached_property
    def _clients(self) -> dict[tuple[str, str], Any]:
        return {}

    def client(self, service: str, region: str | None = None) -> Any:
        """The client of a service, created once."""
        key = (service, region or self.region)
        if key not in self._clients:
            self._clients[key] = boto3.client(service, region_name=key[1], config=RETRIES)  # pyright: ignore[reportArgumentType, reportCallIssue]
        return self._clients[key]

    def listed(
        self, service: str, operation: str, key: str, *, region: str | None = None, **arguments: Any
    ) -> list[Any]:
        """All items of a paginated call."""
        pages = self.client(service, region).get_paginator(operation).paginate(**arguments)
        return [item for page in pages for item in page.get(key, ())]


@contextmanager
def answers(account: Account) -> Iterator[None]:
    """Turns an error of AWS into one line with a remedy. Raises CommandError."""
    try:
        yield
    except ClientError as error:
        reason, operation = error.response["Error"], error.operation_name
        why = one_line(reason.get("Message") or reason["Code"])
        raise CommandError(f"AWS refuses {operation} in {account.region}: {why}") from None
    except BotoCoreError as error:
        raise CommandError(
            f"AWS does not answer in {account.region}: {one_line(str(error))}; check with `aws sts get-caller-identity`"
        ) from None
