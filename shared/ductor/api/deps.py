"""What the API is made of: the use cases and ports that the composition root hands it."""

from __future__ import annotations

from dataclasses import dataclass

from ductor.api.auth import Identity
from ductor.app.administration import Administration
from ductor.app.bridge import Bridge
from ductor.app.control import Controls
from ductor.app.decisions import Decisions
from ductor.app.definitions import Definitions
from ductor.app.events import Events
from ductor.app.keys import Keys
from ductor.app.operations import Operations
from ductor.app.run_cost import RunCosts
from ductor.app.runs import Runs
from ductor.app.schedules import Schedules
from ductor.app.signals import Signals
from ductor.app.successors import Continuations
from ductor.app.tree import RunTrees
from ductor.app.trigger import Triggers
from ductor.ports import Clock, Ids


@dataclass(frozen=True)
class ApiDeps:
    """Everything behind the routes. All of it is called from several threads."""

    identity: Identity
    keys: Keys
    definitions: Definitions
    triggers: Triggers
    controls: Controls
    decisions: Decisions
    events: Events
    bridge: Bridge
    signals: Signals
    runs: Runs
    schedules: Schedules
    operations: Operations
    continuations: Continuations
    trees: RunTrees
    costs: RunCosts
    admin: Administration
    clock: Clock
    ids: Ids
