"""A handler whose answers fit into what Lambda carries. What does not is refused, with what to ask for instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from ductor.api.call import Call
from ductor.api.errors import error_answer
from ductor.model.errors import ErrorCode, refuse
from ductor.ports import Clock, Ids

MAX_RESPONSE_BYTES: Final = 6_000_000
"""Of a whole response as JSON, in which the body is a string: Lambda answers 502 above 6,291,556 bytes."""

_NEVER_TOO_LARGE: Final = MAX_RESPONSE_BYTES // 13
"""Characters of a body that fit however they are spelled: at most 12 bytes each, and the rest of the response."""

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def fitting(handler: Handler, clock: Clock, ids: Ids) -> Handler:
    """The same handler, but 413 `ANSWER_TOO_LARGE` in place of an answer that the gateway would lose."""

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        response = handler(event, context)
        if len(response["body"]) <= _NEVER_TOO_LARGE or len(json.dumps(response)) <= MAX_RESPONSE_BYTES:
            return response
        message = "the answer has more than 6 MB; ask for fewer entries (limit=…) or for the values one by one"
        refused = refuse(ErrorCode.PAYLOAD_TOO_LARGE, "ANSWER_TOO_LARGE", message, "limit")
        body = error_answer(refused, Call(event, {}, clock, ids).metadata()).model_dump_json()
        return {**response, "statusCode": 413, "body": body}

    return handle
