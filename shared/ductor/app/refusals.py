"""The refusals that several use cases share, so that their codes and sentences are the same everywhere."""

from __future__ import annotations

from ductor.model.errors import ErrorCode, RefusedError, refuse


def invalid(code: str, message: str, field: str = "") -> RefusedError:
    """400: the request itself is wrong; `message` says how to put it right."""
    return refuse(ErrorCode.INVALID_ARGUMENT, code, message, field)


def not_found(code: str, message: str, field: str = "") -> RefusedError:
    """404: unknown, or another tenant's. The two must read exactly alike, so `message` never quotes what was found."""
    return refuse(ErrorCode.NOT_FOUND, code, message, field)


def precondition(code: str, message: str, field: str = "") -> RefusedError:
    """409: the request is fine but what it is about is in the wrong state."""
    return refuse(ErrorCode.FAILED_PRECONDITION, code, message, field)


def aborted(code: str, message: str, field: str = "") -> RefusedError:
    """409: somebody else was faster; read again and repeat."""
    return refuse(ErrorCode.ABORTED, code, message, field)


def run_not_found() -> RefusedError:
    return not_found("RUN_NOT_FOUND", "this tenant has no such run", "run_id")


def definition_not_found() -> RefusedError:
    return not_found("DEFINITION_NOT_FOUND", "this tenant has no such workflow definition", "id")


def node_not_found() -> RefusedError:
    return not_found("NODE_NOT_FOUND", "this run has no such step", "node")
