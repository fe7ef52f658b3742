-- Runs: state of those that must be found again, traces, and results that can still be fetched.

CREATE TABLE pml.workflow_state (
  workflow_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  intent text,
  dag jsonb,
  learning_context jsonb,
  mode text CHECK (mode IN ('direct', 'call_by_name')),
  args jsonb,
  -- As json, which keeps the order of a result's keys.
  answer json,
  finished_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL DEFAULT now() + interval '1 hour'
);
CREATE INDEX workflow_state_expires ON pml.workflow_state (expires_at);
COMMENT ON TABLE pml.workflow_state IS 'Runs that pml_begin has begun, until they expire';
COMMENT ON COLUMN pml.workflow_state.workflow_id IS 'The run';
COMMENT ON COLUMN pml.workflow_state.org IS 'Organisation';
COMMENT ON COLUMN pml.workflow_state.project IS 'Project';
COMMENT ON COLUMN pml.workflow_state.actor IS 'For whom it runs';
COMMENT ON COLUMN pml.workflow_state.intent IS 'What it is for, in words';
COMMENT ON COLUMN pml.workflow_state.dag IS 'The plan';
COMMENT ON COLUMN pml.workflow_state.learning_context IS 'Code, intent, structure and tools, for the capability it may become';
COMMENT ON COLUMN pml.workflow_state.mode IS 'direct: new code; call_by_name: a capability';
COMMENT ON COLUMN pml.workflow_state.args IS 'The arguments it was given, with defaults';
COMMENT ON COLUMN pml.workflow_state.answer IS 'The answer of pml_finish, returned again to a retry';
COMMENT ON COLUMN pml.workflow_state.finished_at IS 'When it was finished';
COMMENT ON COLUMN pml.workflow_state.created_at IS 'When it began';
COMMENT ON COLUMN pml.workflow_state.expires_at IS 'When it expires';

CREATE TABLE pml.execution_trace (
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  capability_id text COLLATE "C",
  workflow_id uuid,
  parent_trace_id uuid,
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  user_id text NOT NULL,
  intent text,
  initial_context jsonb,
  executed_path text[] NOT NULL DEFAULT '{}',
  decisions jsonb NOT NULL DEFAULT '[]',
  -- As json, which keeps the order of the arguments' keys.
  task_results json NOT NULL DEFAULT '[]',
  success boolean NOT NULL,
  duration_ms integer NOT NULL CHECK (duration_ms >= 0),
  error_message text,
  executed_at timestamptz NOT NULL DEFAULT now(),
  slot smallint NOT NULL DEFAULT pml_internal.pml_slot('execution_trace'),
  PRIMARY KEY (id, slot)
) PARTITION BY LIST (slot);
CREATE INDEX execution_trace_capability ON pml.execution_trace (capability_id, executed_at);
CREATE INDEX execution_trace_parent ON pml.execution_trace (parent_trace_id) WHERE parent_trace_id IS NOT NULL;
COMMENT ON TABLE pml.execution_trace IS 'What a run did: its path, decisions and results';
COMMENT ON COLUMN pml.execution_trace.id IS 'The trace; that of a run itself has the id of the run';
COMMENT ON COLUMN pml.execution_trace.capability_id IS 'FQDN of the capability that ran';
COMMENT ON COLUMN pml.execution_trace.workflow_id IS 'The run';
COMMENT ON COLUMN pml.execution_trace.parent_trace_id IS 'The trace of the capability that called this one';
COMMENT ON COLUMN pml.execution_trace.org IS 'Organisation';
COMMENT ON COLUMN pml.execution_trace.project IS 'Project';
COMMENT ON COLUMN pml.execution_trace.user_id IS 'The actor that ran it';
COMMENT ON COLUMN pml.execution_trace.intent IS 'What it was for';
COMMENT ON COLUMN pml.execution_trace.initial_context IS 'What it was given';
COMMENT ON COLUMN pml.execution_trace.executed_path IS 'The nodes it went through, in order';
COMMENT ON COLUMN pml.execution_trace.decisions IS 'The outcome of each decision';
COMMENT ON COLUMN pml.execution_trace.task_results IS 'Arguments and result previews of each call';
COMMENT ON COLUMN pml.execution_trace.success IS 'Whether it succeeded';
COMMENT ON COLUMN pml.execution_trace.duration_ms IS 'How long it took, in milliseconds';
COMMENT ON COLUMN pml.execution_trace.error_message IS 'What went wrong';
COMMENT ON COLUMN pml.execution_trace.executed_at IS 'When it ended';
COMMENT ON COLUMN pml.execution_trace.slot IS 'The partition: that of the time when the run began';

CREATE TABLE pml.task_results (
  workflow_id uuid NOT NULL,
  task_id text NOT NULL,
  org text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  result json,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL DEFAULT now() + interval '1 hour',
  slot smallint NOT NULL DEFAULT pml_internal.pml_slot('task_results'),
  PRIMARY KEY (workflow_id, task_id, slot)
) PARTITION BY LIST (slot);
CREATE INDEX task_results_expires ON pml.task_results (expires_at);
COMMENT ON TABLE pml.task_results IS 'Whole results of runs and their tasks, for as long as they can be fetched';
COMMENT ON COLUMN pml.task_results.workflow_id IS 'The run';
COMMENT ON COLUMN pml.task_results.task_id IS 'The task in it; result: the run itself';
COMMENT ON COLUMN pml.task_results.org IS 'Organisation';
COMMENT ON COLUMN pml.task_results.project IS 'Project';
COMMENT ON COLUMN pml.task_results.actor IS 'The actor that ran it';
COMMENT ON COLUMN pml.task_results.result IS 'The result';
COMMENT ON COLUMN pml.task_results.created_at IS 'When it came';
COMMENT ON COLUMN pml.task_results.expires_at IS 'When it expires';
COMMENT ON COLUMN pml.task_results.slot IS 'The partition: that of the time when it came';
