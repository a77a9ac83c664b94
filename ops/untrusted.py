"""Untrusted input from nodes, jobs and clusters: limited in size, and of the expected types.

A compromised node may send anything, and the `status` of all others must still work. Texts come out in one line and
without control characters, numbers are finite, and what does not fit is `UnreadableError`, with a line that
says why. pydantic reads JSON to a depth of 200 at most (pydantic-core, jiter).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.networks import IPvAnyAddress

from infra.printable import one_line

REPORT_BYTES = 256 * 1024  # an honest report has some kilobytes
LINE_BYTES = 64 * 1024
METRICS_BYTES = 16 * 1024 * 1024  # of the newest lines, which are some 80,000
TEXT_LENGTH = 2000
CHECKS = 200


class UnreadableError(ValueError):
    """Why an input is invalid, in one line."""


def _text(text: str) -> str:
    return one_line(text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1]}…")


Text = Annotated[str, AfterValidator(_text)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0, le=10**15)]
Positive = Annotated[int, Field(ge=1, le=10**15)]


class _Untrusted(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Check(_Untrusted):
    """One check of a node: whether it passed, and its figures or its fault."""

    name: Text
    ok: bool
    detail: Text = ""


class Report(_Untrusted):
    """A node's readiness report (`ready.json`). time: when, in UTC; None where the checks could not start."""

    ready: bool
    checks: Annotated[tuple[Check, ...], Field(max_length=CHECKS)]
    time: Text | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Report:
        if self.ready and (not self.checks or self.faults):
            raise ValueError("is `ready` although not every check has passed")
        return self

    @property
    def faults(self) -> list[str]:
        return [f"{check.name}: {check.detail}" for check in self.checks if not check.ok]


class Start(_Untrusted):
    """A run starts, or resumes after `done` steps."""

    event: Literal["start"]
    name: Text = ""
    done: Whole = 0
    steps: Whole
    world_size: Positive
    parameters: Whole
    device: Text = ""


class Metric(_Untrusted):
    """A line of metrics.jsonl: a reported step, or the held-out samples after one."""

    step: Whole
    steps: Positive | None = None
    loss: Number | None = None
    lr: Number | None = None
    samples_per_second: Number | None = None
    seconds: Number | None = None
    straggler: Number | None = None
    mfu: Number | None = None
    accuracy: Number | None = None
    eval_loss: Number | None = None


class Step(Metric):
    """A reported step, as the launcher prints it."""

    event: Literal["step"]
    steps: Positive  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]: narrower, and frozen
    loss: Number  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]
    samples_per_second: Number  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]


class Evaluation(Metric):
    """The evaluation on held-out samples after a step, as the launcher prints it."""

    event: Literal["eval"]
    accuracy: Number  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]


class Saved(_Untrusted):
    event: Literal["checkpoint"]
    step: Whole


class Note(_Untrusted):
    event: Literal["note"]
    text: Text


class Result(_Untrusted):
    """The result of a run (`result.json`): see `training.metrics.result`."""

    name: Text = ""
    steps: Whole
    digest: Text | None = None
    accuracy: Number | None
    loss: Number | None = None
    samples_per_second: Number = 0.0
    lost_steps: Whole = 0
    restarts: Whole = 0
    seconds: Number
    world_size: Positive = 1
    finished: bool
    device: Text = ""
    compute: Text = ""
    channels_last: bool = False
    trial_seconds: Number | None = None
    versions: Annotated[dict[Text, Text], Field(max_length=CHECKS)] = {}


class ResultEvent(Result):
    """The result, as the launcher prints it."""

    event: Literal["result"]


class Endpoint(_Untrusted):
    """Where a rendezvous store listens."""

    address: IPvAnyAddress
    port: Annotated[int, Field(ge=1, le=65535)]


_EVENT: TypeAdapter[Start | Step | Evaluation | Saved | Note | ResultEvent] = TypeAdapter(
    Annotated[Start | Step | Evaluation | Saved | Note | ResultEvent, Field(discriminator="event")]
)
Model = TypeVar("Model", bound=_Untrusted)


def parsed(kind: type[Model], data: bytes | str, most: int = REPORT_BYTES) -> Model:
    """One JSON document. Raises UnreadableError."""
    if len(data) > most:
        raise UnreadableError(f"it is larger than {most // 1024} KiB")
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UnreadableError(one_line(f"{place}: {first['msg']}" if place else first["msg"])) from None


def event(line: bytes | str) -> dict[str, Any] | None:
    """The event in a launcher's line; None for a line of the job's own, a truncated one, and an invalid one."""
    if len(line) > LINE_BYTES:
        return None
    try:
        parsed_event = _EVENT.validate_json(line)
    except ValidationError:
        return None
    return {"event": parsed_event.event, **parsed_event.model_dump(exclude_unset=True)}


def metrics(data: bytes) -> Iterator[dict[str, Any]]:
    """The valid lines of metrics.jsonl; the first one may be truncated."""
    for line in lines([data]):
        try:
            yield Metric.model_validate_json(line).model_dump(exclude_unset=True)
        except ValidationError:
            continue


def lines(chunks: Iterable[bytes], most: int = LINE_BYTES) -> Iterator[bytes]:
    """The lines of a stream, without line ends, each truncated to `most` bytes."""
    line = bytearray()
    for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for end in complete:
            line += end[: most - len(line)]
            yield bytes(line)
            line.clear()
        line += rest[: most - len(line)]
    if line:
        yield bytes(line)
