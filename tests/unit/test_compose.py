"""The promises of the Compose file: learners' code has no network, no capabilities, and one connection."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from app.cli.main import app
from app.secret_files import SECRET_SETTINGS
from app.settings import Settings
from runners.config.settings import Limits, RunnerSettings
from runners.sandbox.machine_limits import AvailableResources
from runners.supervisor.capacity import session_capacity
from runners.wire.environment import runner_environment

ROOT = Path(__file__).parents[2]
NAMESPACES_AND_MOUNTS = {"clone", "unshare", "mount", "umount2", "pivot_root", "sethostname", "mount_setattr"}
CONFINEMENT = {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "capset", "prctl"}
WAYS_OUT = """
    acct add_key bpf chroot setns open_tree move_mount setdomainname
    clock_adjtime clock_settime create_module delete_module finit_module fsconfig fsmount
    fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load
    kexec_load keyctl lookup_dcookie move_pages name_to_handle_at nfsservctl open_by_handle_at perf_event_open
    pidfd_getfd process_vm_readv process_vm_writev ptrace quotactl reboot request_key settimeofday swapoff
    swapon syslog userfaultfd uselib vm86
"""


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    return found


def allowed(syscall: str) -> list[Any]:
    """The rules of the runner's seccomp profile that allow a system call."""
    profile = json.loads((ROOT / "docker" / "runner.seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    return [rule for rule in profile["syscalls"] if syscall in rule["names"] and rule["action"] == "SCMP_ACT_ALLOW"]


def test_the_runner_has_no_network_and_keeps_no_capability() -> None:
    runner, recipe = services()["runner"], (ROOT / "docker" / "runner.Dockerfile").read_text()
    assert runner["network_mode"] == "none"
    assert runner["cap_drop"] == ["ALL"]
    assert "no-new-privileges" in runner["security_opt"]
    assert "systempaths=unconfined" in runner["security_opt"]  # else one session can take what Linux counts per user
    assert runner["read_only"] is True
    assert not {"privileged", "devices", "pid", "ipc", "ports"} & runner.keys()

    assert runner["cap_add"] == ["CHOWN", "KILL", "SETGID", "SETPCAP", "SETUID", "SYS_ADMIN"]
    assert (
        'ENTRYPOINT ["/usr/local/lib/lockstep/start"]' in recipe
    )  # gives them up: tests/functional/test_container_start.py
    assert not {"user", "entrypoint"} & runner.keys()
    for other in (service for name, service in services().items() if name != "runner"):
        assert "cap_add" not in other or "SYS_ADMIN" not in other["cap_add"]


def test_the_runner_expects_untrusted_users_and_a_container_as_outer_sandbox() -> None:
    recipe = (ROOT / "docker" / "runner.Dockerfile").read_text()

    assert re.search(r"^CMD .*\"runners.supervisor.server\".*\"--untrusted-users\"", recipe, re.MULTILINE)
    assert "LOCKSTEP_OUTER_SANDBOX=none" in recipe
    assert services()["runner"]["environment"]["LOCKSTEP_UNSAFE_RUNNER"] == "${LOCKSTEP_UNSAFE_RUNNER:-}"
    assert not {"LOCKSTEP_UNTRUSTED_USERS", "LOCKSTEP_OUTER_SANDBOX"} & services()["runner"]["environment"].keys()
    assert "command" not in services()["runner"]


def test_the_runner_shares_only_the_sockets_volume_with_the_web_container() -> None:
    folders = {name: {v.partition(":")[0] for v in service.get("volumes", [])} for name, service in services().items()}
    assert folders["runner"] & folders["web"] == {"socket"}
    assert folders["runner"] & folders["db"] == set()
    of_the_host = {v for volumes in folders.values() for v in volumes if v.startswith((".", "/", "~"))}
    assert of_the_host == {"./docker/Caddyfile", "./docker/database-password.sh"}
    assert "./docker/Caddyfile:/etc/caddy/Caddyfile:ro,z" in services()["caddy"]["volumes"]


def test_the_runner_is_bounded() -> None:
    runner = services()["runner"]
    assert runner["mem_limit"] == runner["memswap_limit"]
    assert any(re.match("/tmp:.*size=", mount) for mount in runner["tmpfs"])


def seats_with(memory_mb: int) -> int:
    """The number of sessions at once in the runner as Compose starts it, with that much memory."""
    room = AvailableResources(memory_mb, default(services()["runner"]["pids_limit"]), memory_is_limited=True)
    sessions = default(services()["runner"]["environment"]["LOCKSTEP_MAX_SESSIONS"])
    return session_capacity(RunnerSettings(max_sessions=sessions), room).count


@pytest.mark.parametrize("name", ["web", "db", "caddy"])
def test_pages_get_the_cpu_before_learners_code(name: str) -> None:
    assert services()["runner"]["cpu_shares"] == 1024, "with cgroup v2, a container that states none may have more"
    assert services()[name]["cpu_shares"] == 4096


def test_seats_follow_the_runners_memory_and_the_processes_of_all_sessions_fit() -> None:
    runner = services()["runner"]
    seats = seats_with(1024 * default(runner["mem_limit"]))

    assert seats == 27
    assert default(runner["pids_limit"]) >= seats * Limits().processes + 2048  # supervisor, zygotes, warm kernels


def test_the_documentation_says_how_many_seats_there_are_and_a_class_of_40_needs() -> None:
    told = (ROOT / "docs" / "operate" / "index.md").read_text()

    assert f"have seats for {seats_with(8192)} sessions:" in told
    assert f"`LOCKSTEP_RUNNER_MEMORY=12g`, which has seats for {seats_with(12_288)}" in told
    assert seats_with(12_288) >= 40


def test_the_documentation_names_every_variable_that_compose_passes_on_and_no_other() -> None:
    passed_on = set(re.findall(r"\$\{(LOCKSTEP_[A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))
    hosting = (ROOT / "docs" / "operate" / "index.md").read_text()
    rows = [line.split("|")[1] for line in hosting.splitlines() if line.startswith("| `")]

    named = {name for row in rows for name in re.findall(r"`(LOCKSTEP_[A-Z_]+)`", row)}

    assert passed_on - named == {"LOCKSTEP_UNSAFE_RUNNER"}  # on the page "Is it safe?"
    assert named <= passed_on


def test_what_compose_tells_the_web_container_are_settings_and_their_defaults() -> None:
    told = {name: value for name, value in services()["web"]["environment"].items() if name.startswith("LOCKSTEP_")}
    fields = {f"LOCKSTEP_{name.upper()}": field.default for name, field in Settings.model_fields.items()}

    assert told.keys() <= fields.keys() | {f"LOCKSTEP_{name.upper()}_FILE" for name in SECRET_SETTINGS}
    for name, value in told.items():
        if untouched := re.fullmatch(rf"\$\{{{name}:-(.*)\}}", str(value)):
            assert untouched[1] == str(fields[name])


def default(value: str) -> int:
    """The number in ``${NAME:-8g}``."""
    found = re.fullmatch(r"\$\{[A-Z_]+:-(\d+)g?\}", value)
    assert found, value
    return int(found[1])


def test_the_database_is_reached_from_the_web_image_only() -> None:
    whole = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert whole["networks"]["inside"]["internal"] is True
    assert whole["services"]["db"]["networks"] == ["inside"]
    assert "ports" not in whole["services"]["db"]
    inside = [name for name, s in whole["services"].items() if "inside" in s.get("networks", [])]
    assert inside == ["web", "backup", "db"]
    assert whole["services"]["backup"]["image"] == whole["services"]["web"]["image"]


def test_no_secret_is_in_the_environment_of_a_container_that_stays() -> None:
    found = services()
    url, password = "/run/database-password/url", "/run/database-password/password"
    for name in ("web", "backup"):
        assert found[name]["environment"]["LOCKSTEP_DATABASE_URL_FILE"] == url
        assert "database-password:/run/database-password:ro" in found[name]["volumes"]
    assert found["db"]["environment"]["POSTGRES_PASSWORD_FILE"] == password
    assert not [name for name, service in found.items() if "POSTGRES_PASSWORD" in service.get("environment", {})]
    holders = {name for name, service in found.items() if "LOCKSTEP_DB_PASSWORD" in service.get("environment", {})}
    assert holders == {"database-password"}, "which ends at once"
    maker = found["database-password"]
    assert (maker["network_mode"], maker["read_only"], maker["cap_drop"]) == ("none", True, ["ALL"])
    assert maker["image"] == found["db"]["image"]
    assert found["db"]["depends_on"]["database-password"] == {"condition": "service_completed_successfully"}


def test_backups_are_made_with_the_rights_of_the_web_container_and_no_network() -> None:
    web, backup = services()["web"], services()["backup"]
    assert backup["profiles"] == ["backup"]
    assert backup["networks"] == ["inside"]
    assert set(backup["volumes"]) < set(web["volumes"])
    assert backup["environment"].items() <= web["environment"].items()
    for name in ("read_only", "cap_drop", "security_opt", "tmpfs", "depends_on", "restart"):
        assert backup[name] == web[name]
    assert not {"user", "cap_add", "ports", "privileged"} & backup.keys()
    assert backup["init"] is True  # the first process of a container ignores SIGTERM by default


def test_the_command_that_makes_backups_has_options_that_exist() -> None:
    command = [re.sub(r"^\$\{\w+:-(\d+)\}$", r"\1", word) for word in services()["backup"]["command"]]
    assert command == ["lockstep", "backup", "--every", "24", "--keep", "14"]
    group: Any = typer.main.get_command(app)
    options = group.get_command(None, "backup").params
    assert {"--every", "--keep"} <= {name for option in options for name in option.opts}


def test_the_port_is_published_on_this_machine_unless_the_operator_says_otherwise() -> None:
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert published.pop("caddy") == ["80:80", "443:443", "443:443/udp"]
    told = services()["web"]["environment"]["LOCKSTEP_PUBLISHED_ADDRESS"]
    assert told == "${LOCKSTEP_ADDRESS:-127.0.0.1}:${LOCKSTEP_PORT:-8000}"
    assert published == {"web": [f"{told}:8000"]}


def test_caddy_is_trusted_at_an_address_that_no_other_container_can_get() -> None:
    whole = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    members = {name for name, service in services().items() if "front" in service.get("networks", [])}
    front, caddy, web = whole["networks"]["front"], services()["caddy"], services()["web"]
    (addresses,) = front["ipam"]["config"]
    prefix = "${LOCKSTEP_FRONT_NETWORK:-10.213.47}"

    assert members == {"caddy", "web"}
    assert set(caddy["networks"]) & set(web["networks"]) == {"front"}, "the name web would lead to two addresses"
    assert front["internal"] is True
    assert addresses == {"subnet": f"{prefix}.0/24", "ip_range": f"{prefix}.128/25"}
    assert caddy["networks"]["front"]["ipv4_address"] == f"{prefix}.2"
    assert web["environment"]["FORWARDED_ALLOW_IPS"] == f"${{LOCKSTEP_PROXY_ADDRESS:-127.0.0.1}},{prefix}.2"


def test_caddy_has_no_rights_but_to_listen_below_port_1024() -> None:
    caddy = services()["caddy"]
    assert caddy["profiles"] == ["tls"]
    assert (caddy["cap_drop"], caddy["cap_add"]) == (["ALL"], ["NET_BIND_SERVICE"])
    assert caddy["read_only"] is True
    assert "no-new-privileges" in caddy["security_opt"]


@pytest.mark.parametrize("name", ["web", "runner", "backup", "caddy", "db"])
def test_the_log_of_a_service_cannot_fill_the_disk(name: str) -> None:
    logging = services()[name]["logging"]
    assert logging == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "5"}}


@pytest.mark.parametrize("name", ["web", "runner", "db"])
def test_a_service_says_when_it_is_well_and_comes_back_after_a_crash(name: str) -> None:
    service = services()[name]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("syscall", sorted(NAMESPACES_AND_MOUNTS | CONFINEMENT))
def test_the_runner_may_build_the_inner_walls(syscall: str) -> None:
    assert allowed(syscall)


@pytest.mark.parametrize("syscall", WAYS_OUT.split())
def test_the_runner_may_not_reach_the_parts_of_the_kernel_that_break(syscall: str) -> None:
    assert not allowed(syscall)


def test_the_runner_may_open_only_families_of_sockets_that_a_network_namespace_holds() -> None:
    families = {rule["args"][0]["value"] for rule in allowed("socket")}
    assert families == {1, 2, 10, 16}  # Unix, IPv4, IPv6, netlink; no vsock, which no namespace holds
    assert all(rule["args"][0]["op"] == "SCMP_CMP_EQ" for rule in allowed("socket"))


def test_the_images_are_made_of_the_locks() -> None:
    for name, lock in (("web", "web.txt"), ("runner", "runner.txt")):
        recipe = (ROOT / "docker" / f"{name}.Dockerfile").read_text()
        assert f"--require-hashes -r locks/{lock}" in recipe
        assert re.findall(r"pip .*install (?!-q --no-deps (?:--require-hashes|/wheels/))", recipe) == []
        assert name == "runner" or re.search(r"^USER lockstep$", recipe, re.MULTILINE)  # it gives up root at its start


def test_the_runner_image_has_the_science_packages_only_if_the_operator_asks() -> None:
    recipe = (ROOT / "docker" / "runner.Dockerfile").read_text()
    assert services()["runner"]["build"]["args"]["SCIENCE"] == "${LOCKSTEP_RUNNER_SCIENCE:-}"
    assert 'ARG SCIENCE=""' in recipe
    (install,) = re.findall(r"^.*-r locks/science.txt.*$", recipe, re.MULTILINE)
    assert install.startswith('RUN if [ "$SCIENCE" = 1 ]; then ')


def test_the_runner_image_has_no_application_and_the_web_image_only_the_wire() -> None:
    runner, web = ((ROOT / "docker" / f"{name}.Dockerfile").read_text() for name in ("runner", "web"))
    assert not re.search(r"^COPY .*\bapp\b", runner, re.MULTILINE)
    copied = re.findall(r"^COPY (.*runners/.*) \S+$", web, re.MULTILINE)
    assert {file for line in copied for file in line.split()} == runner_files_of_the_application()


def runner_files_of_the_application() -> set[str]:
    """The runner's modules that ``app`` imports, the modules that those import, and their packages."""
    files: set[str] = set()
    waiting = [*(ROOT / "app").rglob("*.py")]
    while waiting:
        tree = ast.parse(waiting.pop().read_text())
        for name in (name for node in ast.walk(tree) for name in imported(node) if name.startswith("runners.")):
            module = Path(*name.split(".")).with_suffix(".py")
            packages = [parent / "__init__.py" for parent in module.parents if parent.name]
            new = {str(file) for file in (module, *packages) if (ROOT / file).is_file()} - files
            files |= new
            waiting += [ROOT / file for file in new]
    return files


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def test_with_gpus_the_runner_gets_devices_and_memory_and_no_way_out() -> None:
    overlay: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "gpu.compose.yml").read_text())
    runner = overlay["services"]["runner"]

    assert overlay.keys() == {"services"}
    assert overlay["services"].keys() == {"runner"}
    assert runner.keys() == {
        "image",
        "build",
        "environment",
        "mem_limit",
        "memswap_limit",
        "deploy",
    }
    (wanted,) = runner["deploy"]["resources"]["reservations"]["devices"]
    assert wanted["capabilities"] == ["gpu"]
    settings = {name: str(value) for name, value in runner["environment"].items() if name.startswith("LOCKSTEP_")}
    assert runner_environment(settings) == settings
    assert "ARG CUDA" in (ROOT / "docker" / "runner.Dockerfile").read_text()


def test_the_web_image_has_all_scripts_and_styles_before_it_bundles_them() -> None:
    recipe = (ROOT / "docker" / "web.Dockerfile").read_text()
    before_bundling = recipe.partition("RUN node $NPM run build")[0].splitlines()
    assert "COPY app app" in before_bundling, "each feature has a folder frontend"


def test_an_image_that_is_built_here_has_the_version_of_a_tree_without_a_tag() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["version"]["raw-options"]
    version = f"${{LOCKSTEP_VERSION:-{project['fallback_version']}}}"
    for name in ("web", "runner"):
        service = services()[name]
        assert service["image"] == f"${{LOCKSTEP_IMAGE_PREFIX:-}}lockstep-{name}:{version}"
        assert service["build"]["args"]["LOCKSTEP_VERSION"] == version
        assert "ARG LOCKSTEP_VERSION" in (ROOT / "docker" / f"{name}.Dockerfile").read_text()
    for name, other in (("backup", "web"), ("datasets", "runner")):
        assert services()[name]["image"] == services()[other]["image"]
