"""Operators' requests: the intent that one becomes, and its outcome, one row per request id.

The row is what makes a repeated request do nothing, for ever.
"""

from __future__ import annotations

import msgspec

from ductor.app.headers import request_sk, run_pk
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload
from ductor.model.transition import OperatorAudited
from ductor.ports import Clock, Expect, Ids, Item, Put


class OperatorRequest(msgspec.Struct, frozen=True):
    """What an operator asks of a run. `actor` is the API key's id, `digest` stands for all that is asked.

    It is sent again under fresh ids: the queue, which swallows a repeated message id for five minutes, must never be
    what decides.
    """

    actor: str
    run_id: str
    kind: IntentKind
    request_id: str
    reason: str
    digest: str

    def intent(self, ids: Ids, clock: Clock, *, node: str = "", output: Payload = NULL, body: JSON = None) -> Intent:
        """The intent, asked for now."""
        return Intent(
            id=f"op:{ids.uuid()}",
            run_id=self.run_id,
            kind=self.kind,
            at=clock.now_ms(),
            actor=self.actor,
            request_id=self.request_id,
            request_hash=self.digest,
            reason=self.reason,
            node=node,
            output=output,
            body=body,
        )


class RequestOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of row `REQ#<request_id>`, written in the commit that applied or rejected the request. `at`: epoch ms."""

    request_id: str
    request_hash: str
    operation: str
    outcome: str
    at: int
    actor: str = ""
    reason: str = ""
    code: str = ""
    message: str = ""
    target: str = ""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(RequestOutcome)


def outcome_put(run_id: str, audited: OperatorAudited, at: int) -> Put:
    """The row to write with the commit; refused when the id has an outcome already."""
    outcome = RequestOutcome(
        request_id=audited.request_id,
        request_hash=audited.request_hash,
        operation=audited.operation,
        outcome=audited.outcome,
        at=at,
        actor=audited.actor,
        reason=audited.reason,
        code=audited.code,
        message=audited.message,
        target=audited.target,
    )
    item = Item(pk=run_pk(run_id), sk=request_sk(audited.request_id), body=_encoder.encode(outcome))
    return Put(item, Expect.ABSENT)


def read_outcome(item: Item) -> RequestOutcome:
    """The outcome in a `REQ#` row."""
    return _decoder.decode(item.body)
