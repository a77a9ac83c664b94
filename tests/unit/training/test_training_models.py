from __future__ import annotations

import pytest
import torch

from training import config, models
from training.data import synthetic
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


@pytest.mark.parametrize("wanted", [config.Cnn(), config.Cnn(norm="batch", width=4), config.ResNet(kind="resnet18")])
def test_a_model_answers_for_every_class(wanted: config.Cnn | config.ResNet):
    data = synthetic.load(config.Synthetic(global_batch=4, samples=8, classes=5), 1)

    logits = models.build(wanted, data, 1)(data.normalised(data.train.images))

    assert logits.shape == (8, 5)


def test_weights_are_a_function_of_the_seed():
    data = synthetic.load(config.Synthetic(global_batch=4, samples=8), 1)
    one, same, other = (models.build(config.Cnn(), data, seed).state_dict()["classifier.weight"] for seed in (1, 1, 2))

    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_without_norm_a_cnn_has_no_state_beside_its_weights():
    data = synthetic.load(config.Synthetic(global_batch=4, samples=8), 1)

    assert not list(models.build(config.Cnn(norm="none"), data, 1).buffers())
    assert list(models.build(config.Cnn(norm="batch"), data, 1).buffers())
