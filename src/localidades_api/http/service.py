"""The running service that a command queries over HTTP."""

import re
from dataclasses import dataclass
from typing import Self

import httpx

from localidades_api.catalogue.keys import RELEASE_NAME
from localidades_api.client.network import NetworkSettingsError, open_client
from localidades_api.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Service:
    """The address of a service, and the release to request; None is the current one."""

    address: httpx.URL
    release: str | None

    @classmethod
    def parse(cls, url: str, release: str | None) -> Self:
        """Parse an address; raise ServiceError if it or the release is invalid."""
        try:
            address = httpx.URL(url.strip().rstrip("/"))
        except (httpx.InvalidURL, UnicodeError):
            address = httpx.URL()
        if address.scheme not in {"http", "https"} or not address.host or address.query or address.fragment:
            raise ServiceError("--url must be the root address of a service, such as http://127.0.0.1:8000.")
        if release is not None and not re.fullmatch(RELEASE_NAME, release):
            raise ServiceError("--release must be the name of a release, such as 2018-09.")
        return cls(address, release)

    @property
    def root(self) -> str:
        """The address without a password."""
        return str(self.address.copy_with(username=None, password=None))

    def at(self, path: str, **params: str) -> httpx.URL:
        """Return the address of a path, without a password, with the release as a parameter if there is one."""
        pinned = {} if self.release is None else {"release": self.release}
        return httpx.URL(self.root + path, params={**params, **pinned})

    def connect(self, timeout: float) -> httpx.Client:
        """Open a client; raise ServiceError if the settings of a proxy or of certificates can't be used.

        It follows no redirects, so that the password goes to this service only.
        """
        auth = (self.address.username, self.address.password) if self.address.username else None
        headers = {"Accept-Encoding": "identity"}  # compressed bodies can expand to any size
        try:
            return open_client(auth=auth, headers=headers, timeout=timeout)
        except NetworkSettingsError as error:
            raise ServiceError(str(error)) from error
