from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

from training.build import data_of, model_of
from training.config.job import Job, JobError
from training.loop import train
from training.models.attention import rotated, rotations
from training.models.bert import TextEncoder
from training.models.cnn import Cnn
from training.models.resnet import resnet18, resnet50


@pytest.mark.parametrize(("build", "parameters", "keys"), [(resnet18, 11_689_512, 122), (resnet50, 25_557_032, 320)])
def test_resnets_have_torchvisions_size(build, parameters: int, keys: int):
    model = build(channels=3, classes=1000)

    assert sum(p.numel() for p in model.parameters()) == parameters
    assert len(model.state_dict()) == keys


def test_resnet_keys_and_shapes_are_torchvisions():
    state = resnet50(channels=3, classes=1000).state_dict()

    named = {
        "conv1.weight": [64, 3, 7, 7],
        "bn1.running_var": [64],
        "layer1.0.conv3.weight": [256, 64, 1, 1],
        "layer1.0.downsample.0.weight": [256, 64, 1, 1],
        "layer1.0.downsample.1.num_batches_tracked": [],
        "layer3.5.conv2.weight": [256, 256, 3, 3],
        "layer4.2.bn3.bias": [2048],
        "fc.weight": [1000, 2048],
    }
    assert {name: list(state[name].shape) for name in named} == named
    assert "layer1.1.downsample.0.weight" not in state
    assert "layer2.0.bn2.weight" in resnet18(channels=3, classes=1000).state_dict()


@pytest.mark.parametrize("model", ["kind='cnn'", "kind='cnn', norm='batch'", "kind='resnet18'"])
def test_a_model_answers_for_every_class(model: str, small: Callable[..., Job]):
    job = small(f"model={{{model}}}", "data.classes=5", "data.image_size=32")
    found = data_of(job)

    inputs, _ = found.evaluation(np.arange(8))

    assert model_of(job, found)(inputs).shape == (8, 5)


def test_weights_are_a_function_of_the_seed(small: Callable[..., Job]):
    found = data_of(small())
    one, same, other = (model_of(small(f"seed={seed}"), found).state_dict()["classifier.weight"] for seed in (1, 1, 2))

    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_cnn_answers_the_same_in_either_layout():
    model = Cnn(channels=1, classes=10, image_size=28, width=4, norm="none")
    images = torch.randn(8, 1, 28, 28)
    plain = model(images)
    plain.square().sum().backward()
    wanted = [p.grad for p in model.parameters() if p.grad is not None]
    model.zero_grad(set_to_none=True)

    last = model.to(memory_format=torch.channels_last)(images.contiguous(memory_format=torch.channels_last))
    last.square().sum().backward()

    assert torch.allclose(last, plain, atol=1e-5)
    found = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(torch.allclose(f, w, atol=1e-4, rtol=1e-3) for f, w in zip(found, wanted, strict=True))


def test_without_norm_a_cnn_has_no_state_beside_its_weights(small: Callable[..., Job]):
    found = data_of(small())

    assert not list(model_of(small("model.norm=none"), found).buffers())
    assert list(model_of(small("model.norm=batch"), found).buffers())


def text(small: Callable[..., Job], kind: str, classes: int, *more: str) -> Job:
    table = f"data={{kind='synthetic-text', global_batch=16, samples=256, held_out=32, length=32, classes={classes}}}"
    return small(table, f"model={{kind='{kind}', layers=2, heads=2, width=16}}", *more)


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_text_encoder_sees_no_padding(pooling: str, small: Callable[..., Job]):
    job = text(small, "text-encoder", 3, f"model.pooling={pooling}")
    found = data_of(job)
    model = model_of(job, found).eval()
    tokens, _ = found.evaluation(np.arange(4))

    assert torch.allclose(model(tokens[:, :20]), model(functional.pad(tokens[:, :20], (0, 12))), atol=1e-6)


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_text_encoder_answers_for_an_empty_text(pooling: str, small: Callable[..., Job]):
    job = text(small, "text-encoder", 3, f"model.pooling={pooling}")
    model = model_of(job, data_of(job))

    answers = model(torch.tensor([[0] * 16, [5] * 16]))
    answers.sum().backward()

    assert answers.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_a_text_encoder_has_bert_base_size_and_hugging_faces_names():
    model = TextEncoder(
        vocabulary=30522, length=512, classes=2, layers=12, heads=12, width=768, dropout=0.1, pooling="first"
    )

    state = model.state_dict()

    assert sum(t.numel() for t in state.values()) == 109_483_778  # bert-base-uncased with two labels
    assert list(state["bert.encoder.layer.11.attention.self.query.weight"].shape) == [768, 768]
    assert list(state["bert.encoder.layer.0.attention.output.LayerNorm.bias"].shape) == [768]
    assert list(state["bert.embeddings.token_type_embeddings.weight"].shape) == [2, 768]


def test_a_gpt_looks_back_only(small: Callable[..., Job]):
    job = text(small, "gpt", 0)
    found = data_of(job)
    model = model_of(job, found).eval()
    tokens, _ = found.evaluation(np.arange(2))
    changed = tokens.clone()
    changed[:, 20:] = (changed[:, 20:] + 1) % 256

    logits, others = model(tokens), model(changed)

    assert logits.shape == (2, 32, 256)
    assert torch.allclose(logits[:, :20], others[:, :20], atol=1e-6)
    assert not torch.allclose(logits[:, 20:], others[:, 20:], atol=1e-3)


def test_rotary_positions_depend_on_distance_alone():
    query, key = torch.randn(2, 8)
    cos, sin = rotations(12, 8, torch.device("cpu"))

    near, far = (
        (rotated(query, cos[place], sin[place]) * rotated(key, cos[place + 3], sin[place + 3])).sum().item()
        for place in (0, 8)
    )

    assert near == pytest.approx(far, abs=1e-5)


@pytest.mark.parametrize(("kind", "classes"), [("text-encoder", 3), ("gpt", 0)])
def test_text_models_learn(kind: str, classes: int, small: Callable[..., Job]):
    job = text(small, kind, classes, "steps=60", "optimizer.lr=0.003", "model.dropout=0.1")

    result = train(job)

    assert result.accuracy is not None
    assert result.accuracy > (0.5 if classes else 0.05)  # a guess: a third, one of 256


def test_a_model_that_cannot_read_the_data_is_refused(small: Callable[..., Job]):
    with pytest.raises(JobError, match=r"--set model.kind: gpt reads tokens, and data.kind = synthetic has images"):
        small("model={kind='gpt'}")
