"""CEL expressions, `${{ }}` templates and redaction. `analysis` is for publish time and is imported on its own."""

from __future__ import annotations

from ductor.expressions.cel import MAX_SOURCE_BYTES, Program, compile_cel
from ductor.expressions.cost import Budget
from ductor.expressions.errors import ExpressionError, ExpressionSyntaxError, SyntaxCode
from ductor.expressions.reads import ROOTS, Reads
from ductor.expressions.redaction import redact
from ductor.expressions.template import Template, compile_template

__all__ = [
    "MAX_SOURCE_BYTES",
    "ROOTS",
    "Budget",
    "ExpressionError",
    "ExpressionSyntaxError",
    "Program",
    "Reads",
    "SyntaxCode",
    "Template",
    "compile_cel",
    "compile_template",
    "redact",
]
