"""What an installation says about its actions: a host that could never be met is told at the start."""

from __future__ import annotations

import pytest

from ductor.actions.errors import ActionLoadError
from ductor.actions.settings import installed_actions
from ductor.steps.duration import parse_duration


@pytest.mark.parametrize("name", ["127.0.0.1:8080", "http://intern.test", "intern.test/api"])
def test_an_allowed_host_with_port_or_path_is_refused(name: str) -> None:
    with pytest.raises(ActionLoadError, match=r"DUCTOR_HTTP_ALLOWED_HOSTS.*without port or path"):
        installed_actions({"DUCTOR_HTTP_ALLOWED_HOSTS": f"good.test, {name}"}, parse_duration)


def test_allowed_hosts_are_names_and_addresses_of_both_kinds() -> None:
    installed_actions({"DUCTOR_HTTP_ALLOWED_HOSTS": "good.test,127.0.0.1,fd00::1"}, parse_duration)
