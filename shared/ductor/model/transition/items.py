"""What happened to the items of a scatter, and to the pages of scopes that they live in."""

from __future__ import annotations

from ductor.model.errors import StepError
from ductor.model.payload import NULL, Payload
from ductor.model.transition.base import TransitionBase


class ScatterOpened(TransitionBase, frozen=True, tag="scatter_opened"):
    """The scatter has its items and waits for their ends. `items` is the list, `base` the number of its first page.

    Pages hold `size` items each; at most `window` items run at the same time, 0 = all.
    """

    node: str
    generation: int
    count: int
    items: Payload
    base: int
    size: int
    window: int = 0


class ScatterReopened(TransitionBase, frozen=True, tag="scatter_reopened"):
    """After a redrive the scatter goes through its items again; those that had succeeded stay as they are."""

    node: str
    generation: int


class PageOpened(TransitionBase, frozen=True, tag="page_opened"):
    """Scopes for the scatter's next items were made: page `page`, with `count` items from item `first` on."""

    node: str
    page: int
    first: int
    count: int
    inputs: Payload


class ItemsStarted(TransitionBase, frozen=True, tag="items_started"):
    """Items of the scatter from `first` up to but not including `until` begin. `taken`: edges into the body."""

    node: str
    first: int
    until: int
    taken: tuple[int, ...]


class ItemEnded(TransitionBase, frozen=True, tag="item_ended"):
    """An item of the scatter has its result, or failed. What still runs in a failed one is drained."""

    node: str
    index: int
    output: Payload = NULL
    error: StepError | None = None


class PageClosed(TransitionBase, frozen=True, tag="page_closed"):
    """The scatter had ended before its items: those of this page are cancelled, their attempts asked to stop."""

    node: str
    page: int


class PageLooked(TransitionBase, frozen=True, tag="page_looked"):
    """What was due in a page has been dealt with; the header learns when the page is due next."""

    page: int


class GatherCollected(TransitionBase, frozen=True, tag="gather_collected"):
    """The gather has read the pages before page `cursor`; `output` is what it has so far."""

    node: str
    cursor: int
    output: Payload
