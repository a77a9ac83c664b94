"""Residual networks (He et al. 2015, stride in the 3 × 3 convolution), with the state-dict keys of torchvision."""

from __future__ import annotations

from torch import Tensor, nn

from training.config.errors import refusal
from training.config.model import ResNet as Config
from training.data.images import ImageSet

# Halved four times, 17 pixels are 2 before the last stage's stride. Of a 3 × 3 convolution that strides over a single
# pixel oneDNN leaves the bf16 gradient partly unwritten (torch 2.15 on a CPU with AMX): it is what the memory held.
LEAST_IMAGE_SIZE = 17


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)


class Block(nn.Module):
    """Residual block: the path of a subclass plus the (projected) input, then ReLU."""

    expansion: int

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def path(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(self.path(x) + shortcut)


class Basic(Block):
    """Two 3 × 3 convolutions."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width, stride)
        self.conv1 = convolution(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = convolution(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)

    def path(self, x: Tensor) -> Tensor:
        return self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))


class Bottleneck(Block):
    """1 × 1 down, 3 × 3, 1 × 1 up by four."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width * self.expansion, stride)
        self.conv1 = convolution(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = convolution(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = convolution(width, width * self.expansion, 1)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)

    def path(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        return self.bn3(self.conv3(x))


class ResNet(nn.Module):
    """Stem, four stages of blocks, mean over the image, classifier."""

    def __init__(self, block: type[Block], depths: tuple[int, int, int, int], *, channels: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        inputs = 64
        for number, depth in enumerate(depths, 1):
            width = 64 * 2 ** (number - 1)
            blocks: list[Block] = []
            for place in range(depth):
                blocks.append(block(inputs, width, stride=2 if place == 0 and number > 1 else 1))
                inputs = width * block.expansion
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Images [batch, channels, height, width] → logits [batch, classes]."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        return self.fc(self.avgpool(x).flatten(1))

    def chain(self) -> list[nn.Module]:
        """What forward runs, one behind the other: where a pipeline may cut."""
        blocks = [block for number in range(1, 5) for block in self.get_submodule(f"layer{number}").children()]
        return [self.conv1, self.bn1, self.relu, self.maxpool, *blocks, self.avgpool, nn.Flatten(1), self.fc]


def resnet18(*, channels: int, classes: int) -> ResNet:
    """11,689,512 parameters for 3 channels and 1,000 classes."""
    return ResNet(Basic, (2, 2, 2, 2), channels=channels, classes=classes)


def resnet50(*, channels: int, classes: int) -> ResNet:
    """25,557,032 parameters for 3 channels and 1,000 classes."""
    return ResNet(Bottleneck, (3, 4, 6, 3), channels=channels, classes=classes)


NETWORKS = {"resnet18": resnet18, "resnet50": resnet50}


def build(config: Config, data: ImageSet) -> ResNet:
    """The network for these images; raises JobError where they are too small for it."""
    if data.image_size < LEAST_IMAGE_SIZE:
        least = (
            f"is less than the {LEAST_IMAGE_SIZE} pixels that {config.kind} needs: it would stride over single pixels"
        )
        raise refusal("data.image_size", f"{least}; model.kind = cnn takes small images")
    return NETWORKS[config.kind](channels=data.channels, classes=data.classes)
