"""The files of deploy/ pass their own tools and agree with the service and with each other."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
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
from localidades_api.app import create_app
from localidades_api.cli.exit_codes import ALREADY_PUBLISHED, FAILED
from localidades_api.settings import PREFIX, Settings
from tests.support.machine import needed
from tests.support.service_address import DEFAULT_DATABASE_TIMEOUT
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
_METRIC = re.compile(r"(?<!\$)\blocalidades_(?!reader\b|importer\b)[a-z_]+[a-z]")  # nor nginx's variables, nor roles


def text_of(path: str) -> str:
    return (DEPLOY / path).read_text(encoding="utf-8")


@cache
def documents(path: Path) -> list[Any]:
    return [one for one in YAML(typ="safe", pure=True).load_all(path) if one is not None]


def document(path: str) -> Any:  # noqa: ANN401  # any YAML
    (only,) = documents(DEPLOY / path)
    return only


def tool(name: str, *arguments: str) -> str:
    """Run a tool in deploy/; fail if it does."""
    command = [needed(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"), f"install {name}"), *arguments]
    ended = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


async def test_settings_and_metrics_in_deployment_files_exist(client: httpx.AsyncClient) -> None:
    settings = {f"{PREFIX}API", *(PREFIX + name.upper() for name in Settings.model_fields)}
    metrics = set(re.findall(r"^# TYPE (localidades_\S+)", (await client.get("/metrics")).text, re.MULTILINE))
    for path in DEPLOY.rglob("*"):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        assert set(re.findall(rf"\b{PREFIX}[A-Z_]+[A-Z]", text)) <= settings, path
        assert {re.sub("_(bucket|count|sum)$", "", name) for name in _METRIC.findall(text)} <= metrics, path


# -- The image, Compose, HAProxy and systemd


def test_health_check_of_the_image_passes_only_while_the_service_responds(live_server: str) -> None:
    _, _, command = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "").partition("HEALTHCHECK ")
    command = json.loads(command.partition("CMD ")[2].partition("\n")[0])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        closed = silent.getsockname()[1]
    for port, status in ((urlsplit(live_server).port, 0), (closed, 1)):
        variables = {"LOCALIDADES_MANAGEMENT_PORT": str(port), "PATH": str(Path(sys.executable).parent)}
        assert subprocess.run(command, env=variables, stderr=subprocess.DEVNULL, check=False).returncode == status


def services_of(file: str) -> dict[str, Any]:
    """Return the services of a Compose file."""
    found: dict[str, Any] = document(file)["services"]
    return found


def test_containers_have_least_privileges_and_the_files_that_they_mount() -> None:
    for name, service in services_of("compose.ha.yml").items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"]), name
        assert service.get("user") or service["image"] == "localidades-api", name  # its Dockerfile sets the user
        ports = service.get("ports", [])
        assert bool(ports) == (name == "front"), name
        assert all(port.startswith("127.0.0.1:") for port in ports), name
        for path in [DEPLOY / one.split(":")[0] for one in service.get("volumes", []) if one.startswith("./")]:
            assert path.is_file()
            assert os.access(path, os.X_OK) == (path.suffix == ".sh"), path


def test_each_proxy_of_compose_is_trusted_by_the_next() -> None:
    """Otherwise the limits on one client would count all of them together."""
    services = services_of("compose.ha.yml")
    front, balancer = (services[name]["networks"]["clients"]["ipv4_address"] for name in ("front", "balancer"))
    assert services["balancer"]["environment"]["FRONT"] == front
    preset = dict(re.findall(r"^ +presetenv (\S+) (\S+)", text_of("haproxy.cfg"), re.MULTILINE))
    for number in (1, 2):
        settings = services[f"api-{number}"]["environment"]
        assert settings["LOCALIDADES_TRUSTED_PROXIES"] == balancer
        assert preset[f"API_{number}"] == f"api-{number}:8000"
        assert preset[f"API_{number}_PROBES"] == settings["LOCALIDADES_MANAGEMENT_PORT"]


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


def test_each_server_outlives_what_it_waits_for() -> None:
    """A request that arrives while its connection is being closed is lost, as is one that has no time to drain."""
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    nginx = seconds_of(r"^    keepalive_timeout (\d+)s;$", "nginx/localidades.conf")
    haproxy = seconds_of(r"^    timeout http-keep-alive (\d+)s$", "haproxy.cfg")
    assert nginx < haproxy < defaults["keep_alive_timeout"]
    assert seconds_of(r"pool-purge-delay (\d+)s$", "haproxy.cfg") < defaults["keep_alive_timeout"]
    assert seconds_of(r"^    timeout check (\d+)s", "haproxy.cfg") > DEFAULT_DATABASE_TIMEOUT
    unit = "systemd/localidades-api.service"
    assert seconds_of(r"^TimeoutStopSec=(\d+)$", unit) > defaults["shutdown_timeout"] + 5
    assert "\nKillMode=mixed\n" in text_of(unit)
    api = services_of("compose.ha.yml")["api-1"]
    assert int(api["stop_grace_period"][:-1]) > int(api["environment"]["LOCALIDADES_SHUTDOWN_TIMEOUT"])
    spec = dict(pods())["localidades-api"]["spec"]
    (container,) = spec["containers"]
    (needs,) = (int(one["value"]) for one in container["env"] if one["name"] == "LOCALIDADES_SHUTDOWN_TIMEOUT")
    assert spec["terminationGracePeriodSeconds"] > container["lifecycle"]["preStop"]["sleep"]["seconds"] + needs


# -- Kubernetes


def manifests() -> dict[tuple[str, str], Any]:
    """Return the resources of the kustomizations by kind and name, after a look at the kustomizations."""
    found = {}
    for path in KUBERNETES.rglob("kustomization.yaml"):
        (kustomization,) = documents(path)
        assert {one["newTag"] for one in kustomization.get("images", ())} <= {__version__}
        for resource in set(kustomization["resources"]) - {"../nginx"}:  # it generates a ConfigMap
            for one in documents(path.parent / resource):
                found[one["kind"], one["metadata"]["name"]] = one
    return found


def pods() -> Iterator[tuple[str, Any]]:
    """Yield the pod templates with their names."""
    for (_, name), one in manifests().items():
        spec = one["spec"].get("jobTemplate", one).get("spec", {})
        if "template" in spec:
            yield name, spec["template"]


def test_every_selector_finds_pods() -> None:
    """A Service, budget or policy that selects nothing is valid, and does nothing."""
    labels = [template["metadata"]["labels"].items() for _, template in pods()]
    selectors = [document("prometheus/pod-monitor.yaml")["spec"]["selector"]["matchLabels"]]
    for (kind, _), one in manifests().items():
        spec = one["spec"] if kind in {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"} else {}
        for found in (spec.get("selector"), spec.get("podSelector")):
            selectors += [found.get("matchLabels", found)] if found else []
    assert len(selectors) >= 9
    assert all(any(selector.items() <= one for one in labels) for selector in selectors)


def test_pods_have_least_privileges() -> None:
    for name, template in pods():
        spec = template["spec"]
        assert not spec["automountServiceAccountToken"], name
        assert not spec["enableServiceLinks"], name  # it would set LOCALIDADES_API_…, which the settings refuse
        assert spec["securityContext"]["runAsNonRoot"], name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, name  # fmt: skip
        assert "memory" in container["resources"]["limits"], name


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (ALREADY_PUBLISHED, 0), (FAILED, 1)])
def test_month_without_a_new_file_is_a_success(tmp_path: Path, code: int, expected: int) -> None:
    program = tmp_path / "localidades-api"
    program.write_text(f'#!/bin/sh\necho "$1"\n[ "$1" = releases ] || exit {code}\n')
    program.chmod(0o755)
    (container,) = dict(pods())["localidades-import"]["spec"]["containers"]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ended = subprocess.run(container["command"], env=path, capture_output=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, b"releases" in ended.stdout) == (expected, expected == 0), ended.stderr


# -- Prometheus and Grafana


def test_alerts_pass_promtools_tests_and_have_runbooks() -> None:
    tool("promtool", "check", "config", "prometheus/prometheus.yml")
    tool("promtool", "check", "rules", "--lint=all", "--lint-fatal", "prometheus/alerts.yml")
    tool("promtool", "test", "rules", "prometheus/alerts.test.yml")
    guide = (ROOT / "docs" / "operations" / "observe.md").read_text(encoding="utf-8")
    for rule in (rule for group in document("prometheus/alerts.yml")["groups"] for rule in group["rules"]):
        assert rule["annotations"]["runbook"] == f"docs/operations/observe.md#{rule['alert'].lower()}"
        assert re.search(rf"^#+ `{rule['alert']}`$", guide, re.MULTILINE), rule["alert"]


def dashboard() -> Any:  # noqa: ANN401  # any JSON
    return json.loads(text_of("grafana/localidades-api.json"))


def is_within(written: Any, understood: Any) -> bool:  # noqa: ANN401  # JSON
    """Whether Grafana's own types have dropped nothing; they add defaults."""
    if isinstance(written, dict):
        return all(key in understood and is_within(value, understood[key]) for key, value in written.items())
    if isinstance(written, list):
        return len(written) == len(understood) and all(map(is_within, written, understood))
    return bool(written == understood)


def expressions() -> list[str]:
    """Return the queries of the dashboard with its variables filled in."""
    asked = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    asked += [one["expr"] for one in dashboard()["annotations"]["list"]]
    return [one.replace("$__rate_interval", "1m").replace("$instance", ".*") for one in asked]


def test_dashboard_matches_grafanas_schema_and_its_queries_are_valid(tmp_path: Path) -> None:
    register_default_plugins()
    understood = JSONEncoder(sort_keys=True).encode(Dashboard.from_json(dashboard()))
    assert is_within(dashboard(), json.loads(understood))
    assert not any("$" in one for one in expressions())
    rules = [{"record": f"panel:{number}", "expr": one} for number, one in enumerate(expressions())]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    tool("promtool", "check", "rules", str(path))


def test_operations_and_jobs_in_queries_exist() -> None:
    queries = text_of("prometheus/alerts.yml") + "\n".join(expressions())
    jobs = {one["job_name"] for one in document("prometheus/prometheus.yml")["scrape_configs"]}
    assert set(re.findall(r'job="([^"]*)"', queries)) <= jobs
    operations = {str(route.name) for route in iter_route_contexts(create_app(Settings()).routes)}
    patterns = re.findall(r'operation!~"([^"]*)"', queries)
    assert len(patterns) >= 3
    for choice in "|".join(patterns).split("|"):
        assert any(re.fullmatch(choice, name) for name in operations), choice
