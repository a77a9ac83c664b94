"""Which slices fit on a GPU together, by NVIDIA's own tables of combinations."""

from __future__ import annotations

import pytest

from infra import catalog
from infra.catalog import mig

FITS = {
    "A100-SXM4-40GB": ["7g.40gb", "4g.20gb 3g.20gb", "4g.20gb 2g.10gb 1g.5gb", "4g.20gb 1g.5gb 1g.5gb 1g.5gb",
                       "3g.20gb 3g.20gb", "3g.20gb 2g.10gb 2g.10gb", "3g.20gb 2g.10gb 1g.5gb 1g.5gb",
                       "2g.10gb 2g.10gb 2g.10gb 1g.5gb", " ".join(["1g.5gb"] * 7), " ".join(["1g.10gb"] * 4),
                       "1g.5gb+me " + " ".join(["1g.5gb"] * 6)],
    "A30": ["4g.24gb", "2g.12gb 2g.12gb", "2g.12gb 1g.6gb 1g.6gb", "1g.6gb 1g.6gb 1g.6gb 1g.6gb"],
    "H200-SXM5-141GB": ["4g.71gb 3g.71gb", "1g.35gb 1g.35gb 1g.35gb 1g.35gb"],
}  # fmt: skip
DOES_NOT = {
    "A100-SXM4-40GB": {"4g.20gb 4g.20gb": "do not fit", "3g.20gb 3g.20gb 1g.5gb": "do not fit",
                       "2g.10gb 2g.10gb 2g.10gb 2g.10gb": "do not fit", " ".join(["1g.5gb"] * 8): "do not fit",
                       "1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.5gb": "do not fit", "7g.40gb 1g.5gb": "do not fit",
                       "3g.40gb": "has no slice 3g.40gb", "1g.5gb+me 1g.5gb+me": "one slice (+me), not for 2"},
    "A30": {"3g.12gb": "has no slice", "2g.12gb 2g.12gb 1g.6gb": "do not fit"},
    "T4": {"1g.5gb": "T4 cannot be cut into slices"},
    "V100-SXM2-32GB": {"1g.5gb": "cannot be cut"},
}  # fmt: skip


@pytest.mark.parametrize(("gpu", "layout"), [(gpu, layout) for gpu in FITS for layout in FITS[gpu]])
def test_a_layout_of_nvidias_tables_is_accepted(gpu: str, layout: str) -> None:
    assert mig.refusal(catalog.load().gpu(gpu), layout.split()) is None


@pytest.mark.parametrize(("gpu", "layout"), [(gpu, layout) for gpu in DOES_NOT for layout in DOES_NOT[gpu]])
def test_what_cannot_be_cut_is_refused_with_the_reason(gpu: str, layout: str) -> None:
    assert DOES_NOT[gpu][layout] in (mig.refusal(catalog.load().gpu(gpu), layout.split()) or "accepted")


@pytest.mark.parametrize("gpu", [gpu.name for gpu in catalog.load().gpus if gpu.mig_profiles])
def test_as_many_slices_of_one_kind_fit_as_the_tables_say_and_not_one_more(gpu: str) -> None:
    found = catalog.load().gpu(gpu)

    for each in found.mig_profiles:
        many, profile = each.split("x", 1)
        assert mig.refusal(found, [profile] * int(many)) is None
        assert mig.refusal(found, [profile] * (int(many) + 1)) is not None
