/* The trace of the process, in the trace event format of Chrome: complete events ("ph": "X") with times in
 * microseconds. */
#include "compile/trace.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include <inttypes.h>
#include <pthread.h>

/* What events of a plan have in common. */
typedef struct described_plan {
  char **steps; /* JSON, open at its end: "name": ..., "args": {... */
  int step_count;
} described_plan;

/* A run; `backend` comes first, so that a backend's pointer is one to it. */
typedef struct recorded_run {
  mix_trace_run backend;
  const char *name; /* interned or constant */
  int plan, thread;
  int64_t begin, end;
} recorded_run;

typedef struct recorded_input {
  const char *name; /* constant */
  int thread;
  int64_t begin, end;
} recorded_input;

typedef struct trace {
  char *path; /* NULL: none has been started */
  int64_t number, skip, left, began;
  int running; /* runs that have not ended */
  described_plan *plans;
  int plan_count, plan_capacity;
  recorded_run **runs;
  int run_count, run_capacity;
  recorded_input *inputs;
  int input_count, input_capacity;
} trace;

atomic_bool mix_trace_takes_runs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static trace current; /* under the lock */

/* ---- descriptions ---- */

static void put_string(mix_text *text, const char *string) {
  json_t *json = mix_json_name(string);
  char *quoted = mix_json_text(json);
  if (!json) mix_fail_memory("a trace");
  text->failed |= !quoted;
  mix_text_put(text, "%s", quoted ? quoted : "");
  mix_free(quoted);
  json_decref(json);
}

static void put_types(mix_text *text, const mix_plan *plan, const int *slots, int count) {
  char shape[256];
  mix_text_put(text, "\"");
  for (int i = 0; i < count; i++) {
    const mix_slot *slot = &plan->slots[slots[i]];
    mix_text_put(text, "%s%s %s", i ? ", " : "", mix_dtype_name(slot->dtype),
                 mix_shape_text(slot->shape, shape, sizeof shape));
  }
  mix_text_put(text, "\"");
}

static char *describe_step(const mix_compiled *compiled, int number, int shares) {
  const mix_step *step = &compiled->plan.steps[number];
  const char *kernel = compiled->context.backend->kernel_name(compiled->executable, number);
  char name[512];
  mix_text text = {.grows = true};
  snprintf(name, sizeof name, "%s%s%s", step->scope ? step->scope : "", step->scope ? "/" : "",
           step->op->name);
  mix_text_put(&text, "\"name\": ");
  put_string(&text, name);
  mix_text_put(&text, ", \"cat\": \"kernel\", \"args\": {\"layer\": ");
  put_string(&text, step->scope ? step->scope : "");
  mix_text_put(&text, ", \"op\": \"%s\", \"kernel\": \"%s\", \"operands\": ", step->op->name,
               kernel ? kernel : "");
  put_types(&text, &compiled->plan, step->inputs, step->input_count);
  mix_text_put(&text, ", \"results\": ");
  put_types(&text, &compiled->plan, step->outputs, step->output_count);
  mix_text_put(&text, ", \"step\": %d, \"bytes\": %zu, \"shares\": %d", number,
               mix_step_bytes(&compiled->plan, step), shares);
  if (!text.failed) return text.text;
  mix_free(text.text);
  return NULL;
}

static int share_count(const mix_compiled *compiled) {
  mix_executable_facts facts = {0};
  if (compiled->context.backend->facts) compiled->context.backend->facts(compiled->executable, &facts);
  return facts.threads > 1 ? facts.threads : 1;
}

/* Under the lock. False: out of memory. */
static bool describe(trace *t, mix_compiled *compiled, int shares) {
  if (compiled->trace == t->number) return true;
  if (!mix_reserve(&t->plans, &t->plan_capacity, t->plan_count + 1, sizeof *t->plans)) return false;
  described_plan *plan = &t->plans[t->plan_count];
  *plan = (described_plan){.steps = mix_calloc((size_t)compiled->plan.step_count + 1, sizeof *plan->steps)};
  if (!plan->steps) return false;
  t->plan_count++;
  for (; plan->step_count < compiled->plan.step_count; plan->step_count++)
    if (!(plan->steps[plan->step_count] = describe_step(compiled, plan->step_count, shares))) return false;
  compiled->trace = t->number;
  compiled->traced = t->plan_count - 1;
  return true;
}

/* ---- runs ---- */

/* Functions count; evaluations between the traced ones come with them. */
static bool takes(trace *t, const mix_compiled *compiled) {
  if (!t->path || t->left <= 0) return false;
  if (!compiled->captured) return t->skip == 0;
  if (t->skip > 0) {
    t->skip--;
    return false;
  }
  if (--t->left == 0) atomic_store(&mix_trace_takes_runs, false);
  return true;
}

/* Under the lock. */
static recorded_run *new_run(trace *t, mix_compiled *compiled) {
  const int shares = share_count(compiled);
  if (!takes(t, compiled) || !describe(t, compiled, shares) ||
      !mix_reserve(&t->runs, &t->run_capacity, t->run_count + 1, sizeof *t->runs))
    return NULL;
  const size_t events = (size_t)compiled->plan.step_count * (size_t)shares;
  recorded_run *run = mix_calloc(1, sizeof *run + (events + 1) * sizeof(mix_trace_event));
  if (!run) return NULL;
  run->backend = (mix_trace_run){shares, (mix_trace_event *)(run + 1)};
  run->name = compiled->ir->name ? compiled->ir->name : "constants";
  run->plan = compiled->traced;
  run->thread = mix_trace_thread();
  t->runs[t->run_count++] = run;
  t->running++;
  return run;
}

mix_trace_run *mix_trace_begin_run(mix_compiled *compiled) {
  pthread_mutex_lock(&lock);
  recorded_run *run = mix_failed() ? NULL : new_run(&current, compiled);
  pthread_mutex_unlock(&lock);
  if (!run) return NULL;
  run->begin = mix_trace_now();
  return &run->backend;
}

void mix_trace_end_run(mix_trace_run *backend) {
  recorded_run *run = (recorded_run *)backend;
  run->end = mix_trace_now();
  pthread_mutex_lock(&lock);
  current.running--;
  pthread_cond_broadcast(&ended);
  pthread_mutex_unlock(&lock);
}

/* What began in this trace counts, also if its last run has begun meanwhile. */
void mix_trace_end_input(const char *name, int64_t begin) {
  if (!begin || mix_failed()) return;
  const recorded_input input = {name, mix_trace_thread(), begin, mix_trace_now()};
  pthread_mutex_lock(&lock);
  trace *t = &current;
  if (t->path && t->skip == 0 && begin >= t->began &&
      mix_reserve(&t->inputs, &t->input_capacity, t->input_count + 1, sizeof *t->inputs))
    t->inputs[t->input_count++] = input;
  pthread_mutex_unlock(&lock);
}

/* ---- the whole ---- */

bool mix_trace_begin(const char *path, int64_t skip, int64_t steps) {
  char *copy = mix_strdup(path);
  if (!copy) return false;
  pthread_mutex_lock(&lock);
  const bool free_to_start = !current.path;
  if (free_to_start)
    current = (trace){
        .path = copy, .number = current.number + 1, .skip = skip, .left = steps, .began = mix_trace_now()};
  if (free_to_start) atomic_store(&mix_trace_takes_runs, true);
  pthread_mutex_unlock(&lock);
  if (free_to_start) return true;
  mix_free(copy);
  return mix_fail_runtime("trace_start: a trace has been started; mix_trace_stop ends it");
}

static void put_times(mix_text *text, const trace *t, int64_t begin, int64_t end, int thread) {
  mix_text_put(
      text, ", \"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %" PRId64 ".%03d, \"dur\": %" PRId64 ".%03d}",
      thread, (begin - t->began) / 1000, (int)((begin - t->began) % 1000), (end - begin) / 1000,
      (int)((end - begin) % 1000));
}

static void put_run(mix_text *text, const trace *t, int number) {
  const recorded_run *run = t->runs[number];
  const described_plan *plan = &t->plans[run->plan];
  mix_text_put(text, ",\n{\"name\": ");
  put_string(text, run->name);
  mix_text_put(text, ", \"cat\": \"run\", \"args\": {\"run\": %d, \"steps\": %d}", number, plan->step_count);
  put_times(text, t, run->begin, run->end, run->thread);
  for (int i = 0; i < plan->step_count; i++)
    for (int share = 0; share < run->backend.shares; share++) {
      const mix_trace_event *event = &run->backend.events[i * run->backend.shares + share];
      if (!event->thread) continue;
      mix_text_put(text, ",\n{%s, \"run\": %d, \"share\": %d%s}", plan->steps[i], number, share,
                   event->skipped ? ", \"skipped\": true" : "");
      put_times(text, t, event->begin, event->end, event->thread);
    }
}

static char *text_of(const trace *t) {
  mix_text text = {.grows = true};
  mix_text_put(&text, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
                      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 1, "
                      "\"args\": {\"name\": \"mixtape\"}}");
  for (int i = 0; i < t->run_count; i++) put_run(&text, t, i);
  for (int i = 0; i < t->input_count; i++) {
    const recorded_input *input = &t->inputs[i];
    mix_text_put(&text, ",\n{\"name\": \"%s\", \"cat\": \"input\"", input->name);
    put_times(&text, t, input->begin, input->end, input->thread);
  }
  mix_text_put(&text, "\n]}\n");
  if (!text.failed) return text.text;
  mix_free(text.text);
  return NULL;
}

static void free_trace(trace *t) {
  for (int p = 0; p < t->plan_count; p++) {
    for (int i = 0; i < t->plans[p].step_count; i++) mix_free(t->plans[p].steps[i]);
    mix_free(t->plans[p].steps);
  }
  for (int i = 0; i < t->run_count; i++) mix_free(t->runs[i]);
  mix_free(t->plans);
  mix_free(t->runs);
  mix_free(t->inputs);
}

bool mix_trace_end(char **path, char **text) {
  pthread_mutex_lock(&lock);
  trace t = {0};
  atomic_store(&mix_trace_takes_runs, false);
  current.left = 0;
  while (current.running > 0) pthread_cond_wait(&ended, &lock);
  t = current;
  current = (trace){.number = t.number};
  pthread_mutex_unlock(&lock);
  if (!t.path) return mix_fail_runtime("trace_stop: no trace has been started");
  *path = t.path;
  *text = text_of(&t);
  free_trace(&t);
  if (!*text) mix_free(t.path);
  return *text != NULL;
}
