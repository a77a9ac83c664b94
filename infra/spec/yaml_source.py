"""YAML as data with the line of every key, read the way the Pulumi engine reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

import yaml

from infra.printable import escaped
from infra.spec.errors import quoted
from infra.spec.public_key import looks_private

MOST_BYTES = 1 << 20  # of a file: some 4,000 hosts
MOST_VALUES = 100_000  # with each alias counted as what it stands for: few bytes can stand for millions
LONGEST_KEY, LONGEST_NUMBER = 200, 20  # characters


class UnreadableError(ValueError):
    """A text that is no YAML document; line counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


@dataclass(frozen=True)
class Document:
    """data: what the text says. lines: the line of each key path (`config.a.nodes[1].count`), "" for the text.

    repeated: the key paths that stand twice in one mapping, with the line of the later one.
    """

    data: Any
    lines: dict[str, int] = field(default_factory=dict)
    repeated: list[tuple[str, int]] = field(default_factory=list)

    def renamed(self, old: str, new: str) -> Document:
        """The same document, with the key path `old` and all below it called `new`."""

        def name(path: str) -> str:
            below = path.removeprefix(old)
            return new + below if below != path and below[:1] in ("", ".", "[") else path

        lines = {name(path): line for path, line in self.lines.items()}
        return Document(self.data, lines, [(name(path), line) for path, line in self.repeated])


class _EngineLoader(yaml.SafeLoader):
    """YAML 1.2's plain scalars, as the engine's reader has them: `on` is a word and 22:22 is no number."""

    yaml_implicit_resolvers: ClassVar = {}


_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
}
for _kind, (_pattern, _first) in _PLAIN.items():
    _EngineLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_pattern})$"), _first)


def _number(text: str) -> int:
    """Raises ValueError for one that the engine's reader has no whole number for; Python would not print a long one."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError(text)
    return int(text, 16 if "x" in text else 10)


_SCALARS = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": _number,
    "tag:yaml.org,2002:float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
}
_TAGS = {*_SCALARS, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}

# The parser's words for the mistakes that people make, in the words of people.
_MISTAKES = {
    "found character '\\t' that cannot start any token": "a tab; YAML is indented with spaces",
    "could not find expected ':'": "a ':' is missing, or the line is not indented as its neighbours are",
    "mapping values are not allowed here": "a ':' where none can be; a text with ': ' in it needs quotes",
    "expected <block end>, but found '<block mapping start>'": "this line is not indented as its neighbours are",
    "expected <block end>, but found '<scalar>'": "a text goes on after its closing quote",
    "expected ',' or ']', but got '<stream end>'": "a '[' is never closed",
    "expected ',' or '}', but got '<stream end>'": "a '{' is never closed",
    "found unexpected end of stream": "a quote is never closed",
    "but found another document": "a second document begins; a stack file is one",
}


def read(content: bytes) -> Document:
    """Raises UnreadableError for content that is not UTF-8, not YAML, YAML that is more than data, or too long."""
    if len(content) > MOST_BYTES:
        raise UnreadableError(1, f"is larger than {MOST_BYTES >> 20} MiB")
    try:
        return _read(content)
    except RecursionError:
        raise UnreadableError(1, "is nested too deeply") from None


def _read(content: bytes) -> Document:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableError(line, f"byte 0x{content[error.start]:02x} is not UTF-8 text") from None
    try:
        root = yaml.compose(text, Loader=_EngineLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UnreadableError(line, f"character U+{error.character:04X} cannot stand in a file") from None
    except yaml.MarkedYAMLError as error:
        unclosed = str(error.problem).endswith(("'<stream end>'", "end of stream"))
        mark = error.context_mark if unclosed else error.problem_mark
        message = _MISTAKES.get(str(error.problem), error.problem)
        raise UnreadableError(mark.line + 1 if mark else 1, f"cannot be read as YAML: {message}") from None
    document = Document(None, {"": 1})
    return Document(_Reading(document).data(root, "") if root else None, document.lines, document.repeated)


class _Reading:
    """One walk over the composed nodes. A node that aliases share is walked once, at its first place."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.done: dict[int, Any] = {}
        self.open: set[int] = set()
        self.values = 0
        self.size: dict[int, int] = {}

    def data(self, node: yaml.Node, path: str) -> Any:
        if id(node) in self.open:
            raise UnreadableError(node.start_mark.line + 1, "an anchor holds itself")
        if id(node) not in self.done:
            self.open.add(id(node))
            before = self.values
            self.done[id(node)] = self._data(node, path)
            self.size[id(node)] = self.values - before + 1
            self.open.remove(id(node))
            self.values += 1
        else:
            self.values += self.size[id(node)]
        if self.values > MOST_VALUES:
            line = node.start_mark.line + 1
            raise UnreadableError(line, f"holds more than {MOST_VALUES:,} values up to here, its aliases counted")
        return self.done[id(node)]

    def _data(self, node: yaml.Node, path: str) -> Any:
        if node.tag not in _TAGS:
            tag = escaped(node.tag[:LONGEST_KEY])  # which may hold any character, written as %0A
            raise UnreadableError(node.start_mark.line + 1, f"must be plain data, without the tag {tag}")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                self.document.lines[f"{path}[{i}]"] = item.start_mark.line + 1
            return [self.data(item, f"{path}[{i}]") for i, item in enumerate(node.value)]
        try:
            return _SCALARS[node.tag](node.value)
        except ValueError:
            raise UnreadableError(
                node.start_mark.line + 1, f"{quoted(node.value)} does not fit its tag {escaped(node.tag)}"
            ) from None

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise UnreadableError(line, "a key must be a word, not a list or a mapping")
            if len(key.value) > LONGEST_KEY:
                raise UnreadableError(line, f"a key of {len(key.value):,} characters is none of a stack file's")
            name = _key(key.value)
            here = f"{path}.{name}" if path else name
            if name in values:
                self.document.repeated.append((here, line))
            else:
                self.document.lines[here] = line
                values[name] = self.data(value, here)
        return values


def _key(text: str) -> str:
    """A key as every message may show it."""
    if looks_private(text):
        return "[hidden]"
    return text if text.isprintable() else repr(text)
