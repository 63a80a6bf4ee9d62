"""`ductor admin`: names the commands and options for tenants, keys, environments, connections and variables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ductor.cli.options import DATA_HELP, Format

admin = typer.Typer(name="admin", help="Tenants, keys, environments, connections, variables.", no_args_is_help=True)
tenants = typer.Typer(name="tenants", help="Tenants and what their plans allow.", no_args_is_help=True)
keys = typer.Typer(name="keys", help="API keys.", no_args_is_help=True)
environments = typer.Typer(name="environments", help="Environments, their releases, promotion.", no_args_is_help=True)
connections = typer.Typer(name="connections", help="How runs reach other systems.", no_args_is_help=True)
variables = typer.Typer(name="variables", help="Variables of environments.", no_args_is_help=True)
for group in (tenants, keys, environments, connections, variables):
    admin.add_typer(group)

LIMITS_HELP = (
    "max_steps, max_environments, max_connections, max_api_keys, requests_per_second, burst or retention_days."
)
ROLES_HELP = "viewer, operator, author, worker, admin, queue:TASK_TYPE, or a name of yours."

Data = Annotated[Path, typer.Option("--data", envvar="DUCTOR_DATA", help=DATA_HELP)]
Shown = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]
Limits = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=N", help=LIMITS_HELP),
]
StepTypes = Annotated[
    list[str] | None, typer.Option("--step-type", help="An allowed step type; repeatable; none: all.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting; JSON or text. Empty removes it.")
]
SecretTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME[=@FILE|=env:VAR]",
        help="A secret from a file, @- (standard input) or a variable; the name alone asks for it.",
    ),
]
Serves = Annotated[
    list[str] | None, typer.Option("--environment", help="Only runs of this environment may use it; repeatable.")
]
Environment = Annotated[str, typer.Option("--environment", help="Key of the environment.")]


@admin.command("bootstrap")
def bootstrap(
    stack: Annotated[str, typer.Option("--stack", help="Name of the CloudFormation stack.")],
    reissue: Annotated[bool, typer.Option("--reissue", help="Make two new keys, if the first are lost.")] = False,
) -> None:
    """Make the first tenant and its keys on a stack in AWS; they are shown this once."""
    from ductor.cli import admin_bootstrap as command

    command.bootstrap(stack, reissue=reissue)


@admin.command("dead-letters")
def dead_letters(
    queue: Annotated[str, typer.Argument(help="intents or steps.")],
    redrive: Annotated[bool, typer.Option("--redrive", help="Send them again instead of listing them.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most, oldest first.")] = 100,
    stack: Annotated[
        str, typer.Option("--stack", help="Of this CloudFormation stack, with your AWS credentials.")
    ] = "",
    data: Data = Path("data"),
    shown: Shown = Format.TEXT,
) -> None:
    """What a queue gave up on, each with its reason; --redrive once the cause is put right."""
    from ductor.cli import dead_letters as command

    command.run(queue, data=data, stack=stack, redrive=redrive, limit=limit, shown=shown)


@tenants.command("create")
def create_tenant(
    name: str,
    plan: Annotated[str, typer.Option(help="The plan's name, for people.")] = "",
    step_type: StepTypes = None,
    limit: Limits = None,
    data: Data = Path("data"),
) -> None:
    """Make a tenant and its first administrator's key, which is shown this once."""
    from ductor.cli import admin_tenants as command

    command.create_tenant(name, command.entitlements(plan, step_type, limit), data)


@tenants.command("list")
def list_tenants(shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """List tenants: all for the operator, its own for everybody else."""
    from ductor.cli import admin_tenants as command

    command.list_tenants(shown, data)


@tenants.command("entitle")
def entitle_tenant(
    tenant: str,
    plan: Annotated[str, typer.Option(help="The plan's name, for people.")] = "",
    step_type: StepTypes = None,
    limit: Limits = None,
    replace: Annotated[bool, typer.Option("--replace", help="What is not named here is not limited any more.")] = False,
    data: Data = Path("data"),
) -> None:
    """Change what a tenant's plan allows. What is not named stays; a limit of 0 is none."""
    from ductor.cli import admin_tenants as command

    command.entitle(tenant, command.entitlements(plan, step_type, limit), data, replace=replace)


@keys.command("issue")
def issue_key(
    name: str,
    role: Annotated[list[str] | None, typer.Option(help=ROLES_HELP)] = None,
    scope: Annotated[list[str] | None, typer.Option(help="A single scope; repeatable.")] = None,
    write: Annotated[list[str] | None, typer.Option(help="An environment it can write; repeatable; none: all.")] = None,
    environment: Environment = "default",
    user: Annotated[str, typer.Option(help="Whom it speaks for in approval audiences.")] = "",
    expires: Annotated[str, typer.Option(metavar="RFC3339", help="When it stops working; none: never.")] = "",
    data: Data = Path("data"),
) -> None:
    """Issue a key, which is shown this once."""
    from ductor.cli import admin_tenants as command

    wanted = {
        "name": name,
        "roles": role or [],
        "scopes": scope or [],
        "environments_write": write or ["*"],
        "default_environment": environment,
        "user": user,
        **({"expires_at": expires} if expires else {}),
    }
    command.issue_key(wanted, data)


@keys.command("list")
def list_keys(shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """List keys, revoked ones too."""
    from ductor.cli import admin_tenants as command

    command.list_keys(shown, data)


@keys.command("revoke")
def revoke_key(key: str, data: Data = Path("data")) -> None:
    """Make a key invalid for ever, within a minute."""
    from ductor.cli import admin_tenants as command

    command.revoke_key(key, data)


@environments.command("create")
def create_environment(
    key: str,
    title: Annotated[str, typer.Option(help="For people.")] = "",
    direct: Annotated[bool, typer.Option("--direct/--no-direct", help="Whether drafts may be published in it.")] = True,
    promotion: Annotated[
        bool, typer.Option("--require-promotion", help="Versions come into it by promotion only.")
    ] = False,
    data: Data = Path("data"),
) -> None:
    """Make an environment."""
    from ductor.cli import admin_environments as command

    fields = {"title": title, "allow_direct_mutation": direct, "require_promotion": promotion}
    command.create(key, fields, data)


@environments.command("list")
def list_environments(shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """List environments."""
    from ductor.cli import admin_environments as command

    command.list_all(shown, data)


@environments.command("update")
def update_environment(
    key: str,
    title: Annotated[str | None, typer.Option(help="For people.")] = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="Whether runs start in it.")] = None,
    mutable: Annotated[
        bool | None, typer.Option("--mutable/--immutable", help="Whether it takes versions at all.")
    ] = None,
    direct: Annotated[
        bool | None, typer.Option("--direct/--no-direct", help="Whether drafts may be published in it.")
    ] = None,
    promotion: Annotated[
        bool | None, typer.Option("--require-promotion/--no-promotion", help="Whether versions come by promotion only.")
    ] = None,
    data: Data = Path("data"),
) -> None:
    """Change an environment; what is not named stays."""
    from ductor.cli import admin_environments as command

    fields = {
        "title": title,
        "active": active,
        "mutable": mutable,
        "allow_direct_mutation": direct,
        "require_promotion": promotion,
    }
    command.update(key, {name: value for name, value in fields.items() if value is not None}, data)


@environments.command("release")
def release(
    key: str,
    deployment: Annotated[str, typer.Argument(help="The external_deployment_id that is live now.")],
    required: Annotated[
        bool | None, typer.Option("--require/--no-require", help="Whether triggers must name it.")
    ] = None,
    data: Data = Path("data"),
) -> None:
    """Say which caller release is live in an environment."""
    from ductor.cli import admin_environments as command

    policy = {"external_deployment_id": deployment} | ({} if required is None else {"required": required})
    command.update(key, {"release": policy}, data)


@environments.command("connect")
def connect(
    key: str,
    name: Annotated[str, typer.Argument(help="What steps say, with connection_ref_mode environment.")],
    connection: Annotated[str, typer.Argument(help="Id or slug of the connection; - removes the name.")],
    data: Data = Path("data"),
) -> None:
    """Map a name to a connection, in one environment."""
    from ductor.cli import admin_environments as command

    command.connect(key, name, connection, data)


@environments.command("promote")
def promote(
    version: Annotated[str, typer.Argument(help="Id of a published version.")],
    to: Annotated[str, typer.Option("--to", help="Key of the target environment.")],
    data: Data = Path("data"),
) -> None:
    """Make a published version the next version of its family in another environment."""
    from ductor.cli import admin_environments as command

    command.promote(version, to, data)


@connections.command("types")
def list_types(shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """List the types of connections, and what each takes."""
    from ductor.cli import admin_connections as command

    command.list_types(shown, data)


@connections.command("create")
def create_connection(
    slug: str,
    kind: Annotated[str, typer.Option("--type", help="A connector; `connections types` lists them.")],
    title: Annotated[str, typer.Option(help="For people.")] = "",
    setting: Settings = None,
    secret: SecretTexts = None,
    environment: Serves = None,
    data: Data = Path("data"),
) -> None:
    """Store a connection. Its secrets are encrypted, and never shown again."""
    from ductor.cli import admin_connections as command

    command.create(slug, kind, command.fields(title or None, setting, secret, environment), data)


@connections.command("list")
def list_connections(shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """List connections, without secrets."""
    from ductor.cli import admin_connections as command

    command.list_all(shown, data)


@connections.command("update")
def update_connection(
    connection: Annotated[str, typer.Argument(help="Id or slug.")],
    title: Annotated[str | None, typer.Option(help="For people.")] = None,
    setting: Settings = None,
    secret: SecretTexts = None,
    environment: Serves = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="Whether runs can use it.")] = None,
    data: Data = Path("data"),
) -> None:
    """Change a connection; what is not named stays."""
    from ductor.cli import admin_connections as command

    changes = command.fields(title, setting, secret, environment)
    command.update(connection, changes | ({} if active is None else {"active": active}), data)


@connections.command("delete")
def delete_connection(connection: str, data: Data = Path("data")) -> None:
    """Remove a connection and its secrets."""
    from ductor.cli import admin_connections as command

    command.delete(connection, data)


@connections.command("test")
def try_connection(connection: str, data: Data = Path("data")) -> None:
    """Call the other system with the stored secret; exit 1 when it refuses."""
    from ductor.cli import admin_connections as command

    command.test(connection, data)


@variables.command("list")
def list_variables(environment: Environment = "default", shown: Shown = Format.TEXT, data: Data = Path("data")) -> None:
    """List the variables of an environment."""
    from ductor.cli import admin_environments as command

    command.list_variables(environment, shown, data)


@variables.command("set")
def set_variable(
    name: str,
    value: Annotated[str, typer.Argument(help="JSON; anything else counts as text.")],
    environment: Environment = "default",
    data: Data = Path("data"),
) -> None:
    """Set a variable; runs that start afterwards read it as VARS.NAME."""
    from ductor.cli import admin_environments as command

    command.set_variable(environment, name, value, data)


@variables.command("unset")
def unset_variable(name: str, environment: Environment = "default", data: Data = Path("data")) -> None:
    """Remove a variable."""
    from ductor.cli import admin_environments as command

    command.unset_variable(environment, name, data)
