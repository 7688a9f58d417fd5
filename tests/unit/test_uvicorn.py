"""The version of uvicorn that is served with."""

import tomllib

import pytest

from localidades_api.errors import ConfigurationError
from localidades_api.http.uvicorn_internals import TESTED, check_version
from tests.support.wire import ROOT


def test_installed_uvicorn_is_the_tested_one() -> None:
    check_version()


@pytest.mark.parametrize("installed", ["0.53.9", "0.55.0", "1.0.0", "0.540.0"])
def test_other_uvicorn_is_refused_with_what_to_do(installed: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"uvicorn {installed} is installed.+pip install 'uvicorn=={TESTED}"):
        check_version(installed)


def test_pyproject_allows_no_other_uvicorn() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = [one for one in project["dependencies"] if one.startswith("uvicorn")]
    major, minor = map(int, TESTED.split("."))
    assert wanted == f"uvicorn>={TESTED},<{major}.{minor + 1}"
