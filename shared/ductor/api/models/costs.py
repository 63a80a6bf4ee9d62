"""What a run costs, on the wire."""

from __future__ import annotations

from pydantic import Field

from ductor.api.models.common import AnswerModel


class CostLine(AnswerModel):
    """One line of a bill."""

    service: str = Field(examples=["DynamoDB"])
    unit: str = Field(examples=["write request units"])
    quantity: float = Field(examples=[54.0], description="An estimate; may be a fraction, where requests are shared.")
    amount: float = Field(examples=[0.00003375])


class CostEstimate(AnswerModel):
    """All lines, and what they come to."""

    amount: float = Field(examples=[0.0000507])
    lines: list[CostLine]


class ModelCost(AnswerModel):
    """What AI steps used of one language model: counted, not estimated."""

    provider: str = Field(examples=["bedrock"])
    model: str
    calls: int
    input_tokens: int = Field(description="As the provider counts them.")
    output_tokens: int
    amount: float | None = Field(description="In the currency of the price list; null where it has no price for it.")


class RunCost(AnswerModel):
    """What the run costs on AWS so far, computed from what it counted: an estimate, also where it runs locally."""

    run_id: str
    currency: str = Field(examples=["USD"])
    region: str = Field(examples=["us-east-1"])
    prices_as_of: str = Field(examples=["2026-09-28"], description="The day of the list prices.")
    final: bool = Field(description="The run has ended.")
    at_load: CostEstimate = Field(description="When batches are full: requests are shared with other runs.")
    alone: CostEstimate = Field(description="When nothing else runs. The bill lies between the two.")
    runs_below: int = Field(examples=[0], description="Children, compensations, hooks, successors, and theirs.")
    below_at_load: float = Field(examples=[0.0], description="What the runs below cost together; not in `at_load`.")
    below_alone: float = Field(examples=[0.0])
    truncated: bool = Field(examples=[False], description="There are more runs below than were added up (500).")
    models: list[ModelCost] = Field(description="What its AI steps used of each model. No part of the estimates.")
    models_below: list[ModelCost] = Field(description="The same of the runs below, added up.")
    models_truncated: bool = Field(
        examples=[False], description="There are more attempts of AI steps than were looked at (2,000)."
    )
    counted: dict[str, int] = Field(examples=[{"commits": 11, "intents": 11, "tasks": 10}])
    not_included: list[str] = Field(examples=[["the services that actions call"]])
