"""Mails and executions, and as whom calls are made."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.aws.cloud import ACCOUNT, REGION, Cloud

from ductor.actions.aws.access import AwsSettings
from ductor.actions.connection import Connection, Secret

MAIL = {"from": "Shop <shop@acme.test>", "to": ["ada@acme.test"], "subject": "Hello", "text": "hi"}
ROLE = f"arn:aws:iam::{ACCOUNT}:role/partner"


def test_a_mail_is_handed_to_ses(cloud: Cloud) -> None:
    cloud.client("sesv2").create_email_identity(EmailIdentity="shop@acme.test")
    assert cloud.act("email.send", {**MAIL, "html": "<p>hi</p>", "cc": ["b@acme.test"]})["message_id"]
    (sent,) = [params for params in cloud.params if "Content" in params]
    assert sent["Destination"] == {"ToAddresses": ["ada@acme.test"], "CcAddresses": ["b@acme.test"]}
    assert set(sent["Content"]["Simple"]["Body"]) == {"Text", "Html"}


def test_a_mail_is_sent_once_whatever_becomes_of_it(cloud: Cloud) -> None:
    with cloud.answering("sesv2", (500, {"x-amzn-errortype": "InternalFailure"}, b"{}")) as heard:
        fault = cloud.fails("email.send", MAIL)
    assert (fault.code, fault.retryable, len(heard)) == ("SES.InternalFailure", True, 1)


def test_a_sender_who_is_not_verified_is_refused(cloud: Cloud) -> None:
    fault = cloud.fails("email.send", {**MAIL, "from": "nobody@else.test"})
    assert (fault.code, fault.retryable) == ("SES.MessageRejected", False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": []},
        {"subject": ""},
        {"text": None},
        {"to": ["ada"]},
        {"subject": "Hello\nBcc: all@acme.test"},
        {"to": ["a@b.test\r\nBcc: c@d.test"]},
        {"template": "welcome"},
        {"to": ["a@acme.test"] * 51},
    ],
)
def test_a_mail_that_is_none_is_refused(cloud: Cloud, wrong: dict[str, Any]) -> None:
    assert cloud.fails("email.send", {**MAIL, **wrong}).code == "ACTION_ARGS_INVALID"


def machine(cloud: Cloud) -> str:
    definition = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}'
    role = f"arn:aws:iam::{ACCOUNT}:role/machine"
    made = cloud.client("stepfunctions").create_state_machine(name="work", definition=definition, roleArn=role)
    return str(made["stateMachineArn"])


def test_an_execution_starts_once_per_step(cloud: Cloud) -> None:
    args = {"state_machine_arn": machine(cloud), "input": {"n": 1}}
    first = cloud.act("stepfunctions.start_execution", args)
    assert cloud.act("stepfunctions.start_execution", args) == first
    assert cloud.act("stepfunctions.start_execution", args, key="run-2/step") != first
    executions = cloud.client("stepfunctions").list_executions(stateMachineArn=args["state_machine_arn"])["executions"]
    assert len(executions) == 2


def test_an_execution_whose_name_was_used_is_that_of_the_step_only_under_its_own_name(cloud: Cloud) -> None:
    exists: tuple[int, dict[str, str], bytes] = (400, {}, b'{"__type": "ExecutionAlreadyExists", "message": "exists"}')
    arn = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:work"
    with cloud.answering("stepfunctions", exists):
        done = cloud.act("stepfunctions.start_execution", {"state_machine_arn": f"{arn}:live"})
        fault = cloud.fails("stepfunctions.start_execution", {"state_machine_arn": arn, "name": "mine"})
    assert done["execution_arn"] == f"arn:aws:states:{REGION}:{ACCOUNT}:execution:work:{done['name']}"
    assert (fault.code, fault.retryable) == ("StepFunctions.ExecutionAlreadyExists", False)


def partner(**more: Any) -> Connection:
    settings = {"role_arn": ROLE, "region": "eu-west-1", **more}
    return Connection(id="c", slug="partner", type="aws", settings=settings)


def test_a_connection_calls_as_its_role_in_its_region_with_the_tenant_as_external_id(cloud: Cloud) -> None:
    own = Cloud()
    asked: list[dict[str, Any]] = []
    import botocore.client

    call = botocore.client.BaseClient._make_api_call

    def noted(client: Any, operation: str, params: dict[str, Any]) -> Any:
        asked.append({"operation": operation, "region": client.meta.region_name, **params})
        return call(client, operation, params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.client.BaseClient, "_make_api_call", noted)
        args = {"table": "none", "key": {"id": "1"}, "region": ""}
        fault = own.fails("dynamodb.get_item", args, connection=partner(), tenant="t-1")
    assert fault.code == "DynamoDB.ResourceNotFoundException"
    # The credentials are asked for while the call is signed: inside it.
    read, assumed = asked
    assert (assumed["operation"], assumed["RoleArn"], assumed["ExternalId"]) == ("AssumeRole", ROLE, "t-1")
    assert (read["operation"], read["region"]) == ("GetItem", "eu-west-1")


def test_two_tenants_never_share_a_client(cloud: Cloud) -> None:
    from ductor.actions.context import ActionContext

    clients = {
        id(cloud.access.client(ActionContext(tenant=tenant, connection=partner()), "sqs")) for tenant in ("a", "b", "a")
    }
    assert len(clients) == 2


def test_a_role_that_may_not_be_assumed_is_named(cloud: Cloud) -> None:
    own = Cloud(AwsSettings(role_arn=ROLE))
    denied = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
    import botocore.session
    from botocore.awsrequest import AWSResponse
    from moto.core.botocore_stubber import MockRawResponse

    begun = botocore.session.get_session

    def session() -> Any:
        made = begun()

        def answer(request: Any, **_: Any) -> AWSResponse:
            return AWSResponse(request.url, 403, {"content-type": "text/xml"}, MockRawResponse(denied))

        made.get_component("event_emitter").register_first("before-send.sts.AssumeRole", answer)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "get_session", session)
        fault = own.fails("dynamodb.get_item", {"table": "orders", "key": {"id": "1"}})
    assert (fault.code, fault.retryable) == ("STS.AccessDenied", False)


def test_a_connection_of_another_type_is_no_account(cloud: Cloud) -> None:
    slack = Connection(id="c", slug="chat", type="slack", secrets={"bot_token": Secret("xoxb-1234")})
    fault = cloud.fails("sqs.send", {"queue_url": "https://sqs/1/q", "body": 1}, connection=slack)
    assert (fault.code, "type slack" in fault.message) == ("AWS_NOT_CONFIGURED", True)


def test_an_access_key_of_a_connection_is_used(cloud: Cloud) -> None:
    from ductor.actions.context import ActionContext

    keyed = Connection(
        id="c",
        slug="keys",
        type="aws",
        settings={"access_key_id": "AKIAIOSFODNN7EXAMPLE", "region": REGION},
        secrets={"secret_access_key": Secret("wJalrXUtnFEMI/K7MDENG")},
    )
    client = cloud.access.client(ActionContext(connection=keyed), "sqs")
    assert client._request_signer._credentials.access_key == "AKIAIOSFODNN7EXAMPLE"
