"""Installs, lists and removes Lockstep's kernels in Jupyter's list of kernels.

Run as ``python -m runners.jupyter.kernelspec``; ``lockstep kernelspec`` calls it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jupyter_client.kernelspec import KernelSpecManager

from runners.wire.jupyter_kernels import DEFAULT_KERNELS, JupyterKernel
from runners.wire.topology import Topology, UnknownTopology

PROVISIONER = "lockstep-zygote"
_LOGO = Path(__file__).with_name("logo-svg.svg")


def kernel_json(kernel: JupyterKernel, title: str, data_dir: Path, socket: Path) -> dict[str, Any]:
    config = {
        "topology": str(kernel.topology),
        "keras": kernel.keras,
        "socket": str(socket),
        "python": sys.executable,
        "data_dir": str(data_dir),
    }
    return {
        "argv": [],
        "display_name": title,
        "language": "python",
        "interrupt_mode": "signal",
        "metadata": {"debugger": False, "kernel_provisioner": {"provisioner_name": PROVISIONER, "config": config}},
    }


def install(arguments: argparse.Namespace) -> None:
    """Install one kernel, or the default ones."""
    topology, keras = arguments.topology, arguments.keras
    chosen = [JupyterKernel(topology or Topology("gpu", 4), keras or 3)] if topology or keras else list(DEFAULT_KERNELS)
    if (arguments.name or arguments.title) and len(chosen) > 1:
        _refuse("--name needs a single kernel: choose it with --topology or --keras.")
    prefix = sys.prefix if arguments.sys_prefix else arguments.prefix
    for kernel in chosen:
        title = arguments.title or kernel.title
        with tempfile.TemporaryDirectory() as folder:
            spec = kernel_json(kernel, title, arguments.data_dir.absolute(), arguments.socket.absolute())
            Path(folder, "kernel.json").write_text(json.dumps(spec, indent=1) + "\n")
            Path(folder, _LOGO.name).write_bytes(_LOGO.read_bytes())
            Path(folder).chmod(0o755)
            try:
                where = KernelSpecManager().install_kernel_spec(
                    folder, arguments.name or kernel.name, user=prefix is None, prefix=prefix
                )
            except (OSError, ValueError) as e:
                _refuse(f"The kernel cannot be installed: {e}.")
        print(f"{Path(where).name:24} {title}: {where}")
    if arguments.prefix:
        path = shlex.quote(str(Path(arguments.prefix, "share", "jupyter").absolute()))
        print(f"To let a Jupyter in another environment find them: export JUPYTER_PATH={path}")


def installed() -> dict[str, dict[str, Any]]:
    """Lockstep's kernels that Jupyter finds here: name to folder, title, topology, Keras."""
    found = {}
    for name, folder in sorted(KernelSpecManager().find_kernel_specs().items()):
        try:
            spec = json.loads(Path(folder, "kernel.json").read_text())
            provisioner = spec["metadata"]["kernel_provisioner"]
            if provisioner["provisioner_name"] == PROVISIONER:
                few = {key: provisioner["config"][key] for key in ("topology", "keras")}
                found[name] = {"title": spec["display_name"], **few, "folder": folder}
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not one of Lockstep's kernels, or a broken one
    return found


def list_(arguments: argparse.Namespace) -> None:
    """Print Lockstep's kernels."""
    kernels = installed()
    if arguments.json:
        print(json.dumps(kernels, indent=1))
    elif not kernels:
        print("No Lockstep kernel is installed here. To add some, run `lockstep kernelspec install`.")
    else:
        for name, kernel in kernels.items():
            print(f"{name:24} {kernel['title']}: {kernel['folder']}")


def remove(arguments: argparse.Namespace) -> None:
    """Remove kernels of Lockstep, never any others."""
    kernels = installed()
    names = list(kernels) if arguments.all else arguments.names
    if arguments.all and not names:
        print(
            "Nothing to remove: Jupyter finds no Lockstep kernels here. To search other directories, set JUPYTER_PATH."
        )
    if not arguments.all and not names:
        _refuse("Name the kernels, or use --all.")
    for name in names:
        if name not in kernels:
            _refuse(f"No Lockstep kernel named {name} is installed. Run `lockstep kernelspec list` to see which are.")
    for name in names:
        try:
            KernelSpecManager(ensure_native_kernel=False).remove_kernel_spec(name)
        except OSError as e:
            _refuse(f"The kernel {name} cannot be removed: {e}.")
        print(f"removed {name}")


def _topology(text: str) -> Topology:
    try:
        return Topology.parse(text)
    except UnknownTopology as e:
        raise argparse.ArgumentTypeError(str(e)) from e


def _refuse(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> None:
    """``python -m runners.jupyter.kernelspec``."""
    parser = argparse.ArgumentParser(prog="lockstep kernelspec")
    commands = parser.add_subparsers(required=True)

    def command(name: str, work: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        added = commands.add_parser(name)
        added.set_defaults(work=work)
        return added

    adding = command("install", install)
    adding.add_argument("--data-dir", type=Path, required=True)
    adding.add_argument("--socket", type=Path, required=True)
    adding.add_argument("--topology", type=_topology)
    adding.add_argument("--keras", type=int, choices=(2, 3))
    adding.add_argument("--name")
    adding.add_argument("--display-name", dest="title")
    place = adding.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true")
    place.add_argument("--prefix")
    place.add_argument("--sys-prefix", action="store_true")
    command("list", list_).add_argument("--json", action="store_true")
    removing = command("remove", remove)
    removing.add_argument("names", nargs="*")
    removing.add_argument("--all", action="store_true")
    chosen = parser.parse_args(arguments)
    chosen.work(chosen)


if __name__ == "__main__":
    main()
