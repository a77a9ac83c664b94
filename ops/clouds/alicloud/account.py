"""The account at Alibaba Cloud, called through its SDK with the user's own credentials (environment, profile, role).

Every API is called by its name: the SDK signs, retries and decodes; arguments and responses are documented in the
reference that each module names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from ops.errors import CommandError

# Endpoints and versions: api.aliyun.com/product, "Endpoints" of each product.
APIS = {
    "cms": ("metrics.{region}.aliyuncs.com", "2019-01-01"),
    "ecs": ("ecs.{region}.aliyuncs.com", "2014-05-26"),
    "ess": ("ess.{region}.aliyuncs.com", "2022-02-22"),
    "kms": ("kms.{region}.aliyuncs.com", "2016-01-20"),
    "tag": ("tag.aliyuncs.com", "2018-08-28"),
    "vpc": ("vpc.{region}.aliyuncs.com", "2016-04-28"),
}
ENDPOINT = "GPUFLEET_ALICLOUD_ENDPOINT"  # http://HOST:PORT of a simulator of all of them
TRIES, FIRST_WAIT_MS = 5, 500  # throttled calls are repeated


@dataclass(frozen=True)
class Account:
    """One region of the account behind the credentials in use."""

    region: str

    def call(self, product: str, action: str, **arguments: Any) -> Mapping[str, Any]:
        """The response of one API; lists are sent as `Tag.1.Key`."""
        from alibabacloud_tea_openapi.utils import Utils
        from alibabacloud_tea_openapi.utils_models import OpenApiRequest, Params
        from darabonba.runtime import RuntimeOptions

        client, version = self._client(product), APIS[product][1]
        how = Params(
            action=action,
            version=version,
            protocol="HTTPS",
            method="POST",
            pathname="/",
            auth_type="AK",
            style="RPC",
            req_body_type="formData",
            body_type="json",
        )
        request = OpenApiRequest(query=Utils.query({"RegionId": self.region, **arguments}))
        return client.call_api(how, request, RuntimeOptions())["body"]

    def listed(self, product: str, action: str, *keys: str, **arguments: Any) -> list[Mapping[str, Any]]:
        """All items of a paginated call. keys: the path to the items in a response."""
        items: list[Mapping[str, Any]] = []
        token: str | None = None
        while True:
            response = self.call(product, action, **arguments, **({"NextToken": token} if token else {}))
            page: Any = response
            for key in keys:
                page = page.get(key, {})
            items += page or []
            token = response.get("NextToken")
            if not token:
                return items

    @cached_property
    def _clients(self) -> dict[str, Any]:
        return {}

    def _client(self, product: str) -> Any:
        if product not in self._clients:
            from alibabacloud_credentials.client import Client as Credentials
            from alibabacloud_tea_openapi.client import Client
            from alibabacloud_tea_openapi.utils_models import Config
            from darabonba.policy.retry import RetryCondition, RetryOptions

            stand_in = urlsplit(os.environ.get(ENDPOINT, ""))
            transient = RetryCondition(
                max_attempts=TRIES,
                exception=["ThrottlingException", "ServerException"],
                backoff={"policy": "EqualJitter", "period": FIRST_WAIT_MS},
            )
            config = Config(
                credential=Credentials(),
                endpoint=stand_in.netloc or APIS[product][0].format(region=self.region),
                protocol=stand_in.scheme or "https",
                region_id=self.region,
                retry_options=RetryOptions(retryable=True, retry_condition=[transient]),
            )
            self._clients[product] = Client(config)
        return self._clients[product]


@contextmanager
def answers(account: Account) -> Iterator[None]:
    """Turns an error of Alibaba Cloud into one line with a remedy. Raises CommandError."""
    from alibabacloud_credentials.exceptions import CredentialException
    from Tea.exceptions import TeaException, UnretryableException

    try:
        yield
    except CredentialException as error:
        remedy = "set ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET, or `aliyun configure`"
        raise CommandError(f"no credentials of Alibaba Cloud: {remedy} ({_line(error)})") from None
    except (TeaException, UnretryableException) as error:
        raise CommandError(f"Alibaba Cloud refuses or does not answer in {account.region}: {_line(error)}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
