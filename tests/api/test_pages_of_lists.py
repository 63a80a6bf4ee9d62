"""Every list of the API takes `limit` and `cursor`, those that are read as a whole too."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.world import ApiWorld

from ductor.api.app import api_routes

LISTS = {
    "/api/environments": "key",
    "/api/connections": "slug",
    "/api/admin/api-keys": "id",
    "/api/admin/tenants": "id",
    "/api/variables": "name",
}


@pytest.fixture
def full(world: ApiWorld) -> ApiWorld:
    """Five of everything, before the eyes of the operator."""
    first = world.tenants.first_start(world.keys, reissue=True)
    assert first.admin_key is not None
    world.tenant, world.key = first.tenant, first.admin_key.plaintext
    for number in range(5):
        world.call("POST", "/api/environments", {"key": f"e{number}"})
        world.call("PUT", f"/api/variables/v{number}", {"value": number})
        world.call("POST", "/api/admin/api-keys", {"name": f"k{number}", "roles": ["viewer"]})
        world.call("POST", "/api/admin/tenants", {"name": f"t{number}"})
        secrets = {"token": "abcdefgh"}
        settings = {"base_url": "https://api.example.com"}
        body = {"slug": f"c{number}", "type": "http", "settings": settings, "secrets": secrets}
        world.call("POST", "/api/connections", body)
    return world


def pages(world: ApiWorld, path: str, limit: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    cursor = ""
    while True:
        answer = world.call("GET", path, query=f"limit={limit}{f'&cursor={cursor}' if cursor else ''}")
        assert answer.status == 200, answer.text
        found.append([one[LISTS[path]] for one in answer.json["data"]])
        cursor = answer.json["next_cursor"]
        if cursor is None:
            return found


@pytest.mark.parametrize("path", LISTS)
def test_pages_together_are_the_whole_list(full: ApiWorld, path: str) -> None:
    whole = [one[LISTS[path]] for one in full.call("GET", path).json["data"]]
    assert len(whole) >= 5
    for limit in (1, 2, 200):
        found = pages(full, path, limit)
        assert [name for page in found for name in page] == whole
        assert max(map(len, found)) <= limit


def test_a_page_goes_on_although_its_last_one_was_removed(full: ApiWorld) -> None:
    first = full.call("GET", "/api/connections", query="limit=2").json
    full.call("DELETE", "/api/connections/c1")
    rest = full.call("GET", "/api/connections", query=f"limit=9&cursor={first['next_cursor']}").json["data"]
    assert [one["slug"] for one in rest] == ["c2", "c3", "c4"]


@pytest.mark.parametrize("path", LISTS)
def test_odd_pages_are_refused(full: ApiWorld, path: str) -> None:
    assert full.call("GET", path, query="limit=0").codes == [("limit", "FIELD_INVALID")]
    assert full.call("GET", path, query="limit=201").codes == [("limit", "FIELD_INVALID")]
    other = full.call("GET", "/api/workflow-definitions", query="limit=1").json["next_cursor"] or "x"
    assert full.call("GET", path, query=f"cursor={other}").codes == [("cursor", "CURSOR_INVALID")]


def test_every_answer_with_a_next_cursor_can_be_asked_for_the_next(full: ApiWorld) -> None:
    """But for the types of connections: they are as many as the release has."""
    paged = [route for route in api_routes(full.deps) if route.answer and "next_cursor" in route.answer.model_fields]
    without = [route.path for route in paged if not {"limit", "cursor"} <= set(route.query)]
    assert without == ["/api/connections/types"]
