"""`ductor admin bootstrap`: the first tenant and its keys, on a stack that was just deployed."""

from __future__ import annotations

from typing import Any

import typer

from ductor.app.tenants import FirstStart
from ductor.cli.failure import Exit, Failure
from ductor.ports import UnavailableError


def bootstrap(stack: str, *, reissue: bool) -> None:
    """Print the two keys as lines that a shell can read. Raises Failure."""
    outputs = _outputs(stack)
    missing = [name for name in ("ApiUrl", "TableName") if name not in outputs]
    if missing:
        raise Failure(f"the stack {stack} is no deployment of Ductor: it has no output {missing[0]}", code=Exit.USAGE)
    first = _first_start(outputs["TableName"], reissue)
    if first.key is None or first.admin_key is None:
        raise Failure(
            f"the stack {stack} has its first tenant already: {first.tenant}",
            hint="if its keys are lost, --reissue makes two new ones",
        )
    typer.echo(f"export DUCTOR_API_URL={outputs['ApiUrl']}")
    typer.echo(f"export DUCTOR_TENANT_ID={first.tenant}")
    typer.echo(f"export DUCTOR_API_KEY={first.key.plaintext}")
    typer.echo(f"export DUCTOR_ADMIN_KEY={first.admin_key.plaintext}")
    typer.echo("These keys are shown this once. The admin key makes and revokes others: keep it safe.", err=True)


def _outputs(stack: str) -> dict[str, str]:
    from botocore.exceptions import BotoCoreError, ClientError

    from ductor.bootstrap.aws_parts import parts

    try:
        answer: Any = parts().clients("cloudformation").describe_stacks(StackName=stack)
    except (BotoCoreError, ClientError) as error:
        hint = "credentials and region are found as the AWS command line finds them: AWS_PROFILE, AWS_REGION"
        raise Failure(f"the stack {stack} cannot be read: {error}", code=Exit.UNREACHABLE, hint=hint) from error
    return {entry["OutputKey"]: entry["OutputValue"] for entry in answer["Stacks"][0].get("Outputs", ())}


def _first_start(table: str, reissue: bool) -> FirstStart:
    from ductor.app.keys import Keys
    from ductor.app.tenants import Tenants
    from ductor.bootstrap.aws_parts import AwsSettings, parts

    of = parts(AwsSettings({"DUCTOR_TABLE": table}))
    try:
        return Tenants(of.table, of.clock, of.ids).first_start(Keys(of.table, of.clock, of.ids), reissue=reissue)
    except (UnavailableError, RuntimeError) as error:
        raise Failure(f"the table {table} cannot be written: {error}", code=Exit.REFUSED) from error
