"""What has no rule of its own trains on every mesh as on one rank; neither sequence, heads nor widths divide."""

import pytest
from modules import MODULES
from training import Settings, assert_equal, nd_run


@pytest.mark.parametrize("mesh", ["tp2", "fsdp2,cp2,tp3"])
@pytest.mark.parametrize("name", [*MODULES, "bloom", "cohere", "falcon", "falcon-4-1", "gpt_neox"])
def test_trains_as_one_rank(name, mesh, imported, one_rank, tokens, tmp_path):
    how = Settings(optimizer="sgd", lr=0.3, steps=3, batch=4, seq=13)
    ours = nd_run(imported(name, how.batch, how.seq), tokens[0], how, tmp_path, mesh)
    assert_equal(name, ours, one_rank(name, how), compare_weights=True)


def test_gathers_a_single_element_per_microbatch(imported, one_rank, tokens, tmp_path):
    """With its unit, not once before all microbatches as other single numbers."""
    how = Settings(optimizer="sgd", lr=0.3, steps=3, batch=12, seq=13)
    ours = nd_run(imported("narrow", 6, how.seq), tokens[0], how, tmp_path, "fsdp3", options=["--microbatches=2"])
    assert_equal("narrow", ours, one_rank("narrow", how), compare_weights=True)
