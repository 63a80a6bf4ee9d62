"""The two forms of the hello world, as the product's guide prints them."""

from __future__ import annotations

from typing import Final

HELLO_YAML: Final = """
type: workflow_definition
definition:
  environment: default
  family_slug: hello_world
  title: Hello World
  steps:
    - ref: greet
      type: dataflow
      title: Build greeting
      args:
        operation: project
        input_expr: TRIGGER
        redaction_policy: none
        project:
          message: '"hello"'
    - ref: pause
      type: wait
      title: Short delay
      args:
        duration: 2s
  edges:
    - source_ref: greet
      target_ref: pause
      type: success
"""

HELLO_JSON: Final = r"""
{
  "environment": "default",
  "family_slug": "hello_world",
  "title": "Hello World",
  "steps": [
    {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
     "args": {"operation": "project", "input_expr": "TRIGGER",
              "redaction_policy": "none", "project": {"message": "\"hello\""}}},
    {"ref": "pause", "type": "STEP_TYPE_WAIT", "title": "Short delay",
     "args": {"duration": "2s"}}
  ],
  "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}]
}
"""

REVIEW_JSON: Final = """
{
  "environment": "default",
  "family_slug": "review_before_work",
  "title": "Review before work",
  "steps": [
    {"ref": "review", "type": "STEP_TYPE_APPROVAL", "action": "approval",
     "args": {"audience": {"match_mode": "any", "roles": ["operator"]},
              "timeout_ms": 600000, "on_timeout": "fail"}},
    {"ref": "done", "type": "STEP_TYPE_DATAFLOW",
     "args": {"operation": "project", "input_expr": "TRIGGER",
              "redaction_policy": "none", "project": {"reviewed": "true"}}}
  ],
  "edges": [{"source_ref": "review", "target_ref": "done", "type": "EDGE_TYPE_APPROVED"}]
}
"""

CONNECTOR_YAML: Final = """
family_slug: invoices
steps:
  - ref: create_invoice
    type: action
    action: stripe.charge
    connection_ref: "${{ VARS.stripe_connection_ref }}"
    connection_ref_mode: direct
    args:
      customer_id: "${{ TRIGGER.payload.customer_id }}"
      amount: "${{ TRIGGER.payload.amount_cents }}"
      currency: "${{ TRIGGER.payload.currency }}"
    retry_max_attempts: 3
    retry_backoff_ms: 1000
    timeout_ms: 10000
    on_error: fail
"""
