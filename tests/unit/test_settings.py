"""Settings from the environment; errors name the variable."""

import re
from pathlib import Path

import pytest

from localidades_api import settings
from localidades_api.errors import ConfigurationError
from localidades_api.settings import read_settings
from tests.support.servers import IS_ROOT, lend_folder


def test_unknown_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALIDADES_RATE_LIMIT", "10")  # that is the proxy's job
    with pytest.raises(ConfigurationError, match="unknown variable LOCALIDADES_RATE_LIMIT"):
        read_settings()


def test_lists_are_read_with_or_without_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALIDADES_TRUSTED_PROXIES", "10.0.0.7,10.1.0.0/16 , fd00::/8")
    assert read_settings().trusted_proxies == ("10.0.0.7", "10.1.0.0/16", "fd00::/8")


@pytest.mark.parametrize("proxies", ["everybody", "*", "10.0.0.1/8"])
def test_bad_value_is_named_with_the_expected_one(monkeypatch: pytest.MonkeyPatch, proxies: str) -> None:
    monkeypatch.setenv("LOCALIDADES_TRUSTED_PROXIES", proxies)
    monkeypatch.setenv("LOCALIDADES_MANAGEMENT_PORT", "0")
    expected = (
        "LOCALIDADES_TRUSTED_PROXIES: addresses or networks separated by commas, such as `10.0.0.7,10.1.0.0/16`."
        " LOCALIDADES_MANAGEMENT_PORT: Input should be greater than or equal to 1."
    )
    with pytest.raises(ConfigurationError, match=f"^{re.escape(expected)}$"):
        read_settings()


def test_tilde_is_expanded_to_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DATA_DIR", "POSTGRES_BIN", "SEED"):
        monkeypatch.setenv(f"LOCALIDADES_{name}", f"~/{name}")
    chosen = read_settings()
    assert (chosen.data_dir, chosen.postgres_bin) == (tmp_path / "DATA_DIR", tmp_path / "POSTGRES_BIN")
    assert chosen.seed == str(tmp_path / "SEED")


def test_data_are_kept_in_the_clone_if_its_server_can_reach_it_or_with_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def data_dir(package: Path) -> Path:
        monkeypatch.setattr(settings, "__file__", str(package / "settings.py"))
        return settings.default_data_dir()

    with lend_folder() as lent:
        folder = lent.resolve()
        packages = [folder / name / "src" / "localidades_api" for name in ("one", "other")]
        assert [data_dir(package) for package in packages] == [folder / "one" / ".data", folder / "other" / ".data"]
        folder.chmod(0o700)  # where root's server, which runs as another user, can't enter
        closed = [data_dir(package) for package in packages]
        if IS_ROOT:
            assert all(re.fullmatch("/var/lib/localidades-api-[0-9a-f]{12}", str(folder)) for folder in closed)
            assert closed[0] != closed[1]
        else:
            assert closed == [folder / "one" / ".data", folder / "other" / ".data"]
        (packages[0] / "migrations").mkdir(parents=True)  # as in a wheel
        installed = data_dir(packages[0])
        assert installed.name == "localidades-api"
        assert installed == Path("/var/lib/localidades-api") or not IS_ROOT
        assert not installed.is_relative_to(folder)


def test_user_without_a_name_or_a_home_has_the_systems_folder_and_no_tilde(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a container may run the service."""

    def fail(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.setattr("pwd.getpwuid", fail)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    monkeypatch.setattr(settings, "__file__", str(tmp_path / "settings.py"))
    (tmp_path / "migrations").mkdir()  # as in a wheel
    assert read_settings().data_dir == Path("/var/lib/localidades-api")
    monkeypatch.setenv("LOCALIDADES_DATA_DIR", "~/data")
    with pytest.raises(ConfigurationError, match="LOCALIDADES_DATA_DIR: `~` can't be expanded, because the user"):
        read_settings()
