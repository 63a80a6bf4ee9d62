"""What a world has stored of its runs, read past the faults. Tests may also damage it there, and repair it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ductor.app.headers import HEAD, is_stalled, read_header, run_pk
from ductor.app.history import read_history
from ductor.app.pages import SCOPE_PREFIX
from ductor.app.payloads import PayloadStore
from ductor.model.attempt import Attempt
from ductor.model.json import JSON
from ductor.model.payload import Payload
from ductor.model.run import PageState, RunState
from ductor.model.transition import Transition
from ductor.ports import Item, Put
from ductor.testing.ledger import Ledger
from ductor.testing.memory import MemoryTable

_DAMAGE: Final = b"?"
_page = msgspec.json.Decoder(PageState).decode


class Records:
    """`table` and `payloads` are the stores behind the faults; `ledger` knows which runs there are."""

    table: MemoryTable
    payloads: PayloadStore
    ledger: Ledger

    def run_ids(self) -> list[str]:
        """All runs that were admitted, oldest first."""
        return list(self.ledger.runs)

    def state(self, run_id: str) -> RunState:
        """The stored header."""
        item = self.table.get(run_pk(run_id), HEAD)
        assert item is not None, f"no run {run_id}"
        state = read_header(item)
        state.version = item.version
        if state.tree is not None:
            rows = self.table.query(run_pk(run_id), prefix=SCOPE_PREFIX, limit=100_000).items
            state.loaded = {page.number: page for page in (_page(row.body) for row in rows)}
        return state

    def stalled(self, run_id: str) -> bool:
        item = self.table.get(run_pk(run_id), HEAD)
        return item is not None and is_stalled(item)

    def history(self, run_id: str) -> list[Transition]:
        """All transitions of a run so far."""
        return [entry.transition for entry in read_history(self.table, self.state(run_id))]

    def output(self, run_id: str, node: str) -> Any:
        """The recorded output of a step."""
        return self.value(run_id, self.state(run_id).root.nodes[node].output)

    def value(self, run_id: str, payload: Payload) -> JSON:
        return self.payloads.load(run_id, payload)

    def attempts(self, run_id: str) -> list[Attempt]:
        """The attempt rows of a run."""
        items = self.table.query(run_pk(run_id), prefix="A#", limit=100_000).items
        return [msgspec.json.decode(item.body, type=Attempt) for item in items]

    def damage(self, run_id: str) -> None:
        """Make a header unreadable, as a release that cannot read it would find it."""
        item = self.table.get(run_pk(run_id), HEAD)
        if item is not None and not item.body.startswith(_DAMAGE):
            self._rewrite(item, _DAMAGE + item.body)

    def damaged(self, run_id: str) -> bool:
        """Whether the header cannot be read."""
        item = self.table.get(run_pk(run_id), HEAD)
        return item is not None and item.body.startswith(_DAMAGE)

    def repair(self, run_id: str) -> None:
        """Take the damage back, if there is one."""
        item = self.table.get(run_pk(run_id), HEAD)
        if item is not None and item.body.startswith(_DAMAGE):
            self._rewrite(item, item.body.removeprefix(_DAMAGE))

    def _rewrite(self, item: Item, body: bytes) -> None:
        self.table.write([Put(msgspec.structs.replace(item, body=body, version=item.version + 1))])
