"""The command line's entry point: names commands and options, and loads nothing heavy before a command needs it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ductor import __version__
from ductor.cli import authoring
from ductor.cli.admin import admin
from ductor.cli.failure import Exit, Failure
from ductor.cli.operate import add_to as add_controls
from ductor.cli.operate_many import add_to as add_jobs
from ductor.cli.operate_steps import add_to as add_step_controls
from ductor.cli.options import DATA_HELP, CaseFormat, Format, LogLevel
from ductor.cli.run_list import add_to as add_run_list
from ductor.cli.schedules import schedules

_BEGAN = time.monotonic()


class Commands(TyperGroup):
    """Turns a `Failure` of any command into its text on standard error and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Failure as failure:
            for line in failure.lines():
                typer.echo(line, err=True)
            raise typer.Exit(int(failure.code)) from failure


app = typer.Typer(
    cls=Commands,
    name="ductor",
    help="Durable workflows: publish a definition, trigger it, and it finishes, whatever crashes in between.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
workflow = typer.Typer(
    name="workflow", help="Definitions: check files, edit drafts, publish versions.", no_args_is_help=True
)
runs = typer.Typer(name="runs", help="Runs on a server: list, show, watch, control.", no_args_is_help=True)
authoring.add_to(workflow)
add_run_list(runs)
add_controls(runs)
add_step_controls(runs)
add_jobs(app, runs)
app.add_typer(workflow)
app.add_typer(runs)
app.add_typer(schedules)
app.add_typer(admin)

Data = Annotated[Path, typer.Option("--data", envvar="DUCTOR_DATA", help=DATA_HELP)]
Shown = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]
Labels = Annotated[list[str] | None, typer.Option("--label", metavar="KEY=ID", help="A correlation label; repeatable.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ductor {__version__}")
        raise typer.Exit(int(Exit.OK))


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")] = 8080,
    data: Data = Path("data"),
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Threads that run actions.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Take the hello world to its result, then stay up.")] = False,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="How much goes to standard error.")
    ] = LogLevel.WARNING,
) -> None:
    """Run the server: API, coordinator, workers and timers in this one process, on one durable file."""
    from ductor.cli import serve as command

    command.run(command.Options(host, port, data, workers, demo, log_level), began=_BEGAN)


@app.command()
def worker(
    target: Annotated[str, typer.Argument(metavar="MODULE:NAME", help="A ductor.client.Worker, such as jobs:worker.")],
    concurrency: Annotated[int | None, typer.Option(min=1, max=256, help="Tasks at once.")] = None,
    data: Data = Path("data"),
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="How much goes to standard error.")
    ] = LogLevel.INFO,
) -> None:
    """Work on tasks of bridge steps, with the handlers of a Python module."""
    from ductor.cli import worker as command

    command.run(command.Options(target, concurrency, data, log_level))


@app.command()
def demo(data: Data = Path("data")) -> None:
    """Take the hello world from draft to finished result on a running server, and watch it."""
    from ductor.cli import demo as command

    command.run(data)


@app.command()
def console(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run whose page to open.")] = "",
    data: Data = Path("data"),
) -> None:
    """Print the address of the web console that signs you in. The key is in it."""
    from ductor.cli import console as command

    command.run(data, run_id)


@app.command()
def trigger(
    definition: Annotated[str, typer.Argument(help="A family slug (its newest version runs) or the id of a version.")],
    input: Annotated[str, typer.Option("--input", metavar="JSON|@FILE", help="The payload; @- reads stdin.")] = "",
    idempotency_key: Annotated[str, typer.Option(help="The same key and body give the same run, never a second.")] = "",
    subject: Annotated[str, typer.Option(metavar="TYPE:ID", help="What the run is about.")] = "",
    label: Labels = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run; exit 1 unless it completes.")] = False,
    shown: Shown = Format.TEXT,
    data: Data = Path("data"),
) -> None:
    """Start a run of a published definition."""
    from ductor.cli import trigger as command

    request = command.Request(definition, input, idempotency_key, subject, tuple(label or ()))
    command.run(request, data=data, wait=wait, shown=shown)


@app.command("test")
def play_cases(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE…", help="Test files, patterns, folders (*.test.yaml).")
    ] = None,
    wanted: Annotated[str, typer.Option("--filter", metavar="TEXT", help="Only cases with this in their name.")] = "",
    crash: Annotated[bool, typer.Option("--crash", help="Play every case also with random crashes.")] = False,
    seeds: Annotated[int, typer.Option(min=0, max=10_000, help="How many turns of chance, for cases with faults.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Only this turn of chance, to repeat a failure.")] = None,
    shown: Annotated[CaseFormat, typer.Option("--format", help="text, json, or junit for build servers.")] = (
        CaseFormat.TEXT
    ),
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Name every case, also those that pass.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of test files instead.")] = False,
) -> None:
    """Test workflows without a server: mocked actions, decisions, events, and a clock that is skipped."""
    from ductor.cli import cases as command

    if schema:
        command.print_schema()
        return
    command.run(files or (), command.Asked(wanted, crash, seeds, seed, shown, verbose))


@workflow.command()
def validate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="YAML or JSON files, patterns, folders, - for stdin.")
    ],
    shown: Shown = Format.TEXT,
) -> None:
    """Check definitions without a server; exit 1 when one is invalid. Every fault is shown at once."""
    from ductor.cli import validate as command

    command.run(files, shown)


@workflow.command()
def publish(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="YAML or JSON files, patterns, folders.")],
    data: Data = Path("data"),
) -> None:
    """Publish definition files on a server: each becomes the draft of its family, and then its next version."""
    from ductor.cli import publish as command

    command.run(files, data=data)


@workflow.command()
def schema() -> None:
    """Print the JSON Schema of the document, for editors."""
    from ductor.cli import validate as command

    command.print_schema()


@runs.command()
def show(run: str, shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """Show one run: its state, what it waits for, every node with its error or output."""
    from ductor.cli import runs as command

    command.show(run, shown=shown, data=data)


@runs.command()
def tree(run: str, shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """Show the runs that one trigger led to: children, compensations, hooks, successors."""
    from ductor.cli import tree as command

    command.show(run, shown=shown, data=data)


@runs.command()
def cost(run: str, shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """Show what a run costs on AWS by service, estimated from what it counted; here, what it would cost there."""
    from ductor.cli import cost as command

    command.show(run, shown=shown, data=data)


@runs.command()
def watch(run: str, data: Data = Path("data")) -> None:
    """Follow a run until it ends; exit 1 unless it completes. A restart of the server does not end the watch."""
    from ductor.cli import runs as command

    command.watch(run, data=data)
