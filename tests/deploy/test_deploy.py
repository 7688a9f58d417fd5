"""The files of deploy/ pass their own tools and name what the service has."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from ruamel.yaml import YAML

from localidades_api import __version__
from localidades_api.api.services import get_exchange, get_transfers
from localidades_api.app import create_app
from localidades_api.cli.exit_codes import ALREADY_PUBLISHED, FAILED
from localidades_api.importer.source import FETCH_TOTAL_TIMEOUT
from localidades_api.settings import PREFIX, Settings
from tests.deploy.nginx import running_nginx
from tests.support.application import operations_with
from tests.support.machine import needed
from tests.support.service_address import DEFAULT_DATABASE_TIMEOUT
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT, ask

DEPLOY = ROOT / "deploy"
# Not variables of nginx, roles, or a table.
_METRIC = re.compile(r"(?<!\$)\blocalidades_(?!reader\b|importer\b|alembic)[a-z_]+[a-z]")


def text_of(path: str) -> str:
    return (DEPLOY / path).read_text(encoding="utf-8")


def tool(name: str, *arguments: str) -> str:
    """Run a tool in deploy/ and return its output; fail if it does."""
    command = [needed(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"), f"install {name}"), *arguments]
    ended = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


async def test_settings_metrics_and_operations_in_deployment_files_exist(client: httpx.AsyncClient) -> None:
    settings = {f"{PREFIX}API", *(PREFIX + name.upper() for name in Settings.model_fields)}
    metrics = set(re.findall(r"^# TYPE (localidades_\S+)", (await client.get("/metrics")).text, re.MULTILINE))
    operations = {str(route.name) for route in iter_route_contexts(create_app(Settings()).routes)}
    slow = {*operations_with(get_transfers).values(), *operations_with(get_exchange).values()}
    patterns = []
    for path in DEPLOY.rglob("*"):
        text = path.read_text(encoding="utf-8").replace("\\", "") if path.is_file() else ""
        assert set(re.findall(rf"\b{PREFIX}[A-Z_]+[A-Z]", text)) <= settings, path
        assert {re.sub("_(bucket|count|sum)$", "", name) for name in _METRIC.findall(text)} <= metrics, path
        patterns += re.findall(r'operation!~"([^"]*)"', text)
    assert len(patterns) == 4
    for choice in "|".join(patterns).split("|"):
        assert any(re.fullmatch(choice, name) for name in operations), choice
    matched = [{name for name in operations if re.fullmatch(pattern, name)} for pattern in patterns]
    assert matched.count(slow) == 2, "files and rows, which take as long as their clients do"


# -- The image, the proxies and systemd


def test_health_check_of_the_image_passes_only_while_the_service_responds(live_server: str) -> None:
    _, _, command = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "").partition("HEALTHCHECK ")
    command = json.loads(command.partition("CMD ")[2].partition("\n")[0])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        closed = silent.getsockname()[1]
    for port, status in ((urlsplit(live_server).port, 0), (closed, 1)):
        variables = {"LOCALIDADES_MANAGEMENT_PORT": str(port), "PATH": str(Path(sys.executable).parent)}
        assert subprocess.run(command, env=variables, stderr=subprocess.DEVNULL, check=False).returncode == status


def test_haproxy_and_nginx_accept_their_configurations(tmp_path: Path) -> None:
    tool("haproxy", "-c", "-q", "-f", "haproxy.cfg")
    with running_nginx("http://127.0.0.1:1", tmp_path) as front:
        assert ask(front.base, "/metrics").status == 404


def test_systemd_units_are_valid_and_hardened(tmp_path: Path) -> None:
    for unit in (DEPLOY / "systemd").iterdir():
        text = unit.read_text("utf-8").replace("/opt/localidades-api/bin/localidades-api", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    services, timers = (sorted(map(str, tmp_path.glob(f"*.{kind}"))) for kind in ("service", "timer"))
    assert (len(services), len(timers)) == (2, 1)
    assert tool("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *services, *timers) == ""
    tool("systemd-analyze", "security", "--offline=true", "--threshold=17", *services)  # of 100


def seconds_of(pattern: str, file: str) -> float:
    """Return the seconds that a pattern finds once in a file of deploy/."""
    [found] = re.findall(pattern, text_of(file), re.MULTILINE)
    return float(found)


def test_proxies_and_units_suit_the_defaults_of_the_service() -> None:
    """A request that arrives while its connection is being closed is lost, as is one that has no time to drain."""
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    for file in ("nginx/localidades.conf", "nginx/nginx.conf"):
        nginx = seconds_of(r"^ +keepalive_timeout (\d+)s;$", file)
        haproxy = seconds_of(r"^    timeout http-keep-alive (\d+)s$", "haproxy.cfg")
        assert nginx < haproxy < defaults["keep_alive_timeout"]
    assert seconds_of(r"pool-purge-delay (\d+)s$", "haproxy.cfg") < defaults["keep_alive_timeout"]
    assert seconds_of(r"^    timeout check (\d+)s", "haproxy.cfg") > DEFAULT_DATABASE_TIMEOUT
    assert seconds_of(r"^TimeoutStopSec=(\d+)$", "systemd/localidades-api.service") > defaults["shutdown_timeout"] + 5
    assert seconds_of(r"^TimeoutStartSec=(\d+)h$", "systemd/localidades-import.service") * 3600 > FETCH_TOTAL_TIMEOUT


# -- Kubernetes


def manifests(path: Path) -> list[Any]:
    return list(YAML(typ="safe", pure=True).load_all(path))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="that of Debian 12 is too old")
def test_kustomizations_name_the_image_of_this_version() -> None:
    for folder in ("kubernetes", "kubernetes/jobs"):
        images = set(re.findall(r"image: (.*localidades.*)", tool("kubectl", "kustomize", folder)))
        assert images == {f"registry.example.mx/localidades-api:{__version__}"}


def test_every_selector_finds_pods() -> None:
    """A Service, budget or policy that selects nothing is valid, and does nothing."""
    paths = [*(DEPLOY / "kubernetes").rglob("*.yaml"), DEPLOY / "prometheus" / "pod-monitor.yaml"]
    specs = [one["spec"] for path in paths for one in manifests(path) if "spec" in one]
    templates = [spec.get("jobTemplate", {"spec": spec})["spec"].get("template") for spec in specs]
    labels = [template["metadata"]["labels"].items() for template in templates if template]
    selectors = [spec.get("selector") or spec.get("podSelector") for spec in specs]
    for selector in filter(None, selectors):
        selected = selector.get("matchLabels", selector).items()
        assert any(selected <= one for one in labels), selector


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (ALREADY_PUBLISHED, 0), (FAILED, 1)])
def test_month_without_a_new_file_is_a_success(tmp_path: Path, code: int, expected: int) -> None:
    program = tmp_path / "localidades-api"
    program.write_text(f'#!/bin/sh\necho "$1"\n[ "$1" = releases ] || exit {code}\n')
    program.chmod(0o755)
    [job] = manifests(DEPLOY / "kubernetes" / "jobs" / "import.yaml")
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ended = subprocess.run(container["command"], env=path, capture_output=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, b"releases" in ended.stdout) == (expected, expected == 0), ended.stderr


# -- Prometheus and Grafana


def test_alerts_pass_promtools_tests() -> None:
    tool("promtool", "check", "config", "prometheus/prometheus.yml")
    tool("promtool", "check", "rules", "--lint=all", "--lint-fatal", "prometheus/alerts.yml")
    tool("promtool", "test", "rules", "prometheus/alerts.test.yml")


def is_within(written: Any, understood: Any) -> bool:  # noqa: ANN401  # JSON
    """Whether Grafana's own types have dropped nothing; they add defaults."""
    if isinstance(written, dict):
        return all(key in understood and is_within(value, understood[key]) for key, value in written.items())
    if isinstance(written, list):
        return len(written) == len(understood) and all(map(is_within, written, understood))
    return bool(written == understood)


def test_dashboard_matches_grafanas_schema_and_its_queries_are_valid(tmp_path: Path) -> None:
    register_default_plugins()
    dashboard = json.loads(text_of("grafana/localidades-api.json"))
    understood = JSONEncoder(sort_keys=True).encode(Dashboard.from_json(dashboard))
    assert is_within(dashboard, json.loads(understood))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [one["expr"] for one in dashboard["annotations"]["list"]]
    rules = [
        {"record": f"panel:{number}", "expr": one.replace("$__rate_interval", "1m").replace("$instance", ".*")}
        for number, one in enumerate(queries)
    ]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    tool("promtool", "check", "rules", str(path))
