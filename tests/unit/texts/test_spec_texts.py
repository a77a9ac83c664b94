"""Every text of every stack file: what stands in its place is refused in one line, or is nothing but a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import yaml
from every_text import CLUSTERS
from payloads import payloads, wrapped
from pydantic import BaseModel, ValidationError

from infra import registry
from infra.printable import printable
from infra.spec import SpecError, load
from infra.spec.errors import explained, key_path

TEXTS = (str, IPv4Address, IPv4Network)
# Commands of the operator's own computer, which run word by word without a shell, and a sentence that is only compared.
IN_CLEAR = {"power.wake", "power.sleep", "nodes.market.confirm", "nodes.market.buy.confirm"}
NO_LOGIN = ("machines", "kubernetes")  # where a public key is refused, whatever it is
HARMLESS = re.compile(r"[\w.@+=,:/~() -]*", re.ASCII)


def of_cloud(cloud: str) -> type[BaseModel]:
    return registry.part(registry.cloud(cloud).spec)


def declared(kind: Any, path: str = "") -> Iterator[str]:
    """The keys, without positions, below which the type has texts that are no choice of words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from declared(inner[0], path)
    elif origin in (Union, UnionType):
        for each in inner:
            yield from declared(each, path)
    elif origin is tuple:
        yield from declared(inner[0], path)
    elif origin is dict or kind in TEXTS:
        yield path
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield from declared(field.annotation, f"{path}.{name}".strip("."))
    else:
        assert origin is Literal or kind in (int, float, bool, type(None)), f"{path}: this walk does not know {kind}"


def places(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the texts of a document stand."""
    if isinstance(document, str):
        yield path
    elif isinstance(document, dict | list):
        items = document.items() if isinstance(document, dict) else enumerate(document)
        for key, value in items:
            yield from places(value, (*path, key))


def key_of(place: tuple[str | int, ...]) -> str:
    """As `declared` names it: labels are a mapping with free keys."""
    return ".".join(part for part in place if isinstance(part, str)).split(".labels")[0] + ".labels" * (
        "labels" in place
    )


def put(value: Any, place: tuple[str | int, ...], text: str) -> Any:
    """The document with this text in its place; all else is the same objects, which nobody changes."""
    if not place:
        return text
    first, *rest = place
    made = value.copy()
    made[first] = put(value[first], tuple(rest), text)
    return made


def value_at(value: Any, place: tuple[str | int, ...]) -> Any:
    for part in place:
        value = value[part] if isinstance(value, dict | list | tuple) else getattr(value, str(part))  # pyright: ignore
    return value


def fields_of(cluster: dict[str, Any]) -> dict[tuple[type, str], tuple[str | int, ...]]:
    """A place of each field that texts of the cluster stand in, by the type that has it and the key below that."""
    spec, found = of_cloud(cluster["cloud"]).model_validate(cluster), {}
    for place in places(cluster):
        owners = [(value_at(spec, place[:end]), place[end:]) for end in range(len(place))]
        owner, key = next((owner, key) for owner, key in reversed(owners) if isinstance(owner, BaseModel))
        found.setdefault((type(owner), ".".join(part for part in key if isinstance(part, str))), place)
    return found


@cache
def tried() -> list[list[tuple[str | int, ...]]]:
    """The places of each cluster that are tried: every field once, also where many clusters have its type."""
    met, chosen = set[tuple[type, str]](), list[list[tuple[str | int, ...]]]()
    for fields in map(fields_of, CLUSTERS):
        chosen.append([place for field, place in fields.items() if field not in met])
        met |= fields.keys()
    return chosen


@pytest.mark.parametrize("cloud", registry.CLOUDS)
def test_the_clusters_of_these_tests_use_every_text_of_a_stack_file(cloud: str) -> None:
    used = {key_of(place) for each in CLUSTERS if each["cloud"] == cloud for place in places(each)}

    assert set(declared(of_cloud(cloud))) - used == ({"access.public_key"} if cloud in NO_LOGIN else set())


@pytest.mark.parametrize(
    "number", range(len(CLUSTERS)), ids=[f"{i}-{each['cloud']}" for i, each in enumerate(CLUSTERS)]
)
def test_no_text_is_read_as_more_than_a_text(number: int) -> None:
    cluster = CLUSTERS[number]
    kind, counts = of_cloud(cluster["cloud"]), Counter[str]()
    for place in tried()[number]:
        right = value_at(cluster, place)
        for text in (each for payload in payloads() for each in wrapped(payload, right)):
            try:
                spec = kind.model_validate(put(cluster, place, text))
            except ValidationError as error:
                lines = [f"{key_path(at)}: {message}" for at, message in explained(error, kind)]
                assert lines, text
                assert all(line.isprintable() for line in lines), lines
                counts["refused"] += 1
                continue
            assert str(value_at(spec, place)) == (text.lower() if key_of(place).endswith("partition.key") else text)
            clear = key_of(place) in IN_CLEAR
            assert text.isprintable() if clear else HARMLESS.fullmatch(text) and not text.startswith("-"), (place, text)
            counts["accepted"] += 1
    print(f"{cluster['cloud']}: {counts['refused']} refused, {counts['accepted']} accepted as they are")
    assert counts.total() >= 300


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: gpufleet\nconfig: {cluster: {}}\n")
    return tmp_path


def lines_of(root: Path, stack: str) -> list[str]:
    """What a person is told of a stack file that is wrong."""
    with pytest.raises(SpecError) as caught:
        load(root, stack)
    assert len(str(caught.value).splitlines()) == len(caught.value.problems) > 0
    return [printable(str(problem)) for problem in caught.value.problems]


def test_a_key_is_named_in_one_line(root: Path) -> None:
    for key in payloads():
        cluster = {**CLUSTERS[0], key: 1}
        text = yaml.safe_dump({"config": {"gpufleet:cluster": cluster}}, allow_unicode=True)
        (root / "Pulumi.x.yaml").write_text(text)

        assert all(line.isprintable() for line in lines_of(root, "x"))


def test_a_stack_is_called_by_a_plain_name_or_not_at_all(root: Path) -> None:
    text = yaml.safe_dump({"config": {"gpufleet:cluster": CLUSTERS[0]}})
    names = [each for each in payloads() if "/" not in each and "\0" not in each and 0 < len(each) < 200]
    for name in [*names, "-x", "--yes", "a b", "x\n"]:
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            continue
        with suppress(UnicodeEncodeError):
            (root / f"Pulumi.{name}.yaml").write_text(text)

            assert "is no name for a stack" in lines_of(root, name)[0]
