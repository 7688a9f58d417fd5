"""The files of deploy/ pass their own tools and agree with the service and with each other."""

import inspect
import ipaddress
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.routing import iter_route_contexts
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from ruamel.yaml import YAML
from typer.core import TyperGroup
from typer.main import get_command

from localidades_api import __version__
from localidades_api.app import create_app
from localidades_api.cli import app as command_line
from localidades_api.cli.commands import roles
from localidades_api.cli.exit_codes import ALREADY_PUBLISHED, FAILED
from localidades_api.database.dsn import Dsn
from localidades_api.settings import PREFIX, Settings
from tests.deploy.nginx import LISTEN
from tests.deploy.systemd import PROGRAM, UNITS, read_service
from tests.support.machine import needed
from tests.support.service_address import DEFAULT_DATABASE_TIMEOUT
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT, ask

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
NGINX = DEPLOY / "nginx"
GENERATED = "../nginx"  # its kustomization generates a ConfigMap
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "localidades-api.json"
_METRIC = re.compile(r"(?<!\$)\blocalidades_(?!reader\b|importer\b)[a-z_]+[a-z]")  # nor nginx's variables, nor roles


def files() -> list[Path]:
    return sorted(path for path in DEPLOY.rglob("*") if path.is_file())


def documents(path: Path) -> list[Any]:
    return [one for one in YAML(typ="safe", pure=True).load_all(path) if one is not None]


def document(path: Path) -> Any:  # noqa: ANN401  # any YAML
    (only,) = documents(path)
    return only


def tool(name: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a tool in deploy/; fail if it does."""
    command = needed(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"), f"install {name}")
    ended = subprocess.run(
        [command, *arguments],
        cwd=DEPLOY,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


# -- All files


def test_settings_in_deployment_files_exist() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for path in files():
        named = set(re.findall(rf"\b{PREFIX}[A-Z_]+[A-Z]", path.read_text(encoding="utf-8")))
        assert named - {f"{PREFIX}API"} <= known, path


def served(base: str) -> set[str]:
    """Return the names of the service's metrics."""
    names = re.findall(r"^# TYPE (localidades_\S+)", ask(base, "/metrics").body.decode(), re.MULTILINE)
    return {name for name in names if not name.endswith("_created")}


def test_metrics_in_deployment_files_exist(live_server: str) -> None:
    known = served(live_server)
    for path in files():
        named = {re.sub("_(bucket|count|sum)$", "", name) for name in _METRIC.findall(path.read_text("utf-8"))}
        assert named <= known, path


# -- Compose and HAProxy


def test_haproxy_configuration_is_valid() -> None:
    addresses = {"API_1": "127.0.0.1:1", "API_2": "127.0.0.1:2"}
    assert "valid" in tool("haproxy", "-c", "-dW", "-f", "haproxy.cfg", env=addresses)


SHAPES = pytest.mark.parametrize("file", ["compose.ha.yml", "compose.patroni.yml"])  # each is complete
COMPOSE = pytest.mark.parametrize("file", ["compose.ha.yml", "compose.patroni.yml", "compose.pooler.yml"])


def services_of(file: str) -> dict[str, Any]:
    """Return the services of a Compose file, with `extends` resolved; compose.pooler.yml adds to compose.ha.yml."""
    services = {name: extended(service) for name, service in document(DEPLOY / file)["services"].items()}
    base = services_of("compose.ha.yml") if file == "compose.pooler.yml" else {}
    return base | {name: combined(base.get(name, {}), service) for name, service in services.items()}


def extended(service: Any) -> Any:  # noqa: ANN401  # as above
    if "extends" not in service:
        return service
    return combined(services_of(service["extends"]["file"])[service["extends"]["service"]], service)


def combined(base: Any, service: Any) -> Any:  # noqa: ANN401  # as above
    """Return a service merged onto its base."""
    return {**base, **service, "environment": base.get("environment", {}) | service.get("environment", {})}


@COMPOSE
def test_containers_have_least_privileges(file: str) -> None:
    for name, service in services_of(file).items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"]), name
        assert service.get("user") or service["image"] == "localidades-api", name  # its Dockerfile sets the user
        assert service.get("healthcheck") or service["restart"] == "no", name
        ports = service.get("ports", [])
        assert bool(ports) == (name == "front"), name
        assert all(port.startswith("127.0.0.1:") for port in ports), name


@COMPOSE
def test_mounted_files_exist(file: str) -> None:
    mounted = [volume for service in services_of(file).values() for volume in service.get("volumes", [])]
    scripts = {DEPLOY / volume.split(":")[0] for volume in mounted if volume.startswith("./")}
    assert len(scripts) >= 3
    for path in scripts:
        assert path.is_file()
        assert os.access(path, os.X_OK) == (path.suffix == ".sh"), path


@pytest.mark.parametrize("file", ["../docker-compose.yml", "compose.ha.yml", "compose.patroni.yml"])
def test_bodies_of_rows_are_kept_on_disk(file: str) -> None:
    serving = [one for one in services_of(file).values() if "serve" in one.get("command", [])]
    assert serving
    for service in serving:  # two bodies are larger than what tmpfs may take of memory
        assert "temporary:/tmp" in service["volumes"]
        assert not service.get("tmpfs")


@SHAPES
def test_mounted_volumes_are_declared(file: str) -> None:
    mounted = {volume.split(":")[0] for one in services_of(file).values() for volume in one.get("volumes", [])}
    assert {volume for volume in mounted if not volume.startswith("./")} == set(document(DEPLOY / file)["volumes"])


@COMPOSE
def test_compose_balancer_and_processes_agree(file: str) -> None:
    services = services_of(file)
    preset = dict(re.findall(r"^ +presetenv (\S+) (\S+)", (DEPLOY / "haproxy.cfg").read_text("utf-8"), re.MULTILINE))
    for number in (1, 2):
        api = services[f"api-{number}"]
        assert preset[f"API_{number}"] == f"api-{number}:8000"
        assert preset[f"API_{number}_PROBES"] == api["environment"]["LOCALIDADES_MANAGEMENT_PORT"]
        trusted = api["environment"]["LOCALIDADES_TRUSTED_PROXIES"]
        assert trusted == services["balancer"]["networks"]["clients"]["ipv4_address"]
        assert int(api["stop_grace_period"][:-1]) > int(api["environment"]["LOCALIDADES_SHUTDOWN_TIMEOUT"])


@SHAPES
def test_compose_static_addresses_are_outside_the_dynamic_range(file: str) -> None:
    (clients,) = document(DEPLOY / file)["networks"]["clients"]["ipam"]["config"]
    subnet, given = (ipaddress.ip_network(clients[name]) for name in ("subnet", "ip_range"))
    assert given.subnet_of(subnet)  # type: ignore[arg-type]  # both of version 4
    networks = [service["networks"] for service in services_of(file).values() if isinstance(service["networks"], dict)]
    promised = [ipaddress.ip_address(one["clients"]["ipv4_address"]) for one in networks]
    assert len(set(promised)) == len(promised) == 2
    assert all(one in subnet and one not in given for one in promised)


@SHAPES
def test_compose_front_and_balancer_agree(file: str) -> None:
    services = services_of(file)
    site = document(DEPLOY / file)["configs"]["site"]["content"]
    front, balancer = services["front"], services["balancer"]
    assert balancer["environment"]["FRONT"] == front["networks"]["clients"]["ipv4_address"]
    assert directives(site) == site_of_a_container("balancer:8000")
    assert front["ports"] == ["127.0.0.1:8000:8080"]
    assert front["configs"] == [{"source": "site", "target": f"/etc/nginx/{SITE}"}]
    mounted = {volume.removesuffix(":ro") for volume in front["volumes"]}
    assert mounted == {f"./nginx/{name}:/etc/nginx/{name}" for name in included()}


SITE = "localidades.conf"


def site_of_a_container(address: str) -> list[str]:
    """Return the directives of the shipped site with the container's port and address, without a name."""
    shipped = (NGINX / SITE).read_text("utf-8")
    own = {LISTEN: "listen 8080;", "server_name localidades.example.mx;": "", "127.0.0.1:8000": address}
    for one, other in own.items():
        assert shipped.count(one) == 1
        shipped = shipped.replace(one, other)
    return directives(shipped)


def included() -> set[str]:
    """Return the files of a container's nginx except for its site."""
    names = {path.name for path in NGINX.glob("*.conf")} - {SITE}
    texts = [(NGINX / name).read_text("utf-8") for name in ("nginx.conf", SITE)]
    assert set(re.findall(r"^ *include (\S+);", "\n".join(texts), re.MULTILINE)) == names - {"nginx.conf"} | {SITE}
    return names


def directives(text: str) -> list[str]:
    """Return the lines of an nginx configuration without comments."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


# -- systemd


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Return the units with a program that records its arguments."""
    program = tmp_path / "localidades-api"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\n')
    program.chmod(0o755)
    for unit in UNITS.iterdir():
        (tmp_path / unit.name).write_text(unit.read_text("utf-8").replace(PROGRAM, str(program)))
    return tmp_path


def test_systemd_units_are_valid_and_hardened(units: Path) -> None:
    services, timers = (sorted(map(str, units.glob(f"*.{kind}"))) for kind in ("service", "timer"))
    assert (len(services), len(timers)) == (2, 1)
    assert tool("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *services, *timers) == ""
    tool("systemd-analyze", "security", "--offline=true", "--threshold=20", *services)  # of 100


@pytest.mark.parametrize("name", ["api", "import"])
def test_systemd_protects_the_machine_from_a_unit(name: str) -> None:
    """Each of these is worth at most a point of `systemd-analyze security`, which others could make up for."""
    lines = set((UNITS / f"localidades-{name}.service").read_text("utf-8").splitlines())
    assert lines >= {
        "NoNewPrivileges=yes", "PrivateDevices=yes", "PrivateTmp=yes", "ProtectHome=tmpfs", "ProtectSystem=strict",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", "RestrictNamespaces=yes", "RemoveIPC=yes",
        "SystemCallFilter=@system-service", "MemoryDenyWriteExecute=yes", "ProtectKernelTunables=yes",
    }  # fmt: skip


def test_an_import_that_was_due_while_the_machine_was_off_is_made_up_for() -> None:
    lines = (UNITS / "localidades-import.timer").read_text("utf-8").splitlines()
    assert "Persistent=yes" in lines
    assert "OnCalendar=*-*-05 04:00:00 America/Mexico_City" in lines


def test_poolers_give_up_before_the_service_does() -> None:
    """So the service says that the database doesn't answer, and not that a statement took too long."""
    waits = {"1.5"}
    found = re.search(r"^query_wait_timeout = (\S+)$", (DEPLOY / "pgbouncer.ini").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    assert {found[1]} == waits
    for manifest in (DEPLOY / "kubernetes" / "pooler").glob("pooler*.yaml"):
        assert set(re.findall(r'query_wait_timeout: "(\S+)"', manifest.read_text("utf-8"))) == waits
    assert float(found[1]) < DEFAULT_DATABASE_TIMEOUT


def seconds_of(pattern: str, file: str) -> float:
    """Return the seconds that a pattern finds once in a file of deploy/."""
    [found] = re.findall(pattern, (DEPLOY / file).read_text("utf-8"), re.MULTILINE)
    return float(found)


def test_each_proxy_closes_idle_connections_before_the_server_behind_it() -> None:
    """A request that arrives while its connection is being closed is lost."""
    service = Settings.model_fields["keep_alive_timeout"].default
    nginx = seconds_of(r"^    keepalive_timeout (\d+)s;$", "nginx/localidades.conf")
    assert nginx < seconds_of(r"^    timeout http-keep-alive (\d+)s$", "haproxy.cfg") < service
    assert seconds_of(r"pool-purge-delay (\d+)s$", "haproxy.cfg") < service
    assert seconds_of(r"^    timeout check (\d+)s", "haproxy.cfg") > DEFAULT_DATABASE_TIMEOUT


def test_nginx_names_the_status_of_each_of_its_errors() -> None:
    http, server = ((NGINX / f"localidades-{name}.conf").read_text("utf-8") for name in ("http", "server"))
    lines = re.findall(r"^error_page ([\d ]+?)(?: =(\d+))? /\.problem;$", server, re.MULTILINE)
    statuses = {status for given, sent in lines for status in ([sent] if sent else given.split())}
    assert statuses >= {"400", "404", "405", "413", "414", "429", "431", "503", "504"}
    named = dict(re.findall(r'^    (\d{3}) "(.+)";$', http, re.MULTILINE))
    assert named == {status: HTTPStatus(int(status)).phrase for status in statuses} | {"413": "Content Too Large"} | {
        "414": "URI Too Long"
    }
    retried = dict(re.findall(r"^    (\d{3}) (\d+);$", http, re.MULTILINE))
    assert retried == {"429": "1", "503": "5", "504": "5"}
    assert "use_temp_path=off;" in http  # an entry is renamed into the cache, not copied there


def test_systemd_starts_the_units_after_postgres_and_gives_an_import_its_time() -> None:
    serving, importing = [(UNITS / f"localidades-{name}.service").read_text("utf-8").splitlines()
                          for name in ("api", "import")]  # fmt: skip
    assert {"After=network.target postgresql.service", "ExecReload=/bin/kill -HUP $MAINPID"} < set(serving)
    assert {"After=network-online.target postgresql.service", "TimeoutStartSec=2h"} < set(importing)


def test_systemd_units_share_the_index_of_names() -> None:
    """The group of the service owns its cache folder and may write there, as imports do."""
    serving, importing = [(UNITS / f"localidades-{name}.service").read_text("utf-8").splitlines()
                          for name in ("api", "import")]  # fmt: skip
    folder = "Environment=LOCALIDADES_CACHE_DIR=/var/cache/localidades-api"
    assert {folder, "User=localidades_reader", "CacheDirectory=localidades-api", "CacheDirectoryMode=0770"} < set(
        serving
    )
    assert {folder, "Group=localidades_reader", "ReadWritePaths=-/var/cache/localidades-api"} < set(importing)
    assert "UMask=0007" in serving
    assert "UMask=0007" in importing


@pytest.mark.parametrize("name", ["localidades-api", "localidades-import"])
def test_command_of_a_systemd_unit_exists(units: Path, tmp_path: Path, name: str) -> None:
    shipped = (UNITS / "localidades-api.env").read_text("utf-8")
    service = read_service(f"{name}.service", {"/etc/localidades-api.env": shipped}.get)
    given = {"serve": ("workers", "2"), "import": ("release", r"20\d\d-\d\d"), "retire": ("keep", "12")}
    called = []
    for words in service.commands:
        command = [word.replace(PROGRAM, str(units / "localidades-api")) for word in words]
        variables = os.environ | service.variables | {"STATE_DIRECTORY": str(tmp_path)}
        subprocess.run(command, env=variables, timeout=PATIENCE, check=True)
        found, arguments = get_command(command_line), (units / "words").read_text().splitlines()
        while isinstance(found, TyperGroup):
            first, *arguments = arguments
            found = found.commands[first]
        with found.make_context(first, arguments) as context:
            parameter, pattern = given[first]
            assert re.fullmatch(pattern, str(context.params[parameter]))
            assert first != "import" or context.params["keep"] == tmp_path
        called.append(first)
    assert called == (["serve"] if name == "localidades-api" else ["import", "retire"])
    parameters = inspect.signature(roles).parameters
    assert service.user == parameters["reader" if called == ["serve"] else "importer"].default


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (ALREADY_PUBLISHED, 0), (FAILED, 1)])
def test_month_without_a_new_file_is_a_success(tmp_path: Path, code: int, expected: int) -> None:
    assert read_service("localidades-import.service", lambda _: "").success == {0, ALREADY_PUBLISHED}
    program = tmp_path / "localidades-api"
    program.write_text(f'#!/bin/sh\necho "$1"\n[ "$1" = releases ] || exit {code}\n')
    program.chmod(0o755)
    (container,) = dict(pods())["localidades-import"]["spec"]["containers"]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ended = subprocess.run(container["command"], env=path, capture_output=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, b"releases" in ended.stdout) == (expected, expected == 0), ended.stderr


# The ends of a service after which each `Restart=` starts it again (systemd.service(5)).
RESTARTS = {
    "always": {"exit 0", "exit 1", "kill -9", "hang at the start"},
    "on-success": {"exit 0"},
    "on-failure": {"exit 1", "kill -9", "hang at the start"},
    "on-abnormal": {"kill -9", "hang at the start"},
    "on-abort": {"kill -9"},
}


def test_systemd_starts_a_service_that_failed_again_for_as_long_as_it_fails() -> None:
    unit = dict(re.findall(r"^(\w+)=(.+)$", (UNITS / "localidades-api.service").read_text("utf-8"), re.MULTILINE))
    assert RESTARTS[unit["Restart"]] == {"exit 1", "kill -9", "hang at the start"}
    assert not {"StartLimitIntervalSec", "StartLimitBurst"} & unit.keys()
    assert int(unit["RestartSec"]) * 5 > 10, "systemd gives up after 5 starts in 10 seconds"


def test_systemd_leaves_time_to_drain() -> None:
    unit = (UNITS / "localidades-api.service").read_text("utf-8")
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(seconds) > Settings.model_fields["shutdown_timeout"].default + 5
    assert "\nKillMode=mixed\n" in unit


# -- Kubernetes

KUSTOMIZATIONS = tuple(KUBERNETES / folder for folder in (".", "jobs", "postgres", "pooler"))


def manifests() -> dict[tuple[str, str], Any]:
    """Return the resources of the kustomizations by kind and name."""
    found = {}
    for folder in KUSTOMIZATIONS:
        for resource in set(document(folder / "kustomization.yaml")["resources"]) - {GENERATED}:
            for one in documents(folder / resource):
                found[one["kind"], one["metadata"]["name"]] = one
    return found


def pods() -> Iterator[tuple[str, Any]]:
    """Yield the pod templates with their names."""
    for (_, name), one in manifests().items():
        spec = one["spec"].get("jobTemplate", one).get("spec", {})
        if "template" in spec:
            yield name, spec["template"]


def test_kustomizations_include_every_manifest() -> None:
    listed = {
        (folder / resource)
        for folder in KUSTOMIZATIONS
        for resource in ["kustomization.yaml", *document(folder / "kustomization.yaml")["resources"]]
    }
    examples = {KUBERNETES / "secrets.example.yaml", KUBERNETES / "postgres" / "secrets.example.yaml"}
    assert {path for path in KUBERNETES.rglob("*") if path.is_file()} - listed == examples
    for folder in KUSTOMIZATIONS:
        if folder.name == "pooler":
            continue  # the operator's own image
        (image,) = document(folder / "kustomization.yaml")["images"]
        assert (image["name"], image["newTag"]) == ("localidades-api", __version__)


def test_pods_have_least_privileges() -> None:
    jobs = {"localidades-migrate", "localidades-import", "localidades-roles"}
    assert {name for name, _ in pods()} == {"localidades-api", "localidades-nginx", *jobs}
    for name, template in pods():
        spec = template["spec"]
        assert not spec["automountServiceAccountToken"], name
        # A Service's name becomes variables LOCALIDADES_API_…, which the settings refuse.
        assert not spec["enableServiceLinks"], name
        assert spec["securityContext"]["runAsNonRoot"], name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert "memory" in container["resources"]["limits"], name
        writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
        own = {"localidades-nginx": ["/var/cache/nginx"], "localidades-api": ["/var/cache/localidades-api"]}
        assert writable == [*own.get(name, []), "/tmp"], name  # noqa: S108  # the pod's


def test_selectors_match_the_pods() -> None:
    found = manifests()
    deployment = found["Deployment", "localidades-api"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    selectors = [
        deployment["selector"]["matchLabels"],
        found["Service", "localidades-api"]["spec"]["selector"],
        found["PodDisruptionBudget", "localidades-api"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy", "localidades-api"]["spec"]["podSelector"]["matchLabels"],
        document(DEPLOY / "prometheus" / "pod-monitor.yaml")["spec"]["selector"]["matchLabels"],
    ]
    assert all(selector == labels for selector in selectors)
    jobs = found["NetworkPolicy", "localidades-jobs"]["spec"]["podSelector"]["matchLabels"]
    assert jobs != labels
    others = {name: template["metadata"]["labels"] for name, template in pods() if name != "localidades-api"}
    front = others.pop("localidades-nginx")
    assert front not in (labels, jobs)
    assert [*others.values()] == [jobs, jobs, jobs]
    assert found["Deployment", "localidades-nginx"]["spec"]["selector"]["matchLabels"] == front
    assert found["Service", "localidades-nginx"]["spec"]["selector"] == front
    assert found["PodDisruptionBudget", "localidades-nginx"]["spec"]["selector"]["matchLabels"] == front
    policy = found["NetworkPolicy", "localidades-nginx"]["spec"]
    assert policy["podSelector"]["matchLabels"] == front
    (to,) = policy["egress"][-1]["to"]
    assert to["podSelector"]["matchLabels"] == labels


def test_kubernetes_nginx_has_the_shipped_files() -> None:
    (generated,) = document(DEPLOY / "nginx" / "kustomization.yaml")["configMapGenerator"]
    assert GENERATED in document(KUBERNETES / "kustomization.yaml")["resources"]
    assert set(generated["files"]) == included()
    (literal,) = generated["literals"]
    name, _, site = literal.partition("=")
    service = manifests()["Service", "localidades-api"]
    (port,) = service["spec"]["ports"]
    assert name == SITE
    assert directives(site) == site_of_a_container(f"{service['metadata']['name']}:{port['port']}")
    spec = manifests()["Deployment", "localidades-nginx"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["ports"][0]["containerPort"] == 8080
    assert spec["volumes"][0]["configMap"]["name"] == generated["name"]
    assert f"{container['volumeMounts'][0]['mountPath']}/nginx.conf" in container["command"]


def test_kubernetes_leaves_time_to_drain() -> None:
    spec = manifests()["Deployment", "localidades-api"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    given = {one["name"]: one.get("value") for one in container["env"]}
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert spec["terminationGracePeriodSeconds"] > pause + int(given["LOCALIDADES_SHUTDOWN_TIMEOUT"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": 8000, "management": int(given["LOCALIDADES_MANAGEMENT_PORT"])}


def test_cloudnativepg_cluster_matches_the_secrets() -> None:
    cluster = manifests()["Cluster", "localidades-postgres"]
    made, (reader,) = cluster["spec"]["bootstrap"]["initdb"], cluster["spec"]["managed"]["roles"]
    known = {made["secret"]["name"]: made["owner"], reader["passwordSecret"]["name"]: reader["name"]}
    secrets = {one["metadata"]["name"]: one for one in documents(KUBERNETES / "postgres" / "secrets.example.yaml")}
    assert set(secrets) == set(known) == {"localidades-reader", "localidades-importer"}
    for name, role in known.items():
        given = secrets[name]["stringData"]
        assert (given["username"], given["password"]) == (role, "")
        dsn = Dsn.parse(given["DATABASE_URL"])
        addresses = [urlsplit(one) for one in dsn.addresses]
        hosts = {"localidades-postgres-ro", "localidades-postgres-rw"}
        assert {one.hostname for one in addresses} == (hosts if dsn.prefers_standby else {"localidades-postgres-rw"})
        assert {(one.username, one.password, one.path) for one in addresses} == {
            (role, "PASSWORD", f"/{made['database']}")
        }
    assert Dsn.parse(secrets["localidades-reader"]["stringData"]["DATABASE_URL"]).prefers_standby
    defaults = inspect.signature(roles).parameters
    assert set(known.values()) == {defaults["reader"].default, defaults["importer"].default}


def test_cloudnativepg_pooler_has_the_tested_settings() -> None:
    tried = dict(re.findall(r"^(\w+) = (.*)$", (DEPLOY / "pgbouncer.ini").read_text("utf-8"), re.MULTILINE))
    for name, type_ in (("localidades-pooler", "ro"), ("localidades-pooler-rw", "rw")):
        pooler = manifests()["Pooler", name]["spec"]
        assert pooler["type"] == type_
        assert ("Cluster", pooler["cluster"]["name"]) in manifests()
        assert pooler["pgbouncer"]["poolMode"] == tried["pool_mode"]
        assert pooler["pgbouncer"]["parameters"].items() <= tried.items()


# -- Prometheus and Grafana


def alerts() -> dict[str, Any]:
    return {rule["alert"]: rule for group in document(ALERTS)["groups"] for rule in group["rules"]}


def test_alerts_pass_promtools_tests() -> None:
    tool("promtool", "check", "config", "prometheus/prometheus.yml")
    tool("promtool", "check", "rules", "--lint=all", "--lint-fatal", "prometheus/alerts.yml")
    tool("promtool", "test", "rules", "prometheus/alerts.test.yml")


def test_operations_excluded_from_alerts_exist() -> None:
    operations = {str(route.name) for route in iter_route_contexts(create_app(Settings()).routes)}
    patterns = re.findall(r'operation!~"([^"]*)"', ALERTS.read_text("utf-8") + "\n".join(expressions()))
    assert len(patterns) >= 3
    for choice in "|".join(patterns).split("|"):
        assert any(re.fullmatch(choice, name) for name in operations), choice


def test_every_alert_is_tested_firing_and_silent() -> None:
    tried = document(DEPLOY / "prometheus" / "alerts.test.yml")["tests"]
    healthy, *faulty = [test["alert_rule_test"] for test in tried]
    assert {one["alertname"] for one in healthy if "exp_alerts" not in one} == set(alerts())
    assert {one["alertname"] for tests in faulty for one in tests if "exp_alerts" in one} == set(alerts())


def test_runbook_of_each_alert_exists() -> None:
    text = (ROOT / "docs" / "operations" / "observe.md").read_text(encoding="utf-8")
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook"] == f"docs/operations/observe.md#{name.lower()}"
        assert re.search(rf"^#+ `{name}`$", text, re.MULTILINE), name


def dashboard() -> Any:  # noqa: ANN401  # as above
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def test_dashboard_matches_grafanas_schema() -> None:
    register_default_plugins()
    written = dashboard()
    understood = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(written)))
    assert list(lost(written, understood)) == []


def lost(written: Any, understood: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401  # JSON
    """Yield the members that Grafana's own types dropped."""
    if isinstance(written, dict) and isinstance(understood, dict):
        for key, value in written.items():
            yield from lost(value, understood.get(key, "missing"), f"{path}.{key}")
    elif isinstance(written, list) and isinstance(understood, list) and len(written) == len(understood):
        for number, (one, other) in enumerate(zip(written, understood, strict=True)):
            yield from lost(one, other, f"{path}[{number}]")
    elif written != understood:
        yield f"{path}: {written!r}, not {understood!r}"


def expressions() -> list[str]:
    """Return the queries of the dashboard with its variables filled in."""
    asked = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    asked += [one["expr"] for one in dashboard()["annotations"]["list"]]
    return [one.replace("$__rate_interval", "1m").replace("$instance", ".*") for one in asked]


def test_dashboard_queries_are_valid(tmp_path: Path) -> None:
    assert not any("$" in one for one in expressions())
    rules = [{"record": f"panel:{number}", "expr": one} for number, one in enumerate(expressions())]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    tool("promtool", "check", "rules", str(path))


def test_job_name_is_the_same_everywhere() -> None:
    scraped = {one["job_name"] for one in document(DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"]}
    relabelled = document(DEPLOY / "prometheus" / "pod-monitor.yaml")["spec"]["podMetricsEndpoints"][0]["relabelings"]
    assert "localidades-api" in scraped
    assert relabelled == [{"targetLabel": "job", "replacement": "localidades-api"}]
    jobs = set(re.findall(r'job="([^"]*)"', ALERTS.read_text("utf-8") + "\n".join(expressions())))
    assert jobs == {"localidades-api"}
