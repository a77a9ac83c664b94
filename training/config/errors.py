"""What is wrong with a job: one line for each mistake, with its place and its key."""

from __future__ import annotations

from dataclasses import dataclass, replace

JOB = "job"  # instead of a file: a mistake that only shows where the job runs


@dataclass(frozen=True)
class Problem:
    """One mistake: the file, `--set` or `job NAME`; the line where there is one; the dotted key; and what to do."""

    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place} {self.key}: {self.message}" if self.key else f"{place} {self.message}"


class JobError(Exception):
    """The job cannot be run as it is written; one line a mistake, in file order."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.line is None, p.line or 0)))
        super().__init__("\n".join(map(str, self.problems)))

    def of_job(self, name: str) -> JobError:
        """The same with the job's name in front of what a part of the run refused."""
        return JobError(*(replace(p, file=f"{JOB} {name}") if p.file == JOB else p for p in self.problems))


def refusal(key: str, message: str) -> JobError:
    """The error for a mistake that only shows where the job runs: its ranks, its device, its data. key: of the job
    file."""
    return JobError(Problem(JOB, None, key, message))
