"""A small convolutional network for images of 28 to 32 pixels."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from training.config.model import Cnn as Config
from training.data.images import ImageSet


class Cnn(nn.Module):
    """A 5 × 5 and a 3 × 3 convolution at every other pixel, a 3 × 3 one at every pixel, then one linear layer.

    norm "none" has no statistic over a batch, so its gradient does not depend on how a global batch is cut; "batch"
    puts BatchNorm behind every convolution.
    """

    def __init__(self, *, channels: int, classes: int, image_size: int, width: int, norm: str) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *convolution(channels, width, norm, size=5, stride=2),
            *convolution(width, 2 * width, norm, stride=2),
            *convolution(2 * width, 4 * width, norm),
        )
        side = (image_size + 3) // 4
        self.classifier = nn.Linear(4 * width * side**2, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.normal_(self.classifier.weight, std=0.01)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Images [batch, channels, image_size, image_size] → logits [batch, classes]."""
        features = self.features(images)
        weight = self.classifier.weight
        if features.is_contiguous() or type(weight) is not nn.Parameter:  # or one that is cut over ranks
            return self.classifier(features.flatten(1))
        # channels last: putting the few weights in the features' order takes less than putting the many features, and
        # their gradients, in the weights' order
        weight = weight.view(-1, *features.shape[1:]).permute(0, 2, 3, 1).flatten(1)
        return functional.linear(features.permute(0, 2, 3, 1).flatten(1), weight, self.classifier.bias)

    def chain(self) -> list[nn.Module]:
        """What forward runs, one behind the other: where a pipeline may cut."""
        return [*self.features, nn.Flatten(1), self.classifier]


def build(config: Config, data: ImageSet) -> Cnn:
    """The network for images of this size."""
    shape = {"channels": data.channels, "classes": data.classes, "image_size": data.image_size}
    return Cnn(**shape, width=config.width, norm=config.norm)


def convolution(inputs: int, outputs: int, norm: str, *, size: int = 3, stride: int = 1) -> list[nn.Module]:
    """Convolution, BatchNorm where norm is "batch", ReLU."""
    batch = norm == "batch"
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=not batch)
    return [layer, *([nn.BatchNorm2d(outputs)] if batch else []), nn.ReLU(inplace=True)]
