"""The rate limit over HTTP: status, header and body of a refusal, and which routes it leaves alone."""

from __future__ import annotations

from tests.api.world import ApiWorld

from ductor.app.entitlements import Entitlements


def limited(world: ApiWorld, rate: int) -> None:
    world.admin.entitlements.set(world.caller.tenant, Entitlements(requests_per_second=rate))


def test_too_many_requests(world: ApiWorld) -> None:
    limited(world, 2)
    replies = [world.call("GET", "/api/workflows/runs") for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    last = replies[-1]
    assert last.headers["Retry-After"] == "1"
    assert last.json["error_code"] == "RESOURCE_EXHAUSTED"
    assert last.codes == [("X-Tenant-ID", "RATE_LIMITED")]


def test_a_refused_trigger_starts_nothing(world: ApiWorld) -> None:
    definition_id = world.published()
    limited(world, 1)
    path = f"/api/v2/workflow-definitions/{definition_id}:trigger"
    assert [world.call("POST", path).status for _ in range(4)] == [202, 429, 429, 429]
    world.clock.advance(10_000)
    assert len(world.call("GET", "/api/workflows/runs").json["data"]) == 1


def test_administration_and_open_routes_are_not_limited(world: ApiWorld) -> None:
    limited(world, 1)
    assert [world.call("GET", "/api/workflows/runs").status for _ in range(2)] == [200, 429]
    assert [world.call("GET", "/healthz").status for _ in range(3)] == [200] * 3
    assert [world.call("GET", "/api/admin/tenants").status for _ in range(3)] == [200] * 3


def test_a_request_without_a_good_key_costs_no_token(world: ApiWorld) -> None:
    limited(world, 1)
    for _ in range(5):
        assert world.call("GET", "/api/workflows/runs", headers={"authorization": "Bearer dk_x_y"}).status == 401
    assert world.call("GET", "/api/workflows/runs").status == 200
