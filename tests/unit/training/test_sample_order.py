from __future__ import annotations

import itertools

import numpy as np

from training.data.sampler import global_batch, permutation, share
from training.data.transforms.draw import counters, drawn

SAMPLES, BATCH, SEED = 100, 24, 7


def test_any_step_can_be_asked_for_without_those_before():
    in_order = [global_batch(SEED, step, SAMPLES, BATCH).tolist() for step in range(12)]
    permutation.cache_clear()

    assert [global_batch(SEED, step, SAMPLES, BATCH).tolist() for step in reversed(range(12))] == in_order[::-1]


def test_the_order_is_the_same_on_every_machine():
    assert permutation(SEED, 0, 10).tolist() == [8, 4, 1, 6, 3, 2, 7, 5, 9, 0]


def test_an_epoch_shows_no_sample_twice_and_epochs_differ():
    first = np.concatenate([global_batch(SEED, step, SAMPLES, BATCH) for step in range(4)])
    second = np.concatenate([global_batch(SEED, step, SAMPLES, BATCH) for step in range(4, 8)])

    assert len(set(first.tolist())) == len(first) == 96
    assert first.tolist() != second.tolist()


def test_the_shares_of_any_number_of_ranks_make_up_the_same_batch():
    batch = global_batch(SEED, 3, SAMPLES, BATCH)

    for ways in (1, 2, 3, 5, 24):
        shares = [share(batch, which, ways) for which in range(ways)]
        assert sorted(np.concatenate(shares).tolist()) == sorted(batch.tolist())
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_samples_random_bits_do_not_depend_on_its_batch():
    together = counters(SEED, range(5, 6), np.arange(50))

    assert counters(SEED, range(5, 6), np.array([17, 3])).tolist() == together[[17, 3]].tolist()
    assert len(set(together.tolist())) == 50
    assert counters(SEED, range(6, 7), np.arange(50)).tolist() != together.tolist()


def test_what_a_model_draws_from_differs_by_seed_step_and_sample_and_is_the_same_on_every_machine():
    assert drawn(1, 0, 7) == 3971410294624460766
    assert len({drawn(*which) for which in itertools.product(range(5), repeat=3)}) == 125
