"""Variables of an environment: what its runs read as VARS over the definition's own defaults. Never secrets."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require, require_authority
from ductor.app.environments import Environments
from ductor.app.refusals import invalid, not_found
from ductor.app.tenants import Environment
from ductor.model.json import JSON, encode
from ductor.ports import Clock

MAX_VARIABLES: Final = 200
MAX_VARIABLES_BYTES: Final = 65_536
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


class Variable(msgspec.Struct, frozen=True):
    """One variable of one environment."""

    environment: str
    name: str
    value: JSON


class Variables:
    """Variables are frozen into a run when it is admitted: a change is seen by runs that start after it."""

    def __init__(self, environments: Environments, clock: Clock) -> None:
        self._environments = environments
        self._clock = clock

    def list(self, caller: Caller, environment: str) -> tuple[Variable, ...]:
        """All variables of one environment, by name."""
        found = self._environments.get(caller, environment)
        return tuple(Variable(environment, name, value) for name, value in sorted(found.variables.items()))

    def set(self, caller: Caller, environment: str, name: str, value: JSON) -> Variable:
        """Set one variable. At most 200 of them and 64 KB together per environment."""
        _require(caller, environment)
        if not _NAME.fullmatch(name):
            message = "name a variable with letters, digits and _, at most 64, no digit first"
            raise invalid("FIELD_INVALID", message, "name")

        def change(before: Environment) -> Environment:
            return self._with(before, {**before.variables, name: value})

        self._environments.rewrite(caller.tenant, environment, change)
        return Variable(environment, name, value)

    def unset(self, caller: Caller, environment: str, name: str) -> None:
        """Remove one variable. Raises NOT_FOUND `VARIABLE_UNKNOWN`."""
        _require(caller, environment)

        def change(before: Environment) -> Environment:
            if name not in before.variables:
                raise not_found("VARIABLE_UNKNOWN", "this environment has no such variable", "name")
            return self._with(before, {key: value for key, value in before.variables.items() if key != name})

        self._environments.rewrite(caller.tenant, environment, change)

    def _with(self, before: Environment, variables: dict[str, JSON]) -> Environment:
        size = len(encode(variables))
        if len(variables) > MAX_VARIABLES or size > MAX_VARIABLES_BYTES:
            message = f"an environment has at most {MAX_VARIABLES} variables of {MAX_VARIABLES_BYTES} bytes together"
            raise invalid("FIELD_INVALID", message, "value")
        return msgspec.structs.replace(before, variables=variables, updated_at=self._clock.now_ms())


def _require(caller: Caller, environment: str) -> None:
    require(caller, Scope.ADMIN)
    require_authority(caller, environment)
