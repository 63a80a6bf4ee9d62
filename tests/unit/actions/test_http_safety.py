"""Where `http.request` never goes, whatever a URL, a name service or a redirect says."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.unit.actions.web import Names, Web, call

from ductor.actions.addresses import AddressForbiddenError, AddressRules
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.http import HttpSettings

CLOSED = HttpSettings()
PUBLIC = "93.184.215.14"


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


def refusal(run: Callable[[], object]) -> ActionError:
    with pytest.raises(ActionError) as refused:
        run()
    return refused.value


FORBIDDEN = [
    "127.0.0.1",
    "127.9.9.9",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "198.18.0.1",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:0a00:0001::1",
    "2001:0:1:2:3:4:80ff:fffe",
    "2001:db8::1",
    "5f00::1",
]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_no_address_of_our_own_networks_is_reached(address: str) -> None:
    with pytest.raises(AddressForbiddenError):
        AddressRules().check("host.test", [address])


@pytest.mark.parametrize(
    "address", [PUBLIC, "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
)
def test_public_addresses_are_reached(address: str) -> None:
    AddressRules().check("host.test", [address])


def test_one_forbidden_address_among_public_ones_is_enough() -> None:
    with pytest.raises(AddressForbiddenError, match="private"):
        AddressRules().check("host.test", [PUBLIC, "10.0.0.1"])


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "::ffff:169.254.169.254"])
def test_allowing_private_networks_opens_no_link_local_ones(address: str) -> None:
    AddressRules(allow_private=True).check("host.test", ["10.0.0.1", "127.0.0.1", "::1", "100.64.0.1", "fd00::1"])
    with pytest.raises(AddressForbiddenError):
        AddressRules(allow_private=True).check("host.test", [address])


@pytest.mark.parametrize("host", ["api.test", "API.TEST", "api.test."])
def test_an_allowed_host_may_have_any_address(host: str) -> None:
    AddressRules(allowed_hosts=("api.test",)).check(host, ["10.0.0.1"])


@pytest.mark.parametrize("host", ["evil.api.test", "api.test.evil", "127.0.0.1"])
def test_only_the_very_host_is_allowed(host: str) -> None:
    with pytest.raises(AddressForbiddenError):
        AddressRules(allowed_hosts=("api.test",)).check(host, ["10.0.0.1"])


def test_a_name_with_a_private_address_is_refused_before_anything_is_sent(web: Web) -> None:
    web.on("/", 200)
    names = Names({"inside.test": ["127.0.0.1"]})

    error = refusal(lambda: call({"url": f"http://inside.test:{web.port}/"}, names, CLOSED))

    assert (error.code, error.retryable) == ("HTTP_ADDRESS_FORBIDDEN", False)
    assert web.seen == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::1]", "0", "017700000001"]
)
def test_no_spelling_of_this_machine_gets_through(web: Web, host: str) -> None:
    from ductor.actions.addresses import system_resolver
    from ductor.actions.http import HttpRequest
    from ductor.actions.http_args import HttpArgs

    web.on("/", 200)
    function = HttpRequest(CLOSED, system_resolver)
    error = refusal(lambda: function(HttpArgs(url=f"http://{host}:{web.port}/"), ActionContext()))

    assert error.code in {"HTTP_ADDRESS_FORBIDDEN", "HTTP_DNS_FAILED"}
    assert web.seen == []


def test_a_name_is_resolved_once_and_the_checked_address_is_used(web: Web) -> None:
    web.on("/", 200, b"ok")
    names = Names({"api.test": ["127.0.0.1"]})

    call({"url": f"http://api.test:{web.port}/"}, names)

    assert names.asked == ["api.test"]


def test_the_next_address_is_tried_when_one_cannot_be_reached(web: Web) -> None:
    web.on("/", 200, b"ok")
    # Nothing listens on this one: the server is bound to 127.0.0.1 alone.
    names = Names({"api.test": ["127.0.0.9", "127.0.0.1"]})

    assert call({"url": f"http://api.test:{web.port}/"}, names)["body"] == "ok"


@pytest.mark.parametrize(
    "location",
    ["http://inside.test:{port}/secret", "http://169.254.169.254/latest/meta-data/", "//inside.test:{port}/secret"],
)
def test_a_redirect_into_our_networks_is_refused(web: Web, location: str) -> None:
    web.on("/", 302, location=location.format(port=web.port))
    web.on("/secret", 200, b"secret")
    names = Names({"api.test": ["127.0.0.1"], "inside.test": ["127.0.0.1"], "169.254.169.254": ["169.254.169.254"]})

    error = refusal(lambda: call({"url": f"http://api.test:{web.port}/"}, names))

    assert error.code == "HTTP_ADDRESS_FORBIDDEN"
    assert [seen.path for seen in web.seen] == ["/"]


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("file:///etc/passwd", "HTTP_URL_INVALID"),
        ("ftp://api.test/", "HTTP_URL_INVALID"),
        ("http://user:pass@api.test/", "HTTP_URL_INVALID"),
        ("http://[broken/", "HTTP_URL_INVALID"),
        ("http://api.test:port/", "HTTP_REDIRECT_REFUSED"),
    ],
)
def test_a_redirect_to_no_plain_http_url_is_refused(web: Web, location: str, code: str) -> None:
    web.on("/", 302, location=location)
    names = Names({"api.test": ["127.0.0.1"]})

    assert refusal(lambda: call({"url": f"http://api.test:{web.port}/"}, names)).code == code


def test_redirects_are_followed_to_the_end(web: Web) -> None:
    for hop in range(5):
        web.on(f"/{hop}", 307, location=f"/{hop + 1}")
    web.on("/5", 200, b"there")
    names = Names({"api.test": ["127.0.0.1"]})

    assert call({"url": f"http://api.test:{web.port}/0"}, names)["body"] == "there"
    assert names.asked == ["api.test"] * 6


def test_a_sixth_redirect_is_refused(web: Web) -> None:
    web.on("/", 302, location="/")
    error = refusal(lambda: call({"url": f"http://api.test:{web.port}/"}, Names({"api.test": ["127.0.0.1"]})))

    assert (error.code, error.retryable) == ("HTTP_REDIRECT_REFUSED", False)
    assert len(web.seen) == 6


def test_an_expected_redirect_is_returned_and_not_followed(web: Web) -> None:
    web.on("/", 302, location="/next")
    args = {"url": f"http://api.test:{web.port}/", "expect_status": "302"}

    output = call(args, Names({"api.test": ["127.0.0.1"]}))

    assert (output["status"], output["headers"]["location"]) == (302, "/next")


@pytest.mark.parametrize(
    ("status", "method", "kept"),
    [(301, "GET", False), (302, "GET", False), (303, "GET", False), (307, "POST", True), (308, "POST", True)],
)
def test_a_redirected_post_repeats_its_body_only_where_http_says_so(
    web: Web, status: int, method: str, kept: bool
) -> None:
    web.on("/", status, location="/next")
    web.on("/next", 200)

    call({"method": "POST", "url": f"http://api.test:{web.port}/", "body": "x"}, Names({"api.test": ["127.0.0.1"]}))

    assert (web.seen[1].method, web.seen[1].body) == (method, b"x" if kept else b"")
    assert ("content-type" in web.seen[1].headers) is kept


def test_credentials_stay_with_their_origin(web: Web) -> None:
    web.on("/", 307, location=f"http://other.test:{web.port}/next")
    web.on("/same", 307, location="/next")
    web.on("/next", 200)
    names = Names({"api.test": ["127.0.0.1"], "other.test": ["127.0.0.1"]})
    settings = HttpSettings(allowed_hosts=("api.test", "other.test"))
    headers = {"Authorization": "Bearer t", "X-Api-Key": "k", "Cookie": "c", "Accept": "text/plain"}

    for path in ("/", "/same"):
        call({"url": f"http://api.test:{web.port}{path}", "headers": headers}, names, settings)

    elsewhere, same = web.seen[1].headers, web.seen[3].headers
    assert not {"authorization", "x-api-key", "cookie"} & set(elsewhere)
    assert elsewhere["accept"] == "text/plain"
    assert elsewhere["host"] == f"other.test:{web.port}"
    assert (same["authorization"], same["x-api-key"], same["cookie"]) == ("Bearer t", "k", "c")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://api.test/",
        "file:///etc/passwd",
        "api.test/path",
        "http:///path",
        "http://user:secret@api.test/",
        "http://user@api.test/",
        "http://api.test:99999/",
        "http://api%2etest/",
        "http://api test/",
        "http://api.test/\n",
        "javascript:alert(1)",
    ],
)
def test_a_url_that_is_not_plain_http_is_refused_without_repeating_it(url: str) -> None:
    names = Names({"api.test": ["127.0.0.1"]})
    error = refusal(lambda: call({"url": url}, names))

    assert (error.code, error.retryable) == ("HTTP_URL_INVALID", False)
    assert "secret" not in error.message
    assert names.asked == []


def test_a_proxy_in_the_environment_is_not_used(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    web.on("/", 200, b"direct")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    assert call({"url": f"http://api.test:{web.port}/"}, Names({"api.test": ["127.0.0.1"]}))["body"] == "direct"


class Tls:
    """A server certificate for `api.test`, and the names that clients asked for."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "server.pem"
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api.test")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("api.test")]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        self.asked: list[str | None] = []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.file)
        self.context.sni_callback = lambda sock, name, context: self.asked.append(name)


def test_tls_asks_for_and_verifies_the_name_of_the_url(tmp_path: Path) -> None:
    tls = Tls(tmp_path)
    settings = HttpSettings(allowed_hosts=("api.test", "wrong.test"), ca_file=str(tls.file))
    names = Names({"api.test": ["127.0.0.1"], "wrong.test": ["127.0.0.1"]})
    with Web(tls.context) as web:
        web.on("/", 200, b"secure")
        answer = call({"url": f"https://api.test:{web.port}/"}, names, settings)
        error = refusal(lambda: call({"url": f"https://wrong.test:{web.port}/"}, names, settings))

    assert answer["body"] == "secure"
    assert web.seen[0].headers["host"] == f"api.test:{web.port}"
    assert tls.asked == ["api.test", "wrong.test"]
    assert error.code == "HTTP_CONNECT_FAILED"
    assert len(web.seen) == 1


def test_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    with Web(Tls(tmp_path).context) as web:
        web.on("/", 200)
        error = refusal(lambda: call({"url": f"https://api.test:{web.port}/"}, Names({"api.test": ["127.0.0.1"]})))

    assert error.code == "HTTP_CONNECT_FAILED"
    assert web.seen == []


def test_a_redirect_from_https_to_http_is_refused(tmp_path: Path) -> None:
    tls = Tls(tmp_path)
    settings = HttpSettings(allowed_hosts=("api.test",), ca_file=str(tls.file))
    with Web(tls.context) as web:
        web.on("/", 302, location="http://api.test/")
        error = refusal(
            lambda: call({"url": f"https://api.test:{web.port}/"}, Names({"api.test": ["127.0.0.1"]}), settings)
        )

    assert error.code == "HTTP_REDIRECT_REFUSED"
