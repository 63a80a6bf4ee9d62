"""Where the command line finds its server and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from ductor.cli.access import find, read_env
from ductor.cli.failure import Exit, Failure

ENV = "export DUCTOR_API_KEY='dk_file'\nexport DUCTOR_TENANT_ID=t-file\nexport DUCTOR_API_URL=http://localhost:9000\n"


def test_environment_wins_and_never_mixes_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(ENV)

    access = find(tmp_path, {"DUCTOR_API_KEY": "dk_env", "DUCTOR_TENANT_ID": "t-env"})

    assert (access.key, access.tenant, access.url) == ("dk_env", "t-env", "http://localhost:8080")


def test_file_fills_in_when_the_environment_has_no_key(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(ENV)

    access = find(tmp_path, {})

    assert (access.key, access.tenant, access.url) == ("dk_file", "t-file", "http://localhost:9000")


def test_address_of_the_environment_overrides_the_file(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(ENV)

    assert find(tmp_path, {"DUCTOR_API_URL": "http://other:1/"}).url == "http://other:1"


def test_second_name_of_the_tenant_is_read(tmp_path: Path) -> None:
    assert find(tmp_path, {"DUCTOR_API_KEY": "k", "DUCTOR_TENANT": "t-short"}).tenant == "t-short"


def test_missing_key_names_variable_file_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(Failure) as raised:
        find(tmp_path, {})

    text = "\n".join(raised.value.lines())
    assert "DUCTOR_API_KEY and DUCTOR_TENANT_ID" in text
    assert str(tmp_path / "env") in text
    assert "ductor serve" in text
    assert raised.value.code is Exit.USAGE


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://"])
def test_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(Failure, match="is not an address"):
        find(tmp_path, {"DUCTOR_API_KEY": "k", "DUCTOR_TENANT_ID": "t", "DUCTOR_API_URL": url})


def test_file_with_an_open_quote_is_named(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("export DUCTOR_API_KEY='dk")

    with pytest.raises(Failure, match="env is not a file of export lines"):
        read_env(tmp_path / "env")


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://localhost:8080", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:8080", True),
        ("https://api.host", False),
    ],
)
def test_loopback_addresses_bypass_proxies(tmp_path: Path, url: str, loopback: bool) -> None:
    assert find(tmp_path, {"DUCTOR_API_KEY": "k", "DUCTOR_TENANT_ID": "t", "DUCTOR_API_URL": url}).loopback is loopback
