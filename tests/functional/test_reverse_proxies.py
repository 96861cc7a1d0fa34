"""The proxies that the documentation recommends, with the files that it recommends, before the application.

In the place of a public name there is one for which Caddy makes a certificate of its own. Addresses of this machine
stand for those of the proxy, a learner and an attacker.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from structlog.testing import capture_logs

from app.main import create_app
from app.settings import Settings
from tests.factories.browser_client import press_run
from tests.factories.http_server import HttpServer, free_port, serving
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.sse_client import live_stream
from tests.factories.unpacked_programs import program

ROOT = Path(__file__).parents[2]
DOCUMENTED = ROOT / "docs" / "operate" / "proxies"
NAME = "learn.localhost"
LEARNER, ATTACKER, CLAIMED = "127.0.0.2", "127.0.0.3", "203.0.113.9"
TRAEFIK = os.environ.get("LOCKSTEP_TEST_TRAEFIK", "")
"""The path of the program."""
_PATIENCE_S = 30.0
_STARTING = {"TLSV1_ALERT_INTERNAL_ERROR", "UNEXPECTED_EOF_WHILE_READING", "CERTIFICATE_VERIFY_FAILED"}
"""Why a handshake may fail at first. Traefik has a certificate of its own until it has read its routes."""


@dataclass(frozen=True)
class Ports:
    """Where the application and the proxy listen."""

    web: int
    http: int
    https: int


class _Browser(httpx.AsyncHTTPTransport):
    """Connects from an address of this machine, and names the site when it asks for the certificate."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["sni_hostname"] = NAME
        return await super().handle_async_request(request)


@dataclass(frozen=True)
class Site:
    """The application behind a proxy."""

    ports: Ports
    authority: Path
    """The certificate that browsers trust."""

    def browser(self, address: str = LEARNER, *, scheme: str = "https", host: str = NAME) -> httpx.AsyncClient:
        """A browser at an address."""
        return httpx.AsyncClient(
            base_url=f"{scheme}://127.0.0.1:{self.ports.https if scheme == 'https' else self.ports.http}",
            headers={"host": host, "sec-fetch-site": "same-origin"},
            transport=_Browser(verify=self._tls(), local_address=address),
            timeout=20,
        )

    def negotiated_protocol(self) -> str | None:
        """What a browser gets that can speak HTTP/2. The certificate has to be for the name."""
        context = self._tls()
        context.set_alpn_protocols(["h2", "http/1.1"])
        with (
            socket.create_connection(("127.0.0.1", self.ports.https), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname=NAME) as connection,
        ):
            return connection.selected_alpn_protocol()

    def has_certificate(self) -> bool:
        """Whether the proxy can answer over TLS yet."""
        try:
            self.negotiated_protocol()
        except ConnectionRefusedError:
            return False
        except ssl.SSLError as error:
            if error.reason not in _STARTING:
                raise
            return False
        return True

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """A documented file with the values of this test, each of which it must contain."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


@asynccontextmanager
async def running(ready: Sequence[str], *command: str, **variables: str) -> AsyncIterator[None]:
    """A proxy, from the lines of its log that say that it is ready until the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *command, stderr=asyncio.subprocess.PIPE, env={**os.environ, **variables}
    )
    assert process.stderr is not None
    log = b""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while not all(words.encode() in log for words in ready):
                line = await process.stderr.readline()
                log += line
                assert line, log.decode()
        reading = asyncio.create_task(process.stderr.read())  # or it would wait for somebody to read its log
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
    await reading


@asynccontextmanager
async def caddy(ports: Ports, folder: Path) -> AsyncIterator[Path]:
    file = folder / "Caddyfile"
    local = f"admin off\n\thttp_port {ports.http}\n\thttps_port {ports.https}"
    text = (ROOT / "docker" / "Caddyfile").read_text()
    file.write_text(replaced(text, ("admin off", local), ("web:8000", f"127.0.0.1:{ports.web}")))
    command = (program("caddy"), "run", "--adapter", "caddyfile", "--config", str(file))
    places = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    async with running(
        ("serving initial", "certificate obtained successfully"),
        *command,
        LOCKSTEP_PUBLIC_URL=f"https://{NAME}",
        **places,
    ):
        yield folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"


@asynccontextmanager
async def nginx(ports: Ports, folder: Path) -> AsyncIterator[Path]:
    certificate = make_certificate(folder)
    site = replaced(
        (DOCUMENTED / "nginx.conf").read_text(),
        ("/etc/letsencrypt/live/learn.example.org/fullchain.pem", str(certificate)),
        ("/etc/letsencrypt/live/learn.example.org/privkey.pem", str(folder / "key.pem")),
        ("learn.example.org", NAME),
        ("http://127.0.0.1:8000", f"http://127.0.0.1:{ports.web}"),
        ("listen 80;", f"listen 127.0.0.1:{ports.http};"),
        ("    listen [::]:80;\n", ""),
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{ports.https} ssl http2;"),
        ("    listen [::]:443 ssl http2;\n", ""),
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log stderr notice;\n"
        f"{'user root;' if os.geteuid() == 0 else ''}\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{site}}}\n"
    )
    command = (program("nginx"), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf"))
    async with running(("start worker process ",), *command):
        yield certificate


@asynccontextmanager
async def traefik(ports: Ports, folder: Path) -> AsyncIterator[Path]:
    certificate = make_certificate(folder)
    static = replaced(
        (DOCUMENTED / "traefik.yml").read_text(),
        ('":80"', f'"127.0.0.1:{ports.http}"'),
        ('":443"', f'"127.0.0.1:{ports.https}"'),
        ("/etc/traefik/", f"{folder}/"),
    )
    routes = replaced(
        (DOCUMENTED / "traefik-lockstep.yml").read_text(),
        ("learn.example.org", NAME),
        ("http://127.0.0.1:8000", f"http://127.0.0.1:{ports.web}"),
        ("tls:\n        certResolver: letsencrypt", "tls: {}"),
    )
    pair = f"{{certFile: {certificate}, keyFile: {folder / 'key.pem'}}}"
    (folder / "traefik.yml").write_text(f"{static}\nglobal: {{checkNewVersion: false, sendAnonymousUsage: false}}\n")
    (folder / "lockstep.yml").write_text(f"{routes}\ntls: {{stores: {{default: {{defaultCertificate: {pair}}}}}}}\n")
    async with running((), TRAEFIK, f"--configFile={folder / 'traefik.yml'}"):
        yield certificate


def make_certificate(folder: Path) -> Path:
    """A certificate for the name, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    path = folder / "certificate.pem"
    path.write_bytes(certificate.public_bytes(pem))
    return path


@pytest.fixture(
    params=[
        caddy,
        nginx,
        pytest.param(traefik, marks=pytest.mark.skipif(not TRAEFIK, reason="Debian does not package Traefik")),
    ]
)
async def site(
    request: pytest.FixtureRequest, settings: Settings, supervisor: ScriptedSupervisor, tmp_path: Path
) -> AsyncIterator[Site]:
    """The application behind each proxy, which it trusts as ``lockstep serve`` does: at 127.0.0.1 only."""
    ports = Ports(free_port(), free_port(), free_port())
    listener = socket.create_server(("127.0.0.1", ports.web))
    app = create_app(settings.model_copy(update={"public_url": f"https://{NAME}"}))
    server = HttpServer(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5))
    await server.start([listener])
    folder = tmp_path / "proxy"
    folder.mkdir()
    try:
        async with request.param(ports, folder) as authority:
            site = Site(ports, authority)
            async with asyncio.timeout(_PATIENCE_S):
                while not site.has_certificate():  # noqa: ASYNC110 - Caddy logs that it has one before it uses it
                    await asyncio.sleep(0.05)
            yield site
    finally:
        app.state.bus.close()
        await server.stop()
        listener.close()


async def logged_networks(client: httpx.AsyncClient, **headers: str) -> list[str]:
    """What the security log says about the origin of a failed attempt to sign in."""
    form = {"email": "nobody@example.org", "password": "Wr0ng-guess!x"}
    with capture_logs() as entries:
        response = await client.post("/en/sign-in", data=form, headers=headers)
    assert response.status_code == 422, response.text
    return [entry["network"] for entry in entries if entry.get("event") == "sign_in_failed"]


async def test_a_site_behind_a_proxy_is_fast_private_and_knows_its_learners(
    site: Site, supervisor: ScriptedSupervisor
) -> None:
    """One walk, because starting everything takes most of the time."""
    assert site.negotiated_protocol() == "h2"

    async with site.browser(scheme="http") as client:
        moved = await client.get("/en/?a=b")
        assert moved.status_code in (301, 308)
        location = moved.headers["location"].replace(f":{site.ports.https}", "")  # Traefik names a port that is not 443
        assert location == f"https://{NAME}/en/?a=b"

    async with site.browser() as client:
        page = await client.get("/en/", headers={"accept-encoding": "gzip"})
        assert page.status_code == 200
        assert page.headers["content-encoding"] == "gzip"
        assert "max-age" in page.headers["strict-transport-security"]

        run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        gzip = {"accept-encoding": "gzip"}
        async with live_stream(client, run["urls"]["stream"], headers=gzip) as events, asyncio.timeout(10):
            for text in ("one", "two", "three"):  # each before the next one exists
                await supervisor.say(scripted, text)
                while (event := await anext(events)).event != "text":
                    pass
                assert event.data["text"] == text

        claims = {"x-forwarded-for": CLAIMED, "x-real-ip": CLAIMED, "forwarded": f"for={CLAIMED}"}
        assert await logged_networks(client) == [LEARNER]
        assert await logged_networks(client, **claims) == [LEARNER]
        assert await logged_networks(client, **claims, connection="x-forwarded-for, close") == [LEARNER]


async def test_behind_a_proxy_only_the_sites_name_leads_to_pages(site: Site) -> None:
    async with site.browser(host="evil.test") as client:
        assert "Lockstep" not in (await client.get("/en/")).text

    direct = f"http://127.0.0.1:{site.ports.web}"
    async with httpx.AsyncClient(base_url=direct, headers={"host": "10.0.0.5:8000"}) as probe:
        assert (await probe.get("/healthz")).status_code == 200
        assert (await probe.get("/en/")).status_code == 400


async def test_whoever_reaches_the_port_from_another_address_is_not_believed(site: Site) -> None:
    transport = httpx.AsyncHTTPTransport(local_address=ATTACKER)
    headers = {"host": NAME, "sec-fetch-site": "same-origin"}
    direct = f"http://127.0.0.1:{site.ports.web}"
    async with httpx.AsyncClient(base_url=direct, transport=transport, headers=headers) as client:
        assert await logged_networks(client, **{"x-forwarded-for": CLAIMED}) == [ATTACKER]


async def test_a_proxy_that_nobody_trusts_is_named_once_in_the_log(
    settings: Settings, supervisor: ScriptedSupervisor
) -> None:
    app = create_app(settings.model_copy(update={"public_url": "https://learn.example.org"}))

    async def request_from(address: str, **headers: str) -> list[str]:
        """The address that the log names after a request from an address of this machine."""
        transport = httpx.AsyncHTTPTransport(local_address=address)
        with capture_logs() as entries:
            async with httpx.AsyncClient(base_url=str(server.base_url), transport=transport) as client:
                await client.get("/healthz", headers=headers)
        return [entry["address"] for entry in entries if "LOCKSTEP_PROXY_ADDRESS" in entry["event"]]

    async with serving(app) as server:
        assert await request_from("127.0.0.1", **{"x-forwarded-for": CLAIMED}) == []  # trusted
        assert await request_from(LEARNER) == []
        assert await request_from(ATTACKER, **{"x-forwarded-for": CLAIMED}) == [ATTACKER]
        assert await request_from(ATTACKER, **{"x-forwarded-for": CLAIMED}) == []


def test_traefiks_files_fit_together_and_trust_no_claim_of_a_client() -> None:
    """Where Traefik itself is missing. Its defaults replace X-Forwarded-For and pass on events at once."""
    static: dict[str, Any] = yaml.safe_load((DOCUMENTED / "traefik.yml").read_text())
    routes: dict[str, Any] = yaml.safe_load((DOCUMENTED / "traefik-lockstep.yml").read_text())["http"]
    (router,) = routes["routers"].values()

    assert set(router["entryPoints"]) < static["entryPoints"].keys()
    assert router["tls"]["certResolver"] in static["certificatesResolvers"]
    assert router["service"] in routes["services"]
    assert routes["services"][router["service"]]["loadBalancer"]["passHostHeader"] is True
    redirection = static["entryPoints"]["web"]["http"]["redirections"]["entryPoint"]
    assert redirection == {"to": "websecure", "scheme": "https"}
    assert not any({"forwardedHeaders", "proxyProtocol"} & point.keys() for point in static["entryPoints"].values())
