"""Lets DUCTOR_ACTIONS name modules of the working directory, as `python -m` would; a console script would not."""

from __future__ import annotations

import sys
from pathlib import Path


def add_working_directory() -> None:
    """Put the working directory last on the import path: it adds modules and never replaces an installed one."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
