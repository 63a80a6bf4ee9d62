"""When schedules fire: pure arithmetic over instants. Starts nothing, stores nothing, reads no clock."""

from ductor.schedules.occurrences import contains, next_after, preview
from ductor.schedules.recurrence import recurrence
from ductor.schedules.spec import Spec, read_spec

__all__ = ["Spec", "contains", "next_after", "preview", "read_spec", "recurrence"]
