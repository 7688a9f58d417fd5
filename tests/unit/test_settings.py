"""Settings from the environment; errors name the variable."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from localidades_api.errors import ConfigurationError
from localidades_api.settings import Settings, read_settings
from tests.support.embedded import IS_ROOT, copy_clone, lend_folder
from tests.support.wire import environment

GOLDEN = Path(__file__).parents[1] / "golden" / "settings.json"


def test_settings_with_their_bounds_and_defaults_equal_the_golden_file() -> None:
    """To renew the file, delete it and run this test twice."""
    written = f"{json.dumps(Settings.model_json_schema()['properties'], indent=1, ensure_ascii=False)}\n"
    if not GOLDEN.exists():
        GOLDEN.write_text(written, encoding="utf-8")
        pytest.fail(f"{GOLDEN} was written: look at it")
    assert written == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRUSTED_PROXIES", "*"),
        ("TRUSTED_PROXIES", "proxy.example.org"), ("TRUSTED_PROXIES", "10.0.0.1/8"), ("MAX_IN_FLIGHT", "0"),
        ("PUBLIC_URL", "localidades.example.org"), ("PUBLIC_URL", "https://localidades.example.org/?a=b"),
        ("PUBLIC_URL", "https://user@localidades.example.org"), ("SECURITY_CONTACT", "security@example.org"),
    ],
)  # fmt: skip
def test_nonsensical_setting_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"LOCALIDADES_{name}", value)
    with pytest.raises(ConfigurationError, match=f"LOCALIDADES_{name}"):
        read_settings()


def test_lists_are_read_with_or_without_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALIDADES_TRUSTED_PROXIES", "10.0.0.7,10.1.0.0/16 , fd00::/8")
    settings = read_settings()
    assert settings.trusted_proxies == ("10.0.0.7", "10.1.0.0/16", "fd00::/8")


def test_rate_limit_is_refused_as_the_proxys_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALIDADES_RATE_LIMIT", "10")
    with pytest.raises(ConfigurationError, match="unknown variable LOCALIDADES_RATE_LIMIT"):
        read_settings()


def test_bad_value_is_named_with_the_expected_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALIDADES_TRUSTED_PROXIES", "everybody")
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
    settings = read_settings()
    assert settings.data_dir == tmp_path / "DATA_DIR"
    assert settings.postgres_bin == tmp_path / "POSTGRES_BIN"
    assert settings.seed == str(tmp_path / "SEED")


# -- The folder of the data


def data_dir(package: Path) -> Path:
    """Return the default data folder of a copy of the package in `package`."""
    script = "from localidades_api.settings import default_data_dir; print(default_data_dir())"
    command = [sys.executable, "-c", script]
    env = environment(PYTHONPATH=str(package))
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return Path(ended.stdout.strip())


def test_clone_keeps_its_data_inside() -> None:
    with lend_folder() as folder:
        for name in ("one", "other"):
            assert data_dir(copy_clone(folder / name) / "src") == folder.resolve() / name / ".data"


def test_inaccessible_clone_has_its_own_data_folder() -> None:
    with lend_folder() as folder:
        closed = folder / "closed"
        clones = [copy_clone(closed / name) for name in ("one", "other")]
        closed.chmod(0o700)
        found = [data_dir(clone / "src") for clone in clones]
        assert found[0] != found[1]
        for clone, its_data in zip(clones, found, strict=True):
            assert its_data == data_dir(clone / "src"), "it stays"
            if IS_ROOT:
                assert re.fullmatch("/var/lib/localidades-api-[0-9a-f]{12}", str(its_data))
            else:
                assert its_data == clone.resolve() / ".data"
        assert closed.stat().st_mode & 0o777 == 0o700


def test_installed_package_keeps_its_data_with_the_user() -> None:
    with lend_folder() as folder:
        clone = copy_clone(folder / "clone")
        (clone / "migrations").rename(clone / "src" / "localidades_api" / "migrations")  # as in a wheel
        found = data_dir(clone / "src")
        assert found.name == "localidades-api"
        assert found == Path("/var/lib/localidades-api") or not IS_ROOT
        assert not found.is_relative_to(folder.resolve())
