"""The HTTP API as the commands use it: one method per route, refusals as `Failure` with every field and code."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx

from ductor import __version__
from ductor.cli.access import Access
from ductor.cli.failure import Exit, Failure

TIMEOUT_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5.0

Document = dict[str, Any]

_HINTS: Final = {
    "UNAUTHENTICATED": "this server does not know the key; source the `env` file of its data folder",
    "DEFINITION_NOT_PUBLISHED": "publish the draft first, then trigger the id at published.id",
    "IDEMPOTENCY_KEY_REUSED": "use a new key for a new request, or repeat the first request unchanged",
    "TENANT_MISMATCH": "DUCTOR_TENANT_ID must be the tenant of DUCTOR_API_KEY; source both from one `env` file",
}


class Refused(Failure):
    """The server answered with an error. `codes` are `error_code` and the specific code of each of `items`."""

    def __init__(self, status: int, body: Document) -> None:
        items = [item for item in body.get("errors") or () if isinstance(item, dict)]
        top = str(body.get("error_code") or f"HTTP {status}")
        self.status = status
        self.items = items
        self.codes = (top, *(str(item.get("code", "")) for item in items))
        message = str(body.get("message") or "the server refused the request")
        told = len(items) == 1 and items[0].get("message") == message
        super().__init__(
            f"{top}: {_item(items[0]) if told else message}",
            code=Exit.REFUSED,
            details=() if told else tuple(map(_item, items)),
            hint=next((_HINTS[code] for code in reversed(self.codes) if code in _HINTS), ""),
        )


class Unreachable(Failure):
    """No answer: nothing listens there, or the connection broke. The request may or may not have been applied."""

    def __init__(self, url: str, error: Exception) -> None:
        reason = str(error) or type(error).__name__
        super().__init__(
            f"no Ductor server answers at {url} ({reason})",
            code=Exit.UNREACHABLE,
            hint="start one with `ductor serve`, or set DUCTOR_API_URL",
        )


class Client:
    """A connection to one server as one caller. Not for several threads."""

    def __init__(self, access: Access, transport: httpx.BaseTransport | None = None) -> None:
        self.url = access.url
        self._transport = transport
        self._http = httpx.Client(
            base_url=access.url,
            headers={
                "Authorization": f"Bearer {access.key}",
                "X-Tenant-ID": access.tenant,
                "User-Agent": f"ductor-cli/{__version__}",
            },
            timeout=httpx.Timeout(TIMEOUT_SECONDS, connect=CONNECT_SECONDS),
            transport=transport,
            trust_env=not access.loopback,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def create_definition(self, document: Document) -> Document:
        """The detail of the new draft. Raises Refused with ALREADY_EXISTS when the family has a draft."""
        return self._data("POST", "/api/workflow-definitions", body=document)

    def definitions(self, **filters: str) -> list[Document]:
        """All definitions that match, over as many pages as there are."""
        found: list[Document] = []
        cursor = ""
        while True:
            query = {**filters, "limit": "200", **({"cursor": cursor} if cursor else {})}
            page = self.request("GET", "/api/workflow-definitions", query=query)
            found += rows(page)
            cursor = next_cursor(page)
            if not cursor:
                return found

    def family(self, slug: str, status: str = "") -> list[Document]:
        """The draft and versions of one family. An empty name has none: to the server it would mean all families."""
        return self.definitions(family_slug=slug, **({"status": status} if status else {})) if slug else []

    def publish(self, definition_id: str, expected_draft_revision: int) -> Document:
        """`{published, draft, warnings}`: exactly the revision that was reviewed, or Refused."""
        body = {"expected_draft_revision": expected_draft_revision}
        answer = self.request("POST", f"/api/workflow-definitions/{_part(definition_id)}/publish", body=body)
        _object(answer, "published")
        return answer

    def trigger(self, definition_id: str, body: Document) -> Document:
        """`{run_id, status, …}`. With an idempotency key a repeat answers the same run."""
        return self.request("POST", f"/api/v2/workflow-definitions/{_part(definition_id)}:trigger", body=body)

    def run(self, run_id: str) -> Document:
        """The `data` of a run, with its `summary`."""
        return self._data("GET", f"/api/workflows/runs/{_part(run_id)}")

    def tree(self, run_id: str) -> Document:
        """All runs that one trigger led to."""
        return self._data("GET", f"/api/workflows/runs/{_part(run_id)}/tree")

    def cost(self, run_id: str) -> Document:
        """What a run costs on AWS, as an estimate."""
        return self._data("GET", f"/api/workflows/runs/{_part(run_id)}/cost")

    def output(self, run_id: str) -> Any:
        """The output of a completed run, not redacted, wherever the server has it."""
        answer = self._data("GET", f"/api/workflows/runs/{_part(run_id)}/output")
        return self._elsewhere(str(answer["output_url"])) if "output_url" in answer else answer.get("output")

    def runs(self, query: dict[str, str]) -> tuple[list[Document], str]:
        """One page of runs and the cursor of the next, empty on the last."""
        page = self.request("GET", "/api/workflows/runs", query=query)
        return rows(page), next_cursor(page)

    def operate(self, run_id: str, verb: str, body: Document) -> Document:
        """Send a control of a run."""
        return self.request("POST", f"/api/v2/workflow-runs/{_part(run_id)}:{verb}", body=body)

    def snapshot(self, run_id: str) -> Document:
        """Every node's state and output, as stored."""
        return self.request("GET", f"/api/v2/workflow-runs/{_part(run_id)}/snapshot")

    def request(
        self, method: str, path: str, *, body: Document | None = None, query: dict[str, str] | None = None
    ) -> Document:
        """The JSON object that the route answers. Raises Refused, Unreachable."""
        try:
            answer = self._http.request(method, path, json=body, params=query)
        except httpx.HTTPError as error:
            raise Unreachable(self.url, error) from error
        document = _decoded(answer)
        if answer.is_success or answer.status_code == httpx.codes.SEE_OTHER:
            return document
        raise Refused(answer.status_code, document)

    def _elsewhere(self, url: str) -> Any:
        """The JSON at an address that the server gave; it gets no key of ours."""
        try:
            with httpx.Client(timeout=TIMEOUT_SECONDS, transport=self._transport) as plain:
                return plain.get(url).raise_for_status().json()
        except (httpx.HTTPError, ValueError) as error:
            raise Failure(f"the output could not be read at the address that the server gave: {error}") from error

    def _data(self, method: str, path: str, *, body: Document | None = None) -> Document:
        return _object(self.request(method, path, body=body), "data")


def rows(page: Document) -> list[Document]:
    """The rows of a list answer: under `data`."""
    found = page.get("data")
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def next_cursor(page: Document) -> str:
    """The cursor of the next page, empty on the last."""
    return str(page.get("next_cursor") or "")


def _decoded(answer: httpx.Response) -> Document:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if isinstance(document, dict):
        return document
    if answer.is_success:
        raise Failure(f"{answer.url} does not answer like a Ductor server", code=Exit.UNREACHABLE)
    return {"message": f"the answer is not JSON ({answer.reason_phrase})"}


def _object(answer: Document, name: str) -> Document:
    found = answer.get(name)
    if not isinstance(found, dict):
        raise Failure(f"the server's answer has no {name}: it is not a Ductor server, or of another release")
    return found


def _item(item: Document) -> str:
    place = f"{item['field']}: " if item.get("field") else ""
    return f"{place}{item.get('message', '')} ({item.get('code', '')})"


def _part(value: str) -> str:
    return quote(value, safe="")
