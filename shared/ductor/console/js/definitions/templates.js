// Short definitions to begin with. Each is whole: it can be published and started as it stands.

const hello = {
  title: "Hello World",
  steps: [
    {
      ref: "greet",
      type: "dataflow",
      title: "Build a greeting",
      redaction_policy: "none",
      args: { operation: "project", input_expr: "TRIGGER", project: { message: '"hello"' } },
    },
    { ref: "pause", type: "wait", title: "Short delay", args: { duration: "2s" } },
  ],
  edges: [{ source_ref: "greet", target_ref: "pause" }],
};

const approval = {
  title: "Approve, then act",
  description: "A person of the role operator decides. Nothing runs and nothing costs anything until then.",
  steps: [
    {
      ref: "review", type: "approval", action: "approval", title: "Is it all right?", redaction_policy: "none",
      args: { audience: { roles: ["operator"] }, timeout_ms: 259_200_000, on_timeout: "fail" },
    },
    {
      ref: "carry_out",
      type: "action",
      action: "core.echo",
      title: "Carry it out",
      redaction_policy: "none",
      args: { asked_for: "${{ TRIGGER.payload }}", comment: "${{ STEPS.review.output.comment }}" },
    },
    {
      ref: "refused",
      type: "action",
      action: "core.echo",
      title: "Say that it was refused",
      redaction_policy: "none",
      args: { text: "Refused" },
    },
  ],
  edges: [
    { source_ref: "review", target_ref: "carry_out", type: "approved" },
    { source_ref: "review", target_ref: "refused", type: "rejected" },
  ],
};

const fanOut = {
  title: "Work through a list",
  description: "Ten items at a time; one in ten may fail. Start it with {\"records\": [{\"id\": 1}, {\"id\": 2}]}.",
  input_schema: { type: "object", required: ["records"], properties: { records: { type: "array" } } },
  steps: [
    {
      ref: "records",
      type: "scatter",
      title: "One scope per record",
      args: { items_expr: "TRIGGER.payload.records", max_concurrency: 10, tolerated_failures: "10%" },
    },
    {
      ref: "store",
      type: "action",
      action: "core.echo",
      title: "Store a record",
      redaction_policy: "none",
      args: { record: "${{ ITEM }}", line: "${{ INDEX + 1 }}" },
      retry_max_attempts: 3,
    },
    { ref: "stored", type: "gather", title: "All records, in order", redaction_policy: "none", args: { policy: "all" } },
    {
      ref: "report",
      type: "dataflow",
      title: "Count them",
      redaction_policy: "none",
      args: { operation: "project", project: { records: "STEPS.stored.output.count", failed: "size(STEPS.stored.output.errors)" } },
    },
  ],
  edges: [
    { source_ref: "records", target_ref: "store" },
    { source_ref: "store", target_ref: "stored" },
    { source_ref: "stored", target_ref: "report" },
  ],
};

const retries = {
  title: "Call, retry, fall back",
  description: "An HTTP call with retries. When all of them fail, another step takes over instead of failing the run.",
  steps: [
    {
      ref: "call",
      type: "action",
      action: "http.request",
      title: "Ask the service",
      args: { method: "GET", url: "https://api.example.com/health" },
      retry_max_attempts: 3,
      retry_backoff_ms: 2000,
    },
    { ref: "use", type: "action", action: "core.echo", title: "Use the answer", args: { status: "${{ STEPS.call.output.status }}" } },
    {
      ref: "fall_back",
      type: "action",
      action: "core.echo",
      title: "Go on without it",
      redaction_policy: "none",
      args: { reason: "${{ STEPS.call.error.message }}" },
    },
  ],
  edges: [
    { source_ref: "call", target_ref: "use" },
    { source_ref: "call", target_ref: "fall_back", type: "error" },
  ],
};

const nightly = {
  title: "Every night",
  description: "Runs by itself at two o'clock. Paused until you resume it under Schedules.",
  schedule: { cron: "0 2 * * *", timezone: "UTC", input: { kind: "daily" }, paused: true },
  steps: [{
    ref: "report",
    type: "action",
    action: "core.echo",
    title: "Write the report",
    redaction_policy: "none",
    args: { kind: "${{ TRIGGER.payload.kind }}", for: "${{ TRIGGER.scheduled_at }}" },
  }],
};

const empty = { steps: [{ ref: "first", type: "action", action: "core.echo", args: {} }] };

/** @type {{id: string, name: string, words: string, slug: string, document: object}[]} */
export const TEMPLATES = [
  { id: "hello", name: "Hello world", words: "Builds a value and waits two seconds.", slug: "hello_world", document: hello },
  { id: "approval", name: "Approval", words: "A person decides, two ways on.", slug: "approve_request", document: approval },
  { id: "fan_out", name: "Fan-out", words: "One scope per item of a list, results in order.", slug: "work_through_list", document: fanOut },
  {
    id: "retries",
    name: "Retry and fall back",
    words: "A call that may fail, and what happens then.",
    slug: "call_service",
    document: retries,
  },
  { id: "nightly", name: "Schedule", words: "Starts by itself on a timetable.", slug: "every_night", document: nightly },
  { id: "empty", name: "Blank", words: "One step to begin with.", slug: "my_workflow", document: empty },
];
