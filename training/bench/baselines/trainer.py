"""Hugging Face's Trainer with its BertForSequenceClassification, weights, samples and settings those of the job."""
# pyright: reportMissingImports=false

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from training.bench.baselines import serve
from training.build import data_of, model_of
from training.config.job import Job
from training.config.model import TextEncoder
from training.config.optimizer import AdamW
from training.data.text import PADDING, TextSet


class Documents(Dataset):
    """Samples one by one, under the names that the model's `forward` knows."""

    def __init__(self, tokens: Tensor, labels: Tensor) -> None:
        self.tokens, self.mask, self.labels = tokens, (tokens != PADDING).long(), labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": self.tokens[index], "attention_mask": self.mask[index], "labels": self.labels[index]}


class Clock(TrainerCallback):
    """From the first step to the last, as ours is timed."""

    began = ended = 0.0

    def on_step_begin(self, args: object, state: object, control: object, **_: object) -> None:
        self.began = self.began or time.perf_counter()

    def on_step_end(self, args: object, state: object, control: object, **_: object) -> None:
        self.ended = time.perf_counter()


def runner_of(job: Job) -> Callable[[], float]:
    data = data_of(job)
    config, optimizer = job.model, job.optimizer
    assert isinstance(data, TextSet)
    assert isinstance(config, TextEncoder)
    assert isinstance(optimizer, AdamW)
    documents = Documents(*data.train.at(np.arange(len(data.train)), None))
    shape = BertConfig(
        vocab_size=data.vocabulary,
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        max_position_embeddings=data.length,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        num_labels=data.classes,
        pad_token_id=PADDING,
    )
    settings = TrainingArguments(
        output_dir=str(job.out),
        use_cpu=True,
        per_device_train_batch_size=job.data.global_batch,
        dataloader_drop_last=True,
        max_steps=job.total_steps(len(data.train)),
        learning_rate=optimizer.lr,
        weight_decay=optimizer.weight_decay,
        max_grad_norm=optimizer.clip_norm,
        lr_scheduler_type=optimizer.schedule,
        logging_steps=job.log_every,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=job.seed,
    )

    def run_round() -> float:
        model = BertForSequenceClassification(shape)
        model.load_state_dict(model_of(job, data).state_dict())
        clock = Clock()
        Trainer(model=model, args=settings, train_dataset=documents, callbacks=[clock]).train()
        return clock.ended - clock.began

    return run_round


if __name__ == "__main__":
    serve(runner_of, "transformers", "accelerate", "torch")
