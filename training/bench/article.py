"""The baseline of `bench naive`: a training script as articles write it.

A Dataset that opens every sample as a PIL image and augments it, a DataLoader without workers, fp32 in the default
layout, `.item()` at every step for the running loss, and `torch.save` in the step loop. Nothing is slowed down on
purpose.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    """Images one by one: from array to PIL, a random affine map, perhaps mirrored, to tensor, normalised.

    images: [samples, height, width] or [samples, height, width, 3]. shift: most pixels of the random move. warp: most
    that is added to each entry of the random 2 × 2 map.
    """

    def __init__(
        self, images: np.ndarray, labels: np.ndarray, *, mean: float, std: float, shift: int, warp: float, flip: bool
    ) -> None:
        self.images, self.labels = images, labels
        self.mean, self.std, self.shift, self.warp, self.flip = mean, std, shift, warp, flip

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.moved(Image.fromarray(self.images[index]))
        if self.flip and np.random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = np.atleast_3d(np.array(image, dtype=np.float32))
        tensor = torch.from_numpy(pixels).permute(2, 0, 1)
        return (tensor - self.mean) / self.std, int(self.labels[index])

    def moved(self, image: Image.Image) -> Image.Image:
        (a, b), (d, e) = np.eye(2) + np.random.uniform(-self.warp, self.warp, size=(2, 2))
        dx, dy = np.random.randint(-self.shift, self.shift + 1, size=2)
        x, y = image.width / 2, image.height / 2
        around_the_middle = (a, b, x - a * x - b * y + dx, d, e, y - d * x - e * y + dy)
        return image.transform(image.size, Image.Transform.AFFINE, around_the_middle, Image.Resampling.BILINEAR)


def train(
    model: nn.Module, pictures: Pictures, *, batch: int, steps: int, lr: float, save_every: int, file: Path
) -> float:
    """Train for so many steps; returns the last running loss."""
    loader = DataLoader(pictures, batch_size=batch, shuffle=True, drop_last=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    step = 0
    running_loss = 0.0
    while True:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            step += 1
            running_loss = 0.9 * running_loss + 0.1 * loss.item()
            if step % save_every == 0:
                torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
            if step == steps:
                return running_loss
