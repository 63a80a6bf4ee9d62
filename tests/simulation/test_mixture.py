"""Random worlds really do everything that operators can do: all controls, alone and over many runs, and forks."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import msgspec

from ductor.model import transition as tr
from ductor.model.intent import OPERATOR_KINDS
from ductor.testing.batches import batches_of
from ductor.testing.chaos import PROFILES
from ductor.testing.seeds import run_seed

BUSY = msgspec.structs.replace(PROFILES["storm"], operators=1.0)
"""The storm, with operators in every world."""

SEEDS = range(40_070, 40_170)


def test_random_worlds_mix_all_controls_and_every_one_of_them_is_applied() -> None:
    applied: Counter[str] = Counter()
    with patch.dict(PROFILES, {"storm": BUSY}):
        for seed in SEEDS:
            world = run_seed(seed)
            told = [one for run_id in world.run_ids() for one in world.history(run_id)]
            audits = [one for one in told if isinstance(one, tr.OperatorAudited) and one.outcome == "applied"]
            applied.update(one.operation for one in audits)
            applied["batch"] += sum(batch.accepted > 0 for batch in batches_of(world))
    wanted = {*(kind.value for kind in OPERATOR_KINDS), "reset", "batch"}
    assert wanted - {name for name, count in applied.items() if count} == set()
