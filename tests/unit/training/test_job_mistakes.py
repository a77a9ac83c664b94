"""Malformed job files, each with its one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_conflicts import CONFLICTS
from written import GOOD, written

from training.config.job import JobError, load

# what replaces what in GOOD, and what is told
MISTAKES = {
    "no TOML": ("lr = 0.1", "lr = ", "job.toml:9 is not TOML: Invalid value"),
    "a key twice": ("lr = 0.1", "lr = 0.1\nlr = 0.2", "job.toml:10 is not TOML: Cannot overwrite a value"),
    "unknown top key": (
        "steps = 20",
        "stesp = 20\nsteps = 20",
        "job.toml:1 stesp: unknown key 'stesp'; did you mean 'steps'?",
    ),
    "unknown table": ("[model]", "[modle]\n[model]", "job.toml:2 modle: unknown key 'modle'; did you mean 'model'?"),
    "unknown key": (
        "lr = 0.1",
        "lr = 0.1\nmomentun = 0.9",
        "job.toml:10 optimizer.momentun: unknown key 'momentun'; did you mean 'momentum'?",
    ),
    "key of another kind": (
        "lr = 0.1",
        "lr = 0.1\nbeta1 = 0.9",
        "job.toml:10 optimizer.beta1: unknown key 'beta1'; one of lr, ",
    ),
    "unknown model": (
        '"cnn"',
        '"resnet81"',
        "job.toml:3 model.kind: unknown value 'resnet81'; did you mean 'resnet18'?",
    ),
    "no kind": ('kind = "cnn"', "width = 8", "job.toml:2 model.kind: is missing; one of cnn, resnet18, resnet50"),
    "kind is a list": ('kind = "cnn"', "kind = [1]", "job.toml:3 model.kind: unknown value '[1]'; one of cnn"),
    "table is a text": ('[model]\nkind = "cnn"', 'model = "cnn"', "job.toml:2 model.kind: is missing; one of cnn"),
    "table is missing": (
        '[model]\nkind = "cnn"\n',
        "",
        "job.toml model: is missing; its kind is one of cnn, resnet18, resnet50",
    ),
    "required key is missing": ("lr = 0.1\n", "", "job.toml:7 optimizer.lr: is missing"),
    "text for a number": ("lr = 0.1", 'lr = "0.1"', "job.toml:9 optimizer.lr: must be a number, is '0.1'"),
    "true for a number": ("steps = 20", "steps = true", "job.toml:1 steps: must be a whole number, is True"),
    "fraction for a whole number": (
        "global_batch = 64",
        "global_batch = 6.4",
        "job.toml:6 data.global_batch: must be a whole number, is 6.4",
    ),
    "number for true or false": (
        "steps = 20",
        "steps = 20\ntensorboard = 1",
        "job.toml:2 tensorboard: must be true or false, is 1",
    ),
    "zero steps": ("steps = 20", "steps = 0", "job.toml:1 steps: must be 1 or more, is 0"),
    "negative rate": ("lr = 0.1", "lr = -1", "job.toml:9 optimizer.lr: must be greater than 0, is -1"),
    "not a number": ("lr = 0.1", "lr = nan", "job.toml:9 optimizer.lr: must be a finite number, is nan"),
    "infinite": ("lr = 0.1", "lr = inf", "job.toml:9 optimizer.lr: must be a finite number, is inf"),
    "momentum of 1": (
        "lr = 0.1",
        "lr = 0.1\nmomentum = 1",
        "job.toml:10 optimizer.momentum: must be at least 0 and less than 1, is 1",
    ),
    "keep of 1": (
        "lr = 0.1",
        "lr = 0.1\n[checkpoint]\nkeep = 1",
        "job.toml:11 checkpoint.keep: must be 2 or more: the newest may be",
    ),
    "dotted key": (
        "lr = 0.1",
        "lr = 0.1\n[precision]\n'compute' = 'fp8'",
        "job.toml:11 precision.compute: unknown value 'fp8'; one of auto, fp32, tf32, bf16, fp16",
    ),
    "unknown way to share": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nkind = 'dpp'",
        "job.toml:11 parallel.kind: unknown value 'dpp'; did you mean 'ddp'?",
    ),
    "key of another way": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nkind = 'fsdp'\nshards = 2",
        "job.toml:12 parallel.shards: unknown key 'shards'; one of kind",
    ),
    "a tensor cut in one": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nkind = 'tensor'\nways = 1",
        "job.toml:12 parallel.ways: must be 2 or more, is 1",
    ),
    "an endpoint that is no URL": (
        "lr = 0.1",
        "lr = 0.1\n[checkpoint]\nupload = 's3://models'\nendpoint = 'http//localhost:9000'",
        "job.toml:12 checkpoint.endpoint: must begin with http:// or https://, is 'http//localhost:9000'",
    ),
    "an unknown interval": (
        "lr = 0.1",
        "lr = 0.1\n[checkpoint]\nevery_seconds = 'autom'",
        "job.toml:11 checkpoint.every_seconds: must be a number, is 'autom'",
    ),
    "no bucket": (
        "lr = 0.1",
        "lr = 0.1\n[checkpoint]\nupload = '/data'",
        "job.toml:11 checkpoint.upload: must be s3://bucket/prefix, is '/data'",
    ),
    "a spike that is none": (
        "lr = 0.1",
        "lr = 0.1\n[health]\nspike = 0.5",
        "job.toml:11 health.spike: must be 0 or more than 1, is 0.5",
    ),
    "patterns that are no list": (
        "[data]",
        "freeze = 'layer1.*'\n[data]",
        "job.toml:4 model.freeze: must be a list, each item a text, is 'layer1.*'",
    ),
    "a list of numbers": (
        "[data]",
        "freeze = [1]\n[data]",
        "job.toml:4 model.freeze: must be a list, each item a text",
    ),
    "fold out of range": (
        "global_batch = 64",
        "global_batch = 64\nfold = 5",
        "job.toml:7 data.fold: must be 0 to 4, is 5",
    ),
    "path is missing": (
        'kind = "mnist5k"',
        'kind = "cifar10"',
        "job.toml:4 data.path: is missing",
    ),
    "unknown decoder": (
        'kind = "mnist5k"',
        'kind = "imagefolder"\npath = "pictures"\ndecoder = "dalli"',
        "job.toml:7 data.decoder: unknown value 'dalli'; did you mean 'dali'?",
    ),
    "unknown data": (
        '"mnist5k"',
        '"cifar100"',
        "job.toml:5 data.kind: unknown value 'cifar100'; did you mean 'cifar10'?",
    ),
    "unknown text": (
        'kind = "mnist5k"',
        'kind = "text"\nsource = "bible"',
        "job.toml:6 data.source: unknown value 'bible'; one of sotu, moby-dick",
    ),
    "vocabulary too small": (
        'kind = "mnist5k"',
        'kind = "spam"\nvocabulary = 100',
        "job.toml:6 data.vocabulary: must be 512 to 65536, is 100",
    ),
    "e-mails cut before their first word": (
        'kind = "mnist5k"',
        'kind = "spam"\nlength = 2',
        "job.toml:6 data.length: must be 3 or more: [CLS] and [SEP] are two of them, is 2",
    ),
    "average that forgets nothing": (
        "lr = 0.1",
        "lr = 0.1\nema = 1.0",
        "job.toml:10 optimizer.ema: must be at least 0 and less than 1, is 1.0",
    ),
    "muon's key for sgd": (
        "lr = 0.1",
        "lr = 0.1\nadamw_lr = 0.1",
        "job.toml:10 optimizer.adamw_lr: unknown key 'adamw_lr'",
    ),
    "images changed too much": (
        "[optimizer]",
        "[augment]\nwarp = 0.9\n[optimizer]",
        "job.toml:8 augment.warp: must be 0 to 0.5, is 0.9",
    ),
    "negative mixup": (
        "[optimizer]",
        "[augment]\nmixup = -0.1\n[optimizer]",
        "job.toml:8 augment.mixup: must be 0 or more, is -0.1",
    ),
    "smoothing of 1": (
        "steps = 20",
        "steps = 20\nlabel_smoothing = 1",
        "job.toml:2 label_smoothing: must be at least 0 and less than 1, is 1",
    ),
    "trace of no steps": (
        "[optimizer]",
        "[trace]\nsteps = 0\n[optimizer]",
        "job.toml:8 trace.steps: must be 1 or more, is 0",
    ),
    "empty out": ("steps = 20", "steps = 20\nout = ''", "job.toml:2 out: must be a path, is ''"),
}


@pytest.mark.parametrize("mistake", MISTAKES | CONFLICTS)
def test_a_mistake_is_told_in_one_line_with_its_place(mistake: str, tmp_path: Path):
    old, new, told = (MISTAKES | CONFLICTS)[mistake]
    assert old in GOOD

    with pytest.raises(JobError) as error:
        load(written(tmp_path, GOOD.replace(old, new)), [])

    assert str(error.value).startswith(told)
    assert len(str(error.value).splitlines()) == 1
