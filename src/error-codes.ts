/** Every code that Pawl throws or answers, with what to do about it. Printed into the README's table. */
interface CodeRow {
  /** What to do, one sentence. */
  fix: string;
  httpStatus: number;
  /** 1 the answer is no, 2 usage, 3 not found, 4 refused, 5 unreachable, 6 needs a human, 70 a fault of ours. */
  exitCode: number;
  retryable: boolean;
}

const row = (httpStatus: number, exitCode: number, fix: string, retryable = false): CodeRow => ({
  fix,
  httpStatus,
  exitCode,
  retryable,
});

export const ERROR_CODES = {
  // Arguments and ids
  INVALID_ID: row(400, 2, 'Use 1 to 200 characters of A-Z a-z 0-9 . _ : -'),
  INVALID_ARGUMENT: row(400, 2, 'Correct the argument named in the message.'),
  INVALID_INPUT: row(422, 2, 'Make the input fit the agent’s `input` schema.'),
  NOT_JSON: row(
    422,
    2,
    'Store only strict JSON; turn the value at the given path into a string, number, list or object.',
  ),
  EVENT_TOO_LARGE: row(413, 2, 'Keep an event under 256 KB; put large data into an artifact and send its digest.'),
  RECORD_TOO_LARGE: row(413, 4, 'Keep a run’s record under 4 MB; move large values out of the context.'),
  ENTRY_TOO_LARGE: row(413, 4, 'Keep what a ledger entry holds beside its event under 64 KB.'),
  INBOX_FULL: row(429, 4, 'Wait until the run has consumed its inbox (10,000 items at most).', true),
  DEFERRED_FULL: row(429, 4, 'At most 100 events of a run may be deferred; send the event when a state takes it.'),
  // Registration
  MACHINE_NOT_DURABLE: row(500, 2, 'Write what the message says instead; the machine cannot be resumed as it is.'),
  AGENT_INVALID: row(500, 2, 'Correct the definition of the agent as the message says.'),
  TOOL_INVALID: row(500, 2, 'Correct the definition of the tool, decision or approval as the message says.'),
  AGENT_DUPLICATE: row(500, 2, 'Register each agent name and version once.'),
  AGENT_UNKNOWN: row(404, 3, 'Register the agent with createRuntime({ agents }).'),
  CHILDREN_NOT_YET: row(500, 2, 'Charts that invoke or spawn machines are not supported yet; use a tool or a region.'),
  DECISIONS_NOT_YET: row(500, 2, 'Charts that invoke decide() are not supported yet.'),
  APPROVALS_NOT_YET: row(500, 2, 'Charts that invoke approval(), and tools that require one, are not supported yet.'),
  STRUCTURE_CHANGED: row(500, 2, 'Raise the agent’s version: its machine changed and runs of this version are stored.'),
  IMPURE_MACHINE: row(500, 2, 'Use now() and random() from pawl inside guards and assigns.'),
  TOOL_OUTSIDE_RUNTIME: row(
    500,
    2,
    'Run the machine through createRuntime; tools do not work under a bare createActor.',
  ),
  MISSING_PACKAGE: row(500, 2, 'Install the package named in the message.'),
  // Runs
  RUN_NOT_FOUND: row(404, 3, 'Check the run id; `pawl ls` lists the runs.'),
  RUN_EXISTS: row(409, 4, 'Use another run id, or the same agent and input to get the existing run.'),
  RUN_NOT_STARTED: row(422, 4, 'The initial step threw; correct the input or the machine. Nothing was stored.'),
  OPERATION_NOT_FOUND: row(404, 3, 'Check the operation id; `pawl show RUN` lists the open operations.'),
  OPERATION_ILLEGAL: row(
    500,
    4,
    'A fault in Pawl: the status named cannot take that event. Report it with the run’s history.',
  ),
  OPERATION_SETTLED: row(409, 4, 'The operation already has another outcome; it is kept.'),
  WAIT_TIMEOUT: row(504, 5, 'The run has not got there in time; `details` holds the last view. Wait again.', true),
  STEP_THREW: row(500, 4, 'Correct the guard, assign or mapper that threw, deploy, and `pawl release` the run.'),
  // What a machine sees at onError
  TOOL_FAILED: row(502, 4, 'The tool said no for good; the chart decides at onError.'),
  TOOL_NOT_EXECUTED: row(502, 4, 'Proved not to have happened after all attempts; the chart decides at onError.'),
  TOOL_TIMEOUT: row(504, 4, 'A read took longer than its timeoutMs; the chart decides at onError.'),
  TOOL_INPUT_INVALID: row(422, 4, 'Make the invoke’s input fit the tool’s `input` schema.'),
  TOOL_OUTPUT_INVALID: row(502, 4, 'Make the tool return what its `output` schema says, as strict JSON.'),
  DUPLICATE_OPERATION: row(409, 4, 'The same business key with other input; the stored receipt is in `details`.'),
  BUDGET_EXHAUSTED: row(409, 4, 'Raise the budget or let the chart take BUDGET_EXHAUSTED.'),
  POLICY_DENIED: row(403, 4, 'The policy refused this attempt; its reason is in the message.'),
  // Stores
  STORE_UNREACHABLE: row(503, 5, 'Check the store’s address and that it runs.', true),
  STORE_URL_INVALID: row(500, 2, 'Use sqlite:PATH or memory:.'),
  STORE_FULL: row(503, 5, 'Free space where the store lives; nothing was half written.', true),
  STORE_READ_ONLY: row(503, 5, 'Give the process write access to the store’s file and folder.'),
  STORE_BUSY: row(503, 5, 'Another process held the store too long; try again.', true),
  STORE_NEWER: row(500, 5, 'The store was written by a newer version of pawl; use that version.'),
  STORE_CORRUPT: row(500, 5, 'The store’s file is damaged; restore it from a backup.'),
  STORE_CLOSED: row(500, 2, 'The store or runtime was closed; open it again.'),
  RECORD_UNREADABLE: row(500, 6, 'The stored record is damaged; its bytes are kept. Restore them or resolve by hand.'),
  // Command line
  USAGE: row(400, 2, 'See `pawl --help`.'),
  CONFIG_NOT_FOUND: row(400, 2, 'Write a pawl.config.js, or name one with --config.'),
  CONFIG_INVALID: row(400, 2, 'Export default { agents, store } from the config file.'),
  DEMO_NOT_PACKAGED: row(404, 3, 'The demo is not in the npm package; run it in a clone of the repository.'),
  INTERNAL: row(500, 70, 'A fault in Pawl or in the config: run it again with PAWL_DEBUG=1 and report what it prints.'),
} as const satisfies Record<string, CodeRow>;

export type ErrorCode = keyof typeof ERROR_CODES;
