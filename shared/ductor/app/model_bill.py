"""What runs used of language models, and what that costs where a price is known. Reads only; invents no price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ductor.app.headers import run_pk
from ductor.app.library import Library
from ductor.app.prices import MILLION, Prices
from ductor.model.attempt import Attempt, ModelUse, added
from ductor.model.enums import StepType
from ductor.model.errors import RefusedError
from ductor.model.run import RunState
from ductor.ports import Item, Table

MAX_ATTEMPTS: Final = 2_000
"""Attempts of AI steps that one answer looks at, fewer if they are spread over many runs. Of more it says so."""

_AI: Final = frozenset({StepType.AI_ACTION, StepType.AI_AGENT})
_PAGE: Final = 200
_A_LOOK: Final = 4
"""What asking the table counts for: hundreds of runs below with a few attempts each are as much work."""

_decode = msgspec.json.Decoder(Attempt).decode


class ModelLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was used of one model, tokens as its provider counts them; `amount` is None where no price is set."""

    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    amount: float | None


class ModelUses:
    """Adds up what the attempts of runs used. One for each answer: `truncated` once it has looked at too many."""

    def __init__(self, table: Table, library: Library) -> None:
        self._table = table
        self._library = library
        self._left = MAX_ATTEMPTS
        self.truncated = False

    def of(self, states: Iterable[RunState]) -> tuple[ModelUse, ...]:
        """The sum over runs, one entry for each model."""
        found: tuple[ModelUse, ...] = ()
        for state in states:
            for row in self._attempts(state):
                for use in _decode(row.body).usage:
                    found = added(found, use)
        return found

    def _attempts(self, state: RunState) -> Iterator[Item]:
        for ref in self._asking(state):
            for mark in ("#", "@"):
                yield from self._rows(run_pk(state.run_id), f"A#{ref}{mark}")

    def _rows(self, pk: str, prefix: str) -> Iterator[Item]:
        cursor: str | None = None
        while True:
            if self._left <= 0:
                self.truncated = True
                return
            page = self._table.query(pk, prefix=prefix, cursor=cursor, limit=min(_PAGE, self._left))
            self._left -= max(_A_LOOK, len(page.items))
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    def _asking(self, state: RunState) -> tuple[str, ...]:
        """The run's AI steps; no other step asks a model, and most runs have none."""
        try:
            _, definition = self._library.load(state.origin.tenant, state.origin.definition_id)
        except RefusedError:
            return ()
        return tuple(step.ref for step in definition.steps if step.type in _AI)


def model_bill(uses: Iterable[ModelUse], prices: Prices) -> tuple[ModelLine, ...]:
    """A line for each model, by name."""
    return tuple(
        ModelLine(
            provider=use.provider,
            model=use.model,
            calls=use.calls,
            input_tokens=use.input_tokens,
            output_tokens=use.output_tokens,
            amount=_amount(use, prices),
        )
        for use in sorted(uses, key=lambda use: (use.provider, use.model))
    )


def _amount(use: ModelUse, prices: Prices) -> float | None:
    price = prices.models.get(f"{use.provider}/{use.model}") or prices.models.get(use.model)
    if price is None:
        return None
    return (use.input_tokens * price.input_tokens + use.output_tokens * price.output_tokens) / MILLION
