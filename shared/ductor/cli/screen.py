"""How runs look in a terminal: colours of states, tables of nodes, short values. Reads answers, never the network.

Colour and live redrawing are rich's decision: off with NO_COLOR, off when the output is not a terminal.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ductor.model.enums import NodeStatus, RunStatus

MAX_VALUE: Final = 160
PIPE_WIDTH: Final = 200
_ROOM: Final = 8
_STYLES: Final = {
    "completed": "green",
    "failed": "red",
    "timed_out": "red",
    "terminated": "red",
    "running": "cyan",
    "scheduled": "cyan",
    "waiting": "yellow",
    "retrying": "yellow",
    "paused": "magenta",
    "cancelling": "magenta",
}
_ENDED: Final = frozenset(status.value for status in RunStatus if status.terminal)
_LIVE: Final = ("running", "scheduled", "retrying", "waiting", "paused")

Document = dict[str, Any]


def console() -> Console:
    """Standard output. Into a pipe, lines are wide enough not to be broken."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def ended(status: str) -> bool:
    """Whether a run in this state never changes again. An unknown state counts as live."""
    return status in _ENDED


def styled(status: str) -> Text:
    """A state in its colour."""
    return Text(status, style=_STYLES.get(status, "dim"))


def span(start: str | None, end: str | None) -> str:
    """The time between two RFC 3339 instants, such as `1.25 s`; empty unless both are known."""
    begin, finish = instant(start), instant(end)
    if begin is None or finish is None:
        return ""
    return duration_text(max(0.0, (finish - begin).total_seconds()))


def duration_text(seconds: float) -> str:
    """A span in the unit that reads best."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s"))
    return " ".join(f"{count}{unit}" for count, unit in parts if count)


def instant(text: str | None) -> datetime | None:
    """A moment, or None when the text is absent or no RFC 3339 instant."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def local_time(text: str | None) -> str:
    """A moment in this machine's time zone, to the second; the day only when it is another than today."""
    moment = instant(text)
    if moment is None:
        return ""
    local = moment.astimezone()
    today = datetime.now(UTC).astimezone().date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M:%S")


def short(value: Any) -> str:
    """A JSON value on one line of at most MAX_VALUE characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def error_text(error: Document) -> str:
    """What went wrong: the code, and the sentence."""
    return short(f"{error.get('code', '')}: {error.get('message', '')}")


def remark(node: Document, now: str | None = None) -> str:
    """What matters most about a node now: its error, what it waits for, or its output."""
    error, waiting = node.get("error"), node.get("waiting_on")
    if isinstance(error, dict):
        retry = f"; next attempt in {span(now, node.get('next_retry_at'))}" if node.get("next_retry_at") and now else ""
        return error_text(error) + retry
    if isinstance(waiting, dict) and node.get("status") not in (NodeStatus.COMPLETED, NodeStatus.SKIPPED):
        left = span(now, waiting.get("deadline_at")) if now else ""
        return f"for {waiting.get('kind', '')}" + (f", {left} left" if left else "")
    output = node.get("latest_output_json")
    return short(output) if output else ""


def waiting_text(waiting: Document) -> str:
    """What a run waits for, in words."""
    detail = waiting.get("detail")
    return f"{waiting.get('kind', '')}: {short(detail)}" if detail else str(waiting.get("kind", ""))


def node_table(nodes: dict[str, Document], now: str | None, limit: int | None = None) -> Group:
    """The nodes in definition order; over `limit`, the live ones first and the rest as counts."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    chosen = list(nodes) if limit is None or len(nodes) <= limit else _most_interesting(nodes, limit)
    for ref in chosen:
        node = nodes[ref]
        attempt = node.get("attempt") or 0
        table.add_row(
            Text("  " + ref, style="bold"),
            Text(_short_type(node), style="dim"),
            styled(str(node.get("status"))),
            Text(f"attempt {attempt}" if attempt > 1 else ""),
            Text(span(node.get("started_at"), node.get("finished_at") or now)),
            Text(remark(node, now), style="dim", overflow="ellipsis", no_wrap=True),
        )
    hidden = Counter(str(node.get("status")) for ref, node in nodes.items() if ref not in set(chosen))
    if not hidden:
        return Group(table)
    rest = ", ".join(f"{count} {status}" for status, count in hidden.most_common())
    return Group(table, Text(f"  … and {rest}", style="dim"))


def run_view(title: str, snapshot: Document, console: Console) -> Group:
    """The head line of a run, and its nodes as far as the terminal has room."""
    now = (snapshot.get("metadata") or {}).get("fetched_at")
    nodes = snapshot.get("nodes") or {}
    head = Text.assemble((title, "bold"), "  ", styled(str(snapshot.get("status"))))
    waiting = snapshot.get("waiting_on")
    if isinstance(waiting, dict) and len(nodes) > console.height:
        head.append(f"  for {waiting_text(waiting)}", style="dim")
    return Group(head, node_table(nodes, now, limit=max(5, console.height - _ROOM)))


def plain(text: str) -> str:
    """Text that rich prints as it stands, brackets and all."""
    return escape(text)


def _short_type(node: Document) -> str:
    return str(node.get("type", "")).removeprefix("STEP_TYPE_").lower()


def _most_interesting(nodes: dict[str, Document], limit: int) -> list[str]:
    ranked = sorted(nodes, key=lambda ref: _rank(str(nodes[ref].get("status"))))[:limit]
    kept = set(ranked)
    return [ref for ref in nodes if ref in kept]


def _rank(status: str) -> int:
    if status in ("failed", "timed_out"):
        return 0
    if status in _LIVE:
        return 1
    return 3 if status == "pending" else 2
