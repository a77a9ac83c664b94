"""Weights from files, layers that stay as they are, and the optimizers that a job may ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from training.build import data_of, model_of
from training.checkpoint.digest import digest
from training.config.job import Job, JobError
from training.config.optimizer import Muon, Sgd
from training.loop import train
from training.optim.ema import Average
from training.optim.loss import cross_entropy
from training.optim.optimizer import MuonAndAdamW, build, learning_rate, set_rate

RESNET = "model={kind='resnet18'}", "data.image_size=32"


def weights_of(job: Job, path: Path) -> dict[str, torch.Tensor]:
    state = model_of(job, data_of(job)).state_dict()
    save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)
    return state


@pytest.mark.parametrize("name", ["weights.safetensors", "weights.pt"])
def test_a_model_starts_from_its_file(name: str, small: Callable[..., Job], tmp_path: Path):
    state = weights_of(small("seed=5"), tmp_path / name)
    job = small(f"model.weights={tmp_path / name}")

    assert digest(model_of(job, data_of(job)).state_dict()) == digest(state)


def test_a_last_layer_for_other_classes_stays_fresh(small: Callable[..., Job], tmp_path: Path):
    path = tmp_path / "weights.safetensors"
    state = weights_of(small(*RESNET, "data.channels=3"), path)
    job = small(*RESNET, "data.channels=3", "data.classes=4", f"model.weights={path}")

    built = model_of(job, data_of(job)).state_dict()

    assert built["fc.weight"].shape == (4, 512)
    assert torch.equal(built["layer4.1.conv2.weight"], state["layer4.1.conv2.weight"])


ENCODER = (
    "model={kind='text-encoder', layers=2, heads=2, width=16}",
    "data={kind='synthetic-text', global_batch=8, samples=40, held_out=8, length=16, classes=3}",
)


def of_tensorflow(name: str) -> str:
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


@pytest.mark.parametrize("name_in", [of_tensorflow, lambda name: name.removeprefix("bert.")], ids=["older", "bare"])
def test_a_text_encoder_starts_from_a_pretrained_bert_of_hugging_face(
    name_in: Callable[[str], str], small: Callable[..., Job], tmp_path: Path
):
    """Without a classifier, with the heads of its pre-training, and with places for longer texts."""
    state = model_of(small(*ENCODER, "seed=5"), data_of(small(*ENCODER))).state_dict()
    bert = {name: tensor for name, tensor in state.items() if name.startswith("bert.")}
    places = "bert.embeddings.position_embeddings.weight"
    file = {name_in(name): t for name, t in bert.items()} | {"cls.predictions.bias": torch.zeros(256)}
    file[name_in(places)] = torch.cat([bert[places], torch.ones(48, 16)])
    save_file(file, tmp_path / "model.safetensors")
    job = small(*ENCODER, f"model.weights={tmp_path / 'model.safetensors'}")

    built = model_of(job, data_of(job)).state_dict()

    assert all(torch.equal(built[name], tensor) for name, tensor in bert.items())
    assert not torch.equal(built["classifier.weight"], state["classifier.weight"])


def test_names_that_do_not_fit_are_listed(small: Callable[..., Job], tmp_path: Path):
    path = tmp_path / "weights.safetensors"
    weights_of(small("model.norm=batch"), path)
    job = small(f"model.weights={path}")

    with pytest.raises(
        JobError, match=r"model.weights: .* does not fit cnn: .* missing \(features.* unexpected \(features"
    ):
        model_of(job, data_of(job))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("none.pt", None, "none.pt does not exist"),
        ("text.pt", b"no weights", "text.pt holds no weights that can be read"),
        ("text.safetensors", b"no weights", "text.safetensors holds no weights that can be read"),
    ],
)
def test_a_file_without_weights_is_named(
    name: str, content: bytes | None, told: str, small: Callable[..., Job], tmp_path: Path
):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    job = small(f"model.weights={tmp_path / name}")

    with pytest.raises(JobError, match=told):
        model_of(job, data_of(job))


@pytest.mark.parametrize("wrapped", [{"step": 7, "model": {}}, [torch.zeros(1)]])
def test_a_file_with_more_than_weights_is_told_apart(wrapped: object, small: Callable[..., Job], tmp_path: Path):
    torch.save(wrapped, tmp_path / "run.pt")
    job = small(f"model.weights={tmp_path / 'run.pt'}")

    with pytest.raises(JobError, match=r"run\.pt holds more than tensors by name"):
        model_of(job, data_of(job))


def test_frozen_layers_keep_weights_and_statistics(small: Callable[..., Job]):
    job = small(
        "model={kind='cnn', norm='batch', width=4, freeze=['features.0.*', 'features.1.*']}",
        "steps=2",
        "optimizer.lr=0.1",
    )
    model = model_of(job, data_of(job))
    model.train()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    optimizer = build(job.optimizer, model)

    model(torch.randn(8, 1, 16, 16)).sum().backward()
    optimizer.step()

    changed = {name for name, t in model.state_dict().items() if not torch.equal(t, before[name])}
    assert not any(name.startswith(("features.0.", "features.1.")) for name in changed)
    assert {"features.3.weight", "features.4.running_mean", "classifier.weight"} <= changed


@pytest.mark.parametrize(
    ("pattern", "told"), [("layer9.*", "'layer9.*' matches no parameter"), ("*", "leaves no parameter to train")]
)
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str, told: str, small: Callable[..., Job]):
    job = small(f"model={{kind='cnn', freeze=['{pattern}']}}")

    with pytest.raises(JobError, match=told):
        model_of(job, data_of(job))


def test_muon_takes_the_matrices_inside_and_adamw_the_rest():
    model = nn.ModuleDict({"embedding": nn.Embedding(8, 4), "hidden": nn.Linear(4, 4), "classifier": nn.Linear(4, 2)})

    optimizer = build(Muon(lr=0.1, adamw_lr=0.01, weight_decay=0.1), model)
    set_rate(optimizer, 0.05)

    assert isinstance(optimizer, MuonAndAdamW)
    inner, *rest = optimizer.param_groups
    assert [id(p) for p in inner["params"]] == [id(model["hidden"].weight)]
    assert inner["lr"] == pytest.approx(0.05)
    assert [group["lr"] for group in rest] == pytest.approx([0.005, 0.005])


def test_a_group_that_is_split_stays_with_its_part():
    """As ranks of tensor parallelism split them, whose cut parameters need groups of their own."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    optimizer = build(Muon(lr=0.1, adamw_lr=0.01), model)
    for group in list(optimizer.param_groups):
        first, second = group["params"]
        group["params"] = [first]
        optimizer.add_param_group({**group, "params": [second]})
    optimizer.load_state_dict(optimizer.state_dict())
    before = [parameter.detach().clone() for parameter in model.parameters()]

    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()

    assert not any(map(torch.equal, before, model.parameters()))


def test_muon_resumes_to_the_same_bits(small: Callable[..., Job]):
    table = "data={kind='synthetic-text', global_batch=8, samples=64, held_out=8, length=16}"
    settings = (table, "model={kind='gpt', layers=1, heads=2, width=8}", "optimizer={kind='muon', lr=0.01, ema=0.9}")
    straight = train(small(*settings, "steps=6", out="straight"))

    class After:
        left = 4

        def requested(self) -> bool:
            self.left -= 1
            return self.left < 0

    stopped = train(small(*settings, "steps=6", out="parts"), stop=After())
    resumed = train(small(*settings, "steps=6", out="parts"))

    assert not stopped.finished
    assert resumed.digest == straight.digest


def test_an_average_is_in_place_only_while_it_is_wanted():
    model = nn.Linear(1, 1, bias=False)
    average = Average(model, keep=0.9)
    with torch.no_grad():
        model.weight.fill_(10.0)
    average.update(1000)
    with average.in_place():
        inside = model.weight.item()

    assert inside == pytest.approx(average.tensors["weight"].item())
    assert inside < 10.0
    assert model.weight.item() == 10.0


def test_a_step_schedule_goes_down_in_steps():
    wanted = Sgd(lr=1.0, schedule="step", step_every=3, step_factor=0.5, warmup_steps=1)

    assert [learning_rate(wanted, step, 10) for step in range(8)] == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25]


def test_a_smoothed_label_is_spread_over_all_classes(small: Callable[..., Job]):
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    logs = logits.log_softmax(1)

    smoothed = cross_entropy(logits, torch.tensor([0]), 0.3)

    assert smoothed.item() == pytest.approx(-(0.7 * logs[0, 0] + 0.1 * logs.sum()).item())
    assert train(small("steps=1", "label_smoothing=0.3", out="a")).digest != train(small("steps=1", out="b")).digest


def test_gradients_are_cut_down_to_their_norm(small: Callable[..., Job]):
    loose, tight = (
        train(small("steps=3", f"optimizer={{kind='sgd', lr=0.5, clip_norm={c}}}", out=f"{c}")) for c in (0, 0.001)
    )

    assert loose.digest != tight.digest
    assert tight.loss == pytest.approx(2.3, abs=0.2)  # as good as untrained: ten classes
