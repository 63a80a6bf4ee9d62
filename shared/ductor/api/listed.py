"""Pages of lists that are read as a whole: environments, connections, keys, tenants, variables. Reads no store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ductor.api.call import Call
from ductor.api.models.common import AnswerModel
from ductor.app.cursors import binding, page_size, seal, unseal

PAGED: Final = ("limit", "cursor")

Shown = TypeVar("Shown", bound=AnswerModel)


def paged(
    call: Call, shown: Sequence[Shown], rank: Callable[[Shown], str], also: tuple[str, ...] = ()
) -> tuple[list[Shown], str | None]:
    """The page that the request asks for, and the cursor of the next; all that is left without a `limit`.

    `rank` rises along the list; a cursor names the rank of the last one shown, so it outlives that one. `also` names
    further parameters of the route, whose values belong to the cursor.
    """
    query = call.query(*PAGED, *also)
    bound_to = binding(call.caller.tenant, [call.path, *(query.text(name) for name in also)])
    after = unseal(bound_to, query.text("cursor"))
    limit = query.integer("limit")
    rest = [one for one in shown if after is None or rank(one) > after]
    if limit is None or len(rest) <= page_size(limit):
        return rest, None
    return rest[:limit], seal(bound_to, rank(rest[limit - 1]))
