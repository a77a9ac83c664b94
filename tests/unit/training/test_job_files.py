from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from written import GOOD, written

from training.config.job import JOBS, JobError, load
from training.config.model import ResNet
from training.config.optimizer import Sgd


def test_all_mistakes_are_told_at_once_in_file_order(tmp_path: Path):
    text = GOOD.replace("steps = 20", "steps = 0").replace("64", '"64"').replace("lr = 0.1", "lr = 0\nx = 1")

    with pytest.raises(JobError) as error:
        load(written(tmp_path, text), ["seed=-1"])

    places = [str(problem).split(": ")[0] for problem in error.value.problems]
    assert places == [
        "job.toml:1 steps",
        "job.toml:6 data.global_batch",
        "job.toml:9 optimizer.lr",
        "job.toml:10 optimizer.x",
        "--set seed",
    ]


def test_a_good_file_has_the_defaults_of_its_kind(tmp_path: Path):
    job = load(written(tmp_path, GOOD), [])

    assert job.optimizer == Sgd(lr=0.1)
    assert (job.name, job.out, job.seed) == ("job", Path("runs/job"), 1)


def test_set_takes_toml_values_and_plain_texts(tmp_path: Path):
    job = load(
        written(tmp_path, GOOD), ["optimizer.lr=1", "name=trial", "checkpoint.every_steps=5", "model.kind='resnet18'"]
    )

    assert (job.optimizer.lr, job.name, job.out, job.checkpoint.every_steps) == (1.0, "trial", Path("runs/trial"), 5)
    assert job.model == ResNet(kind="resnet18")


def test_a_set_key_replaces_the_one_it_excludes(tmp_path: Path):
    assert load(written(tmp_path, GOOD), ["epochs=3"]).steps is None


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("optimizer.lr", "--set optimizer.lr: write key=value"),
        ("steps.x=1", "--set steps.x: is not a table"),
        ("optimizer.lr=-1", "--set optimizer.lr: must be greater than 0"),
        ("optimizer.rate=1", "--set optimizer.rate: unknown key 'rate'"),
        ("optimizer={kind='adamw', lr='x'}", "--set optimizer.lr: must be a number, is 'x'"),
        ("optimizer={kind='adamw'}", "--set optimizer.lr: is missing"),
        ("optimzer.lr=1", "--set optimzer: unknown key 'optimzer'; did you mean 'optimizer'"),
    ],
)
def test_a_mistake_in_a_set_key_names_it(assignment: str, told: str, tmp_path: Path):
    with pytest.raises(JobError, match=f"^{told}"):
        load(written(tmp_path, GOOD), [assignment])


def test_a_mistake_beside_a_set_key_is_the_files(tmp_path: Path):
    with pytest.raises(JobError, match=r"^job\.toml:4 model\.width: unknown key 'width'"):
        load(written(tmp_path, GOOD.replace("[data]", "width = 8\n[data]")), ["model.kind=resnet18"])


def test_an_unknown_name_is_answered_with_the_nearest_one():
    with pytest.raises(JobError, match="did you mean 'mnist'"):
        load("mnits", [])


@pytest.mark.parametrize("job", sorted(path.stem for path in JOBS.glob("*.toml")))
def test_the_jobs_that_come_with_the_package_load(job: str):
    assert load(job, []).name == job


def test_epochs_leave_the_incomplete_last_batch_out(tmp_path: Path):
    job = load(written(tmp_path, GOOD), ["epochs=5"])

    assert job.total_steps(4000) == 310


def test_a_warm_up_beyond_the_run_is_refused_where_epochs_become_steps(tmp_path: Path):
    job = load(written(tmp_path, GOOD), ["epochs=5", "optimizer.warmup_steps=311"])

    with pytest.raises(JobError, match=r"^job job optimizer\.warmup_steps: is larger than the run's 310 steps$"):
        job.total_steps(4000)


def test_reading_a_job_loads_no_torch():
    code = "import training.config.job, sys; training.config.job.load('mnist', []); sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
