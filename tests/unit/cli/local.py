"""A whole server in this process, on a port of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import uvicorn

from ductor.bootstrap.local_app import local_app
from ductor.bootstrap.local_settings import LocalSettings
from ductor.cli.access import read_env


class LocalServer:
    """Runs while the block runs. `ordinary` are the variables of a key without administrator's rights."""

    def __init__(self, data: Path, environment: Mapping[str, str]) -> None:
        self.data = data
        self._listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._app = local_app(data, LocalSettings(url=url, workers=4, environment=environment))
        config = uvicorn.Config(self._app.asgi, lifespan="off", log_level="error", ws="none")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)

    @property
    def ordinary(self) -> dict[str, Any]:
        return read_env(self.data / "env")

    def __enter__(self) -> Self:
        self._app.start()
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._app.stop()
