"""What all transitions are: frozen, small, told apart in JSON by their tag `t`."""

from __future__ import annotations

import msgspec


class TransitionBase(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="t", gc=False):
    """Base of all transitions."""
