"""Rows that find runs by label, by visibility attribute and by where they come from. They only find: what a run is

now, its header says.

Written before the commit that they belong to, and never changed; a row of a value that a run no longer has is passed
over by whoever reads the header.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ductor.app.headers import shard, sort_time
from ductor.model.enums import RunStatus
from ductor.model.json import JSON, encode
from ductor.model.run import Origin
from ductor.model.transition import NodeCompleted, RunEnded, Transition
from ductor.ports import Item, Put

TYPE: Final = "type"
ENDED: Final = "ended"
JOURNEY: Final = "journey"
ROOT: Final = "root"
PARENT: Final = "parent"
SUBJECT: Final = "subject"
SCHEDULE: Final = "schedule"
"""What a run may be found by, besides. A root is found by its own id: it needs no row to be its own root."""


def label_pk(tenant: str, key: str, value: str, number: int) -> str:
    """Partition of the runs with a label."""
    return f"RL#{tenant}#{number}#{key}#{value}"


def attribute_pk(tenant: str, name: str, value: str, number: int) -> str:
    """Partition of the runs that have, or had, this value of a visibility attribute."""
    return f"RA#{tenant}#{number}#{name}#{value}"


def origin_pk(tenant: str, kind: str, value: str, number: int) -> str:
    """Partition of the runs that come from somewhere: of a family, a tree, a parent, a subject, a schedule."""
    return f"RO#{tenant}#{number}#{kind}#{value}"


def ended_pk(tenant: str, family: str, status: RunStatus, number: int) -> str:
    """Partition of the runs of a family that ended, at least once, otherwise than well."""
    return origin_pk(tenant, ENDED, f"{alike(family)}#{status.value}", number)


def alike(slug: str) -> str:
    """A family slug with `-` and `_` made the same."""
    return slug.replace("-", "_")


def value_text(value: JSON) -> str:
    """A visibility attribute as filters spell it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


def index_puts(origin: Origin, transitions: Iterable[Transition], *, first: bool) -> list[Put]:
    """The rows that a commit of these transitions needs. `first`: no earlier one has entered the run."""
    keys = later_keys(origin, transitions) | (first_keys(origin) if first else set())
    return [Put(Item(pk=pk, sk=sk)) for pk, sk in sorted(keys)]


def first_keys(origin: Origin) -> set[tuple[str, str]]:
    """The rows that a run is entered under from its start."""
    return {(pk, index_sort(origin)) for pk in (*_label_keys(origin), *_origin_keys(origin))}


def later_keys(origin: Origin, transitions: Iterable[Transition]) -> set[tuple[str, str]]:
    """The rows that these transitions enter it under."""
    found: set[str] = set()
    for transition in transitions:
        if isinstance(transition, NodeCompleted) and transition.attributes:
            found.update(_attribute_keys(origin, transition.attributes.items()))
        elif isinstance(transition, RunEnded) and transition.status is not RunStatus.COMPLETED:
            found.add(ended_pk(origin.tenant, origin.family_slug, transition.status, shard(origin.run_id)))
    return {(pk, index_sort(origin)) for pk in found}


def index_sort(origin: Origin) -> str:
    return f"{sort_time(origin.created_at)}#{origin.run_id}"


def _label_keys(origin: Origin) -> Iterator[str]:
    number = shard(origin.run_id)
    return (label_pk(origin.tenant, key, value, number) for key, value in origin.labels)


def _origin_keys(origin: Origin) -> Iterator[str]:
    number, tenant = shard(origin.run_id), origin.tenant
    yield origin_pk(tenant, TYPE, alike(origin.family_slug), number)
    if origin.root_run_id not in ("", origin.run_id):
        yield origin_pk(tenant, ROOT, origin.root_run_id, number)
    if origin.journey_id not in ("", origin.run_id, origin.root_run_id):
        yield origin_pk(tenant, JOURNEY, origin.journey_id, number)
    if origin.parent_run_id:
        yield origin_pk(tenant, PARENT, origin.parent_run_id, number)
    if origin.subject_id:
        yield origin_pk(tenant, SUBJECT, origin.subject_id, number)
    if by_schedule(origin):
        yield origin_pk(tenant, SCHEDULE, alike(origin.family_slug), number)


def by_schedule(origin: Origin) -> bool:
    """Whether the schedule of its family started the run."""
    return bool(origin.scheduled_at)


def _attribute_keys(origin: Origin, attributes: Iterable[tuple[str, JSON]]) -> Iterator[str]:
    number = shard(origin.run_id)
    return (attribute_pk(origin.tenant, name, value_text(value), number) for name, value in attributes)
