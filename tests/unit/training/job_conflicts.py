"""Job files whose keys are right alone and wrong together."""

from __future__ import annotations

# what replaces what in GOOD, and what is told
CONFLICTS = {
    "model for other data": (
        '"cnn"',
        '"gpt"',
        "job.toml:3 model.kind: gpt reads tokens, and data.kind = mnist5k has images",
    ),
    "steps and epochs": ("steps = 20", "steps = 20\nepochs = 2", "job.toml:2 epochs: excludes steps; keep one of them"),
    "neither steps nor epochs": ("steps = 20\n", "", "job.toml steps: is missing; write steps or epochs"),
    "two save intervals": (
        "lr = 0.1",
        "lr = 0.1\n[checkpoint]\nevery_steps = 5\nevery_seconds = 5",
        "job.toml:12 checkpoint.every_seconds: excludes checkpoint.every_steps",
    ),
    "micro batch too large": (
        "global_batch = 64",
        "global_batch = 64\nmicro_batch = 65",
        "job.toml:7 data.micro_batch: is larger than global_batch = 64",
    ),
    "nesterov without momentum": (
        "lr = 0.1",
        "lr = 0.1\nmomentum = 0\nnesterov = true",
        "job.toml:11 optimizer.nesterov: needs momentum greater than 0",
    ),
    "longer warm-up than run": (
        "lr = 0.1",
        "lr = 0.1\nwarmup_steps = 21",
        "job.toml:10 optimizer.warmup_steps: is larger than the run's 20 steps",
    ),
    "more shards than samples": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nshards = 65",
        "job.toml:11 parallel.shards: is larger than data.global_batch = 64",
    ),
    "compressed shards": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nshards = 2\ncompress = 'bf16'",
        "job.toml:12 parallel.compress: excludes shards = 2",
    ),
    "a stage without work": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nkind = 'pipeline'\nmicro_batches = 1",
        "job.toml:12 parallel.micro_batches: must be at least stages = 2",
    ),
    "a save between averages": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nkind = 'localsgd'\n[checkpoint]\nevery_steps = 12",
        "job.toml:13 checkpoint.every_steps: must be a multiple of parallel.every = 8",
    ),
    "interruptions without auto": (
        "lr = 0.1",
        "lr = 0.1\n[checkpoint]\nmtbf_hours = 2",
        'job.toml:11 checkpoint.mtbf_hours: needs every_seconds = "auto"',
    ),
    "steps left out under PowerSGD": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\ncompress = 'powersgd'\n[precision]\ncompute = 'fp16'",
        "job.toml:13 precision.compute: fp16 skips steps that overflow",
    ),
    "steps left out by a rank alone": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nkind = 'localsgd'\n[precision]\ncompute = 'fp16'",
        "job.toml:13 precision.compute: fp16 skips steps that overflow, which each rank of localsgd",
    ),
    "losses scaled on a cut model": (
        "lr = 0.1",
        "lr = 0.1\n[parallel]\nkind = 'fsdp'\n[precision]\ncompute = 'fp16'",
        "job.toml:13 precision.compute: fp16 scales losses, which fsdp does not; use bf16 or fp32",
    ),
    "an average of local weights": (
        "lr = 0.1",
        "lr = 0.1\nema = 0.9\n[parallel]\nkind = 'localsgd'",
        "job.toml:10 optimizer.ema: excludes parallel.kind = localsgd",
    ),
    "a cut model compiled": (
        'kind = "cnn"',
        'kind = "cnn"\ncompile = true\n[parallel]\nkind = "fsdp"',
        "job.toml:4 model.compile: excludes parallel.kind = fsdp",
    ),
    "text for an image model": (
        'kind = "mnist5k"',
        'kind = "spam"',
        "job.toml:3 model.kind: cnn reads images, and data.kind = spam has tokens",
    ),
    "classes for a gpt": (
        'kind = "cnn"\n[data]\nkind = "mnist5k"',
        'kind = "gpt"\n[data]\nkind = "spam"',
        "job.toml:3 model.kind: gpt needs running text, which data.kind = spam is not",
    ),
    "heads that do not divide": (
        'kind = "cnn"',
        'kind = "gpt"\nheads = 3',
        "job.toml:4 model.heads: must divide width = 128",
    ),
    "an odd number a head": (
        'kind = "cnn"',
        'kind = "gpt"\nheads = 4\nwidth = 12',
        "job.toml:4 model.heads: leaves 3 numbers a head; rotary positions need an even number",
    ),
    "step schedule without steps": (
        "lr = 0.1",
        'lr = 0.1\nschedule = "step"',
        'job.toml:7 optimizer.step_every: is missing: schedule = "step" needs it',
    ),
    "steps without step schedule": (
        "lr = 0.1",
        "lr = 0.1\nstep_every = 5",
        'job.toml:10 optimizer.step_every: needs schedule = "step", not "cosine"',
    ),
}
