"""thresher federate: parties on real machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import check_outputs, complain
from thresher.cli.options import AsJson, Force

if TYPE_CHECKING:
    from thresher.federated.mpyc import TLS
    from thresher.federated.task import JointTask

__all__ = ["federate"]

federate = typer.Typer(
    help="Fit one model over the rows of several parties, each on a machine of its own (extra: thresher[mpc]).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

TaskFile = Annotated[Path, typer.Argument(metavar="TASK", help="The task: a TOML file, the same at every party.")]


@federate.command()
def plan(task: TaskFile, as_json: AsJson = False) -> None:
    """Show what TASK would release and cost, and the hash that every party must accept. Touches no data."""
    from thresher.cli.display import show_json
    from thresher.federated.task import JointTask

    known = JointTask.read(task)
    if as_json:
        show_json(_record(known))
    else:
        _show(known)


@federate.command()
def run(
    task: TaskFile,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="This party's own rows.")],
    me: Annotated[str, typer.Option(help="Which of the task's parties this is.")],
    folder: Annotated[
        Path, typer.Option(help="Where this party keeps its journal; a run that was stopped goes on from it.")
    ],
    accept: Annotated[
        str | None, typer.Option(help="The hash of the plan you accept, as shown by thresher federate plan.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="This party's TLS certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    authority: Annotated[Path | None, typer.Option(help="Who signs the parties' certificates (PEM).")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the others, at any point.")] = 60.0,
    out_path: Annotated[Path, typer.Option("--out", help="Where to write the model and its certificate.")] = Path(
        "model.json"
    ),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Take part in TASK as one party, with the rows in DATA; the model comes out at every party.

    Example: thresher federate run task.toml north.csv --me north --folder north-run --accept 3f9c... --certificate
    north.pem --key north.key --authority authority.pem
    """
    from thresher.cli.display import out, show_certificate, show_coefficients
    from thresher.federated.aggregation import Aborted, Ended
    from thresher.federated.endpoints import check_endpoints
    from thresher.federated.mpyc import MPyCParty
    from thresher.federated.run import run_party
    from thresher.federated.session import longest_message
    from thresher.federated.task import JointTask

    check_outputs(force, inputs=(task, data, certificate, key, authority), out=out_path)
    known = JointTask.read(task)
    at = known.position_of(me)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--folder={str(folder)!r} is a file; give the folder that keeps this party's journal")
    tls = _tls(certificate, key, authority)
    addresses, names = [member.address for member in known.members], [member.name for member in known.members]
    check_endpoints(at, addresses, tls, names)
    _check_accepted(known, accept, ask=sys.stdin.isatty() and not as_json)

    def join() -> Any:
        longest = longest_message(known.plan.problem.dimension)
        return MPyCParty(at, addresses, tls=tls, names=names, timeout=timeout, longest=longest)

    try:
        model = run_party(known, me, data, folder, join, verbose=1)
    except Aborted as error:
        remedy = "" if isinstance(error, Ended) else "; to go on, start every party again with the same --folder"
        complain(f"{error}{remedy}")
        raise typer.Exit(3) from None
    model.save(out_path)
    if as_json:
        typer.echo(out_path.read_text())
        return
    show_coefficients(model)
    show_certificate(model.certificate_)
    out.print(f"Written to {out_path}; check it with: thresher verify {out_path}")


@federate.command()
def certificates(
    task: TaskFile,
    folder: Annotated[Path, typer.Option(help="Where to write them.")] = Path("certificates"),
    as_json: AsJson = False,
) -> None:
    """Write TLS certificates for the parties of TASK, and the authority that signs them.

    For trials, and for parties that trust whoever runs this: it sees every private key. Otherwise let each party make
    its own key and have it signed; the certificate must carry the party's name as a DNS name.
    """
    from thresher.cli.display import out, show_json
    from thresher.federated.certificates import write_certificates
    from thresher.federated.task import JointTask

    members = JointTask.read(task).members
    if (folder / "authority.pem").exists():
        raise ValueError(f"--folder={str(folder)!r} holds certificates already; name another folder")
    write_certificates(folder, [member.name for member in members], [member.address[0] for member in members])
    if as_json:
        files = sorted(file.name for file in folder.iterdir())
        show_json({"folder": str(folder), "files": files})
        return
    out.print(f"Written to {folder}: authority.pem, and a .pem and .key for each of {len(members)} parties.")


def _show(task: JointTask) -> None:
    from thresher.cli.display import out, show_plans

    show_plans([task.plan])
    bounds = {name: value for name, value in task.plan.problem.enforced.items() if value is not None}
    out.print(f"bounds: {', '.join(f'{name} {value}' for name, value in bounds.items())}")
    for member in task.members:
        host, port = member.address
        out.print(f"party {member.name} at {host}:{port}, at most {member.rows} rows")
    out.print(f"hash of task and plan: {task.hash}")


def _record(task: JointTask) -> dict[str, object]:
    """What is shown, for JSON."""
    from thresher.cli.display import plan_record

    parties = [{"name": each.name, "address": list(each.address), "rows": each.rows} for each in task.members]
    return {**plan_record(task.plan), "bounds": task.plan.problem.enforced, "parties": parties, "hash": task.hash}


def _check_accepted(task: JointTask, accept: str | None, ask: bool) -> None:
    """Nothing is said to anybody before a person, or a script in its place, has accepted this very plan."""
    if accept is None and ask:
        _show(task)
        accept = task.hash if typer.confirm("Accept this plan?") else ""
    if accept is None:
        raise ValueError("--accept is missing: read the plan (thresher federate plan TASK) and give its hash")
    if accept != task.hash:
        raise ValueError(f"--accept={accept!r} is not the hash of this task and plan, {task.hash}; compare both")


def _tls(certificate: Path | None, key: Path | None, authority: Path | None) -> TLS | None:
    from thresher.federated.mpyc import TLS

    files = {"--certificate": certificate, "--key": key, "--authority": authority}
    if not any(files.values()):
        return None
    for name, file in files.items():
        if file is None:
            raise ValueError(f"{name} is missing: TLS needs --certificate, --key and --authority")
        if not file.is_file():
            raise ValueError(f"{name}={str(file)!r} does not exist; give the path of a PEM file")
    return TLS(certificate, key, authority)  # type: ignore[arg-type]
