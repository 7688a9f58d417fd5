"""Opens HTTP clients with the proxies and certificates that environment variables name.

httpx reads the same variables, but its errors don't name them, a proxy that no request would use is one, and its
NO_PROXY has no networks. Like `client`, this module imports nothing of the service.
"""

import os
import re
import ssl
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.request import getproxies

import httpx

_LOOPBACK = ("localhost", "127.0.0.0/8", "::1")


class NetworkSettingsError(Exception):
    """An environment variable for proxies or certificates can't be used; the text names it, without a password."""


def open_client(url: httpx.URL | str, **options: Any) -> httpx.Client:  # noqa: ANN401  # those of httpx
    """Open a client for an address, and for where it redirects; raise NetworkSettingsError."""
    context = _read_certificates()
    mounts = {
        pattern: None if proxy is None else httpx.HTTPTransport(verify=context, proxy=proxy)
        for pattern, proxy in _find_proxies(httpx.URL(url)).items()
    }
    return httpx.Client(trust_env=False, verify=context, mounts=mounts, **options)


def open_async_client(url: httpx.URL | str, **options: Any) -> httpx.AsyncClient:  # noqa: ANN401  # as above
    """Open a client for asyncio; see `open_client`."""
    context = _read_certificates()
    mounts = {
        pattern: None if proxy is None else httpx.AsyncHTTPTransport(verify=context, proxy=proxy)
        for pattern, proxy in _find_proxies(httpx.URL(url)).items()
    }
    return httpx.AsyncClient(trust_env=False, verify=context, mounts=mounts, **options)


def _read_certificates() -> ssl.SSLContext:
    """Return a context with the certificates of SSL_CERT_FILE, else of SSL_CERT_DIR, else those of certifi."""
    file, folders = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if folders and not file and not any(Path(folder).is_dir() for folder in folders.split(os.pathsep)):
        raise NetworkSettingsError(f"SSL_CERT_DIR names {folders}, which is not a folder.")
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        reason = "it has no certificates in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        raise NetworkSettingsError(f"SSL_CERT_FILE names {file}, which can't be used: {reason}.") from error


def _find_proxies(url: httpx.URL) -> dict[str, httpx.Proxy | None]:
    """Return the proxies for an address by the patterns of `mounts`; None is for hosts without one."""
    named = getproxies()
    direct = [*_LOOPBACK, *re.split(r"[\s,]+", named.get("no", ""))]
    if "*" in direct or any(_names(entry, url.host) for entry in direct):
        return {}
    found: dict[str, httpx.Proxy | None] = {}
    for scheme in (url.scheme, "https"):  # http may redirect to https
        kind = scheme if named.get(scheme) else "all"
        if address := named.get(kind):
            found[f"{scheme}://"] = _parse_proxy(_variable(kind), address)
    return {**found, **{_pattern(entry): None for entry in direct if entry}} if found else {}


def _names(entry: str, host: str) -> bool:
    """Return whether an entry of NO_PROXY covers a host: by its name, its domain or its network."""
    try:
        return ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:  # one of them is a name
        return bool(entry) and f".{host}".endswith(f".{entry.removeprefix('*').removeprefix('.').lower()}")


def _pattern(entry: str) -> str:
    """Return an entry of NO_PROXY as a pattern of `mounts`, which knows no networks: only the first address matches."""
    try:
        host = str(ip_network(entry.strip("[]"), strict=False).network_address)
        pattern = f"all://[{host}]" if ":" in host else f"all://{host}"
    except ValueError:
        pattern = entry if "://" in entry else f"all://*{entry.removeprefix('*')}"
    try:
        httpx.URL(pattern)
    except httpx.InvalidURL:
        raise NetworkSettingsError(
            f"{_variable('no')} must be a list of hosts and networks, such as localhost,.example.org,10.0.0.0/8."
        ) from None
    return pattern


def _parse_proxy(variable: str, address: str) -> httpx.Proxy:
    """Parse the value of a variable; an error of httpx is dropped, as it may have a part of the password."""
    try:
        proxy = httpx.Proxy(address if "://" in address else f"http://{address}")
    except (httpx.InvalidURL, ValueError):
        proxy = None
    if proxy is None or not proxy.url.host:
        raise NetworkSettingsError(
            f"{variable} must be the address of a proxy and begin with http://, https:// or socks5://, such as"
            " http://proxy.example.org:3128."
        )
    if proxy.url.scheme.startswith("socks") and not find_spec("socksio"):
        raise NetworkSettingsError(
            f"{variable} names a SOCKS proxy, which needs another package: run `pip install 'httpx[socks]'`, or name"
            " an HTTP proxy."
        )
    return proxy


def _variable(kind: str) -> str:
    """Return the name of the variable that `getproxies` read."""
    name = f"{kind}_proxy"
    return name if os.environ.get(name) else name.upper()
