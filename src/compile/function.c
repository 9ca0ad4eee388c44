/* Captured functions: one specialization for each signature, captured, compiled and run. */
#include "compile/function.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "base/structure.h"
#include "compile/evaluate.h"
#include "compile/pass_pipeline.h"
#include "compile/memory_budget.h"
#include "compile/explain_rewrite.h"
#include "compile/inline_call.h"
#include "compile/padded_batch.h"
#include "compile/result_pool.h"
#include "compile/row_independence.h"
#include "graph/divided_variable.h"
#include "graph/lock.h"
#include "ir/argument_cast.h"
#include "passes/simulation.h"
#include "tensor/shape.h"
#include <mixtape/graph_rewrite.h>
#include <string.h>

/* What a capture depends on besides its arguments. */
typedef struct environment {
  uint64_t context, passes;
  uint64_t rewrite;    /* the automatic one: target, level, edits of lists */
  uint64_t simulation; /* of narrow formats */
  uint64_t epoch;      /* only grows: an old capture never becomes valid again */
  /* of the caller: the dtype in which autocast variables are read */
  mix_dtype cast;
  bool cast_updates; /* of the caller: changes of variables start from the cast value */
  bool jit_compile;  /* of the function itself */
} environment;

/* One captured signature. */
typedef struct specialization {
  struct specialization *rounded; /* the same capture, of arguments that are rounded before; NULL: none */
  int argument_count;
  mix_type *arguments;
  const mix_structure *structure; /* of nested arguments */
  environment environment;
  mix_compiled *compiled;
  mix_pool *pool;
  mix_variable **written; /* borrowed from the plan's ir: variables that a run can change */
  int written_count;
  mix_dtype *roundings; /* of the arguments, as mix_function_rounds has them, once they are known */
  bool roundings_known;
  mix_memory **arguments_bound; /* of the run in progress: borrowed */
  mix_memory **buffers;         /* results of the run in progress */
} specialization;

enum { DEFAULT_SIGNATURES = 32, DEFAULT_MAX_BATCH = 1024 };

struct mix_function {
  mix_object object;
  mix_function_body body;
  void *context;
  const char *name;
  bool jit_compile, eager;
  int64_t max_batch; /* of .batch = MIX_ANY; 0: a plan for each shape */
  atomic_flag busy;
  specialization **known; /* the one used longest ago first */
  int known_count, known_capacity, max_known;
  bool captured; /* the first capture, which may create variables, is done */
  specialization *latest;
  mix_memory *arena; /* shared by all plans, of the largest size */
  char *table;       /* of mix_function_explain_rewrite */
};

static _Thread_local bool later_capture;
bool mix_capture_may_create(void) { return !mix_capture_current() || !later_capture; }

static void specialization_free(specialization *s) {
  if (!s) return;
  specialization_free(s->rounded); /* before the capture, from which it borrows */
  mix_compiled_free(s->compiled);
  mix_release(s->pool);
  mix_free(s->arguments);
  mix_free(s->written);
  mix_free(s->roundings);
  mix_free(s->arguments_bound);
  mix_free(s->buffers);
  mix_free(s);
}

static void forget_all(mix_function *function) {
  for (int i = 0; i < function->known_count; i++) specialization_free(function->known[i]);
  function->known_count = 0;
  function->latest = NULL;
  mix_release(function->arena);
  function->arena = NULL;
}

static void function_finalize(void *object) {
  mix_function *function = object;
  forget_all(function);
  mix_free(function->known);
  mix_free(function->table);
}

static const mix_class function_class = {.name = "function", .finalize = function_finalize};

static bool batch_valid(const mix_function_options *options) {
  if (options->batch && options->batch != MIX_ANY)
    mix_fail_value(
        "function_new: batch is %lld; expected MIX_ANY, or 0 for a plan for each shape of the arguments",
        (long long)options->batch);
  else if (options->max_batch < 0 || (options->max_batch && !options->batch))
    mix_fail_value(
        "function_new: max_batch is %lld; expected a positive number, and .batch = MIX_ANY beside it",
        (long long)options->max_batch);
  return !mix_failed();
}

mix_function *mix_function_with(const mix_function_options *given) {
  MIX_OPTIONS(mix_function_options, options, given, "function_new");
  if (!options.body) return mix_fail_type("function_new: body is NULL; expected the function to capture");
  if (options.max_signatures < 0)
    return mix_fail_value("function_new: max_signatures is %d; expected a positive number",
                          options.max_signatures);
  if (!batch_valid(&options)) return NULL;
  if (options.run_eagerly && options.batch)
    return mix_fail_value("function_new: run_eagerly beside batch = MIX_ANY, which needs plans; give one");
  mix_function *function = mix_object_new(sizeof *function, &function_class);
  if (!function) return NULL;
  function->body = options.body;
  function->context = options.context;
  function->name = mix_intern(options.name ? options.name : "function");
  function->jit_compile = options.jit_compile;
  function->eager = options.run_eagerly;
  function->max_known = options.max_signatures ? options.max_signatures : DEFAULT_SIGNATURES;
  if (options.batch) function->max_batch = options.max_batch ? options.max_batch : DEFAULT_MAX_BATCH;
  atomic_flag_clear(&function->busy);
  return mix_scoped(function);
}

/* ---- capturing ---- */

typedef struct tracing {
  mix_capture capture;
  mix_node **placeholders;
  mix_edge *results;
  int result_count;
} tracing;

/* Runs the body on placeholders. The capture consists of its results and the final bindings of variables. */
static bool trace(mix_function *function, mix_list *arguments, tracing *t) {
  int count = mix_list_count(arguments);
  mix_list *symbols = mix_list_new(0, NULL);
  for (int i = 0; i < count; i++) {
    const mix_value *value = mix_tensor_value(mix_list_get(arguments, i));
    if (!(t->placeholders[i] = mix_node_placeholder(value->dtype, value->shape, false))) return false;
    mix_list_append(symbols, mix_tensor_of(t->placeholders[i], 0));
  }
  mix_list_set_structure(symbols, mix_list_structure(arguments));
  if (!mix_failed()) symbols = mix_list_pack(symbols);
  mix_list *list = mix_failed() ? NULL : function->body(function->context, symbols);
  if (mix_failed()) return false;
  if (list && !mix_is(list, &mix_list_class))
    return mix_fail_type("function_call: %s returned an object that is not a list", function->name);
  t->result_count = list ? mix_list_count(list) : 0;
  t->results = mix_calloc((size_t)t->result_count + 1, sizeof *t->results);
  if (!t->results) return false;
  for (int i = 0; i < t->result_count; i++) {
    mix_tensor *tensor = mix_list_get(list, i);
    if (!mix_is(tensor, &mix_tensor_class))
      return mix_fail_type("function_call: result %d of %s is %s; expected a tensor", i, function->name,
                           tensor ? "another object" : "NULL");
    t->results[i] = (mix_edge){mix_retain(tensor->node), tensor->output};
  }
  return true;
}

static mix_ir *capture(mix_function *function, mix_list *arguments) {
  int count = mix_list_count(arguments);
  tracing t = {.placeholders = mix_calloc((size_t)count + 1, sizeof *t.placeholders)};
  if (!t.placeholders) return NULL;
  bool previous_later = later_capture;
  mix_dtype previous_cast = mix_cast_dtype(); /* stays in force, as for a call inside another capture */
  const char *previous_scope = mix_graph_scope_set(NULL);
  mix_capture *previous = mix_capture_set(&t.capture);
  later_capture = function->captured;
  mix_scope *scope = mix_scope_begin();
  bool good = scope && trace(function, arguments, &t);
  mix_capture_set(previous);
  mix_graph_scope_set(previous_scope);
  mix_cast_dtype_set(previous_cast);
  later_capture = previous_later;
  mix_ir *ir = NULL;
  if (good && mix_evaluate_outside(t.result_count, t.results, &t.capture)) {
    mix_graph_lock(); /* values of variables become constants: no assignment meanwhile */
    ir = mix_ir_from_graph(t.result_count, t.results, count, t.placeholders, &t.capture);
    mix_graph_unlock();
  }
  if (ir) {
    ir->name = function->name;
    ir->excess_precision = function->jit_compile;
    if (function->max_batch && !mix_check_row_independence(ir, mix_batch_rows(arguments, function->name))) {
      mix_ir_free(ir);
      ir = NULL;
    }
  }
  for (int i = 0; t.results && i < t.result_count; i++) mix_release(t.results[i].node);
  for (int i = 0; i < count; i++) mix_release(t.placeholders[i]);
  mix_capture_clear(&t.capture);
  mix_free(t.results);
  mix_free(t.placeholders);
  mix_scope_end(scope);
  return ir;
}

mix_ir *mix_function_capture(mix_function *function, mix_list *arguments) {
  return mix_failed() ? NULL : capture(function, arguments);
}

static bool finish(specialization *s) {
  const mix_ir *ir = s->compiled->ir;
  int result_count = s->compiled->plan.result_count;
  size_t *bytes = mix_calloc((size_t)result_count + 1, sizeof *bytes);
  s->written = mix_calloc((size_t)ir->variable_count + 1, sizeof *s->written);
  s->arguments_bound = mix_calloc((size_t)s->argument_count + 1, sizeof *s->arguments_bound);
  s->buffers = mix_calloc((size_t)result_count + 1, sizeof *s->buffers);
  if (bytes && s->written && s->arguments_bound && s->buffers) {
    for (int r = 0; r < result_count; r++)
      bytes[r] = mix_value_bytes(s->compiled->results[r].dtype, s->compiled->results[r].shape);
    for (int i = 0; i < ir->variable_count; i++)
      if (ir->variables[i].exit != ir->variables[i].entry)
        s->written[s->written_count++] = ir->variables[i].variable;
    s->pool = mix_pool_new(mix_compiled_device(s->compiled), result_count, bytes);
  }
  mix_free(bytes);
  return s->pool != NULL;
}

static environment environment_now(const mix_function *function) {
  const mix_context context = mix_context_default();
  return (environment){.context = mix_context_key(&context),
                       .passes = mix_passes_key(),
                       .rewrite = mix_amp_key(),
                       .simulation = mix_simulation_key(),
                       .epoch = mix_capture_epoch(),
                       .cast = mix_cast_dtype(),
                       .cast_updates = mix_cast_updates(),
                       .jit_compile = function->jit_compile};
}

/* Grows the arena to the largest of all plans of the function on one device. */
static bool arena_grow(mix_function *function, const mix_compiled *compiled) {
  size_t bytes = compiled->plan.arena_bytes;
  const mix_memory_device *device = mix_compiled_device(compiled);
  if (!bytes || (function->arena && bytes <= mix_memory_bytes(function->arena) &&
                 mix_memory_device_of(function->arena) == device))
    return true;
  mix_memory *arena = mix_memory_new(device, bytes);
  if (!arena) return false;
  mix_release(function->arena);
  function->arena = arena;
  return true;
}

/* Captures of an earlier epoch can never be called again. */
static void drop_outdated(mix_function *function) {
  const uint64_t epoch = mix_capture_epoch();
  int kept = 0;
  for (int i = 0; i < function->known_count; i++) {
    specialization *s = function->known[i];
    if (s->environment.epoch == epoch) {
      function->known[kept++] = s;
      continue;
    }
    if (function->latest == s) function->latest = NULL;
    specialization_free(s);
  }
  function->known_count = kept;
}

/* Makes room for another plan. */
static void drop_oldest(mix_function *function) {
  while (function->known_count >= function->max_known) {
    if (function->latest == function->known[0]) function->latest = NULL;
    specialization_free(function->known[0]);
    memmove(function->known, function->known + 1, sizeof *function->known * (size_t)--function->known_count);
  }
}

static specialization *specialize(mix_function *function, mix_list *arguments) {
  specialization *s = mix_calloc(1, sizeof *s);
  if (!s) return NULL;
  s->argument_count = mix_list_count(arguments);
  s->structure = mix_list_structure(arguments);
  s->arguments = mix_calloc((size_t)s->argument_count + 1, sizeof *s->arguments);
  s->roundings = mix_calloc((size_t)s->argument_count + 1, sizeof *s->roundings);
  mix_ir *ir = s->arguments && s->roundings ? capture(function, arguments) : NULL;
  for (int i = 0; ir && i < s->argument_count; i++) {
    const mix_value *value = mix_tensor_value(mix_list_get(arguments, i));
    s->arguments[i] = value->type;
  }
  /* the first capture may have built layers, which moves the epoch */
  s->environment = environment_now(function);
  if (ir) s->compiled = mix_compile_to_budget(ir, true);
  bool good = s->compiled && finish(s) && arena_grow(function, s->compiled);
  if (s->compiled && !good) mix_compiled_name_largest(s->compiled);
  if (good) {
    drop_outdated(function);
    drop_oldest(function);
  }
  good = good && mix_reserve(&function->known, &function->known_capacity, function->known_count + 1,
                             sizeof *function->known);
  if (!good) {
    specialization_free(s);
    return NULL;
  }
  function->captured = true;
  return function->known[function->known_count++] = s;
}

/* ---- calling ---- */

/* Would the same graph compile to the same plan? */
static bool compiles_alike(const environment *a, const environment *b) {
  return a->context == b->context && a->passes == b->passes && a->rewrite == b->rewrite &&
         a->simulation == b->simulation && a->jit_compile == b->jit_compile;
}

/* Searches the capture once: fit asks before each step. */
static mix_dtype rounds(specialization *s, int argument) {
  for (int i = 0; i < s->argument_count && !s->roundings_known; i++)
    s->roundings[i] = mix_ir_rounding_of_argument(s->compiled->captured, i);
  s->roundings_known = true;
  return s->roundings[argument];
}

/* `rounded`: arguments may be rounded before. */
static bool fits(specialization *s, mix_list *arguments, environment now, bool rounded) {
  if (s->argument_count != mix_list_count(arguments) || s->structure != mix_list_structure(arguments))
    return false;
  if (!compiles_alike(&s->environment, &now) || s->environment.epoch != now.epoch ||
      s->environment.cast != now.cast || s->environment.cast_updates != now.cast_updates)
    return false;
  for (int i = 0; i < s->argument_count; i++) {
    const mix_value *value = mix_tensor_value(mix_list_get(arguments, i));
    if (!mix_shape_equal(value->shape, s->arguments[i].shape) ||
        (value->dtype != s->arguments[i].dtype && !(rounded && value->dtype == rounds(s, i))))
      return false;
  }
  return true;
}

static specialization *move_to_end(mix_function *function, int index) {
  specialization *s = function->known[index], **at = &function->known[index];
  memmove(at, at + 1, sizeof *at * (size_t)(--function->known_count - index));
  return function->known[function->known_count++] = s;
}

static specialization *find(mix_function *function, mix_list *arguments, bool rounded) {
  environment now = environment_now(function);
  if (function->latest && fits(function->latest, arguments, now, rounded)) return function->latest;
  for (int i = function->known_count - 1; i >= 0; i--)
    if (fits(function->known[i], arguments, now, rounded)) return move_to_end(function, i);
  return NULL;
}

static mix_list *result_list(const specialization *s) {
  mix_list *list = mix_list_new(0, NULL);
  for (int r = 0; r < s->compiled->plan.result_count; r++) {
    mix_node *node =
        mix_node_constant(s->buffers[r], s->compiled->results[r].dtype, s->compiled->results[r].shape);
    mix_list_append(list, mix_tensor_of(node, 0));
    mix_release(node);
  }
  return mix_failed() ? NULL : list;
}

static mix_list *run(mix_function *function, specialization *s, mix_list *arguments) {
  int result_count = s->compiled->plan.result_count;
  bool good = true;
  /* An argument that shares a variable's storage first gets its own copy of the old value, at another
   * address. */
  for (int i = 0; i < s->written_count && good; i++) good = mix_variable_before_write(s->written[i]);
  for (int i = 0; i < s->argument_count; i++)
    s->arguments_bound[i] = mix_tensor_value(mix_list_get(arguments, i))->memory;
  for (int r = 0; r < result_count && good; r++) {
    good = (s->buffers[r] = mix_pool_take(s->pool, r)) != NULL;
    if (!good) mix_compiled_name_largest(s->compiled);
  }
  const mix_ir *ir = s->compiled->ir;
  for (int i = 0; i < ir->variable_count && good; i++) good = mix_variable_refresh(ir->variables[i].variable);
  /* before the run, so that a failure here changes nothing */
  mix_list *list = good ? result_list(s) : NULL;
  const bool runs = list != NULL;
  if (runs && !mix_compiled_enqueue(s->compiled, s->arguments_bound, s->buffers, function->arena))
    list = NULL;
  if (list)
    mix_variables_note_write(s->written_count, s->written);
  else if (runs)
    mix_variables_note_failure(s->written_count, s->written);
  for (int r = 0; r < result_count; r++) {
    mix_release(s->buffers[r]);
    s->buffers[r] = NULL;
  }
  return list;
}

static mix_list *fail_busy(const mix_function *function) {
  return mix_fail(MIX_BUSY,
                  "function_call: %s is running on another thread; a function runs one call at a time",
                  function->name);
}

static mix_list *call_inline(mix_function *function, mix_list *arguments) {
  return mix_call_inline(function->body, function->context, function->name, arguments);
}

/* The body's own calls of functions that run eagerly nest. */
static mix_list *call_eagerly(mix_function *function, mix_list *arguments) {
  static _Thread_local int depth;
  if (!depth && atomic_flag_test_and_set(&function->busy)) return fail_busy(function);
  depth++;
  mix_list *packed = mix_list_pack(arguments), *results = packed ? call_inline(function, packed) : NULL;
  const bool good = results && mix_evaluated(results, "result", function->name);
  if (!--depth) atomic_flag_clear(&function->busy);
  return good ? results : NULL;
}

static specialization *prepare(mix_function *function, mix_list *arguments) {
  specialization *s = find(function, arguments, false);
  if (!s) s = specialize(function, arguments);
  if (!s || !arena_grow(function, s->compiled)) return NULL;
  return function->latest = s;
}

static mix_list *call_plan(mix_function *function, mix_list *arguments) {
  specialization *s = prepare(function, arguments);
  return s ? run(function, s, arguments) : NULL;
}

/* ---- arguments that are rounded before ---- */

/* Casts to the dtype that an argument has already are identities, which the passes remove. */
static mix_ir *rounded_graph(const specialization *s, mix_list *arguments) {
  mix_ir *ir = mix_ir_copy(s->compiled->captured);
  for (int i = 0; ir && i < s->argument_count; i++) {
    const int value = mix_ir_argument(ir, i);
    if (value >= 0) ir->values[value].dtype = mix_tensor_dtype(mix_list_get(arguments, i));
  }
  return ir;
}

static bool has_dtypes(const specialization *s, mix_list *arguments) {
  for (int i = 0; s && i < s->argument_count; i++)
    if (mix_tensor_dtype(mix_list_get(arguments, i)) != s->arguments[i].dtype) return false;
  return s != NULL;
}

static specialization *rounded_of(mix_function *function, specialization *base, mix_list *arguments) {
  if (has_dtypes(base->rounded, arguments)) return base->rounded;
  specialization_free(base->rounded);
  specialization *s = base->rounded = mix_calloc(1, sizeof *s);
  if (!s) return NULL;
  s->argument_count = base->argument_count;
  s->arguments = mix_calloc((size_t)s->argument_count + 1, sizeof *s->arguments);
  for (int i = 0; s->arguments && i < s->argument_count; i++)
    s->arguments[i] = mix_tensor_value(mix_list_get(arguments, i))->type;
  mix_ir *ir = s->arguments ? rounded_graph(base, arguments) : NULL;
  if (ir) s->compiled = mix_compile_to_budget(ir, false);
  if (s->compiled && finish(s) && arena_grow(function, s->compiled)) return s;
  specialization_free(s);
  return base->rounded = NULL;
}

bool mix_function_has_plans(const mix_function *function) { return !function->eager; }

mix_dtype mix_function_rounds(const mix_function *function, int argument) {
  return function->latest ? rounds(function->latest, argument) : MIX_DTYPE_NONE;
}

mix_list *mix_function_call_rounded(mix_function *function, mix_list *arguments) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed() || mix_capture_current() || mix_tapes_open() || function->max_batch) return NULL;
  if (atomic_flag_test_and_set(&function->busy)) return NULL;
  specialization *base = find(function, arguments, true),
                 *s = base ? rounded_of(function, base, arguments) : NULL;
  mix_list *list = s && arena_grow(function, s->compiled) ? run(function, s, arguments) : NULL;
  if (list) function->latest = base;
  atomic_flag_clear(&function->busy);
  return list;
}

/* 1, 2, 4, ..., or the maximum. */
static int64_t padded_rows(int64_t rows, int64_t max) {
  int64_t padded = rows ? 1 : 0;
  while (padded < rows) padded = padded > max / 2 ? max : 2 * padded;
  return padded;
}

static mix_list *call_any_batch(mix_function *function, mix_list *arguments) {
  const int64_t rows = mix_batch_rows(arguments, function->name), max = function->max_batch;
  mix_list *all = NULL;
  int64_t first = 0, count;
  if (rows < 0) return NULL;
  do {
    count = rows - first < max ? rows - first : max;
    mix_scope *scope = mix_scope_begin();
    mix_list *part = scope ? mix_batch_part(arguments, first, count, padded_rows(count, max)) : NULL;
    mix_list *results = part ? call_plan(function, part) : NULL;
    if (results && count == rows)
      all = mix_retain(mix_batch_cut(results, rows));
    else if (results)
      mix_batch_collect(&all, results, first, count, rows);
    mix_scope_end(scope);
  } while ((first += count) < rows && !mix_failed());
  mix_scoped(all);
  return mix_failed() ? NULL : all;
}

mix_list *mix_function_call(mix_function *function, mix_list *arguments) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed()) return NULL;
  if (!mix_is(function, &function_class)) return mix_fail_type("function_call: expected a function");
  if (!arguments) arguments = mix_list_new(0, NULL);
  if (!mix_is(arguments, &mix_list_class))
    return mix_fail_type("function_call: the arguments of %s are not a list", function->name);
  if (mix_capture_current() || mix_tapes_open()) return call_inline(function, arguments);
  if (!(arguments = mix_list_flatten(arguments, "function_call")) ||
      !mix_evaluated(arguments, "argument", function->name))
    return NULL;
  if (function->eager) return call_eagerly(function, arguments);
  if (atomic_flag_test_and_set(&function->busy)) return fail_busy(function);
  mix_list *list = function->max_batch ? call_any_batch(function, arguments) : call_plan(function, arguments);
  atomic_flag_clear(&function->busy);
  return list;
}

bool mix_function_prepare(mix_function *function, mix_list *arguments) {
  if (mix_failed() || !(arguments = mix_list_flatten(arguments, "function_call")) ||
      !mix_evaluated(arguments, "argument", function->name))
    return false;
  if (function->eager)
    return mix_fail_runtime("function_prepare: %s runs eagerly and has no plan", function->name);
  if (atomic_flag_test_and_set(&function->busy))
    return mix_fail(MIX_BUSY, "function_call: %s is running on another thread", function->name), false;
  const bool good = prepare(function, arguments);
  atomic_flag_clear(&function->busy);
  return good;
}

mix_status mix_function_clear(mix_function *function) {
  if (mix_failed()) return mix_error();
  if (!mix_is(function, &function_class))
    return mix_fail_status(MIX_TYPE_ERROR, "function_clear: expected a function");
  if (atomic_flag_test_and_set(&function->busy))
    return mix_fail_status(MIX_BUSY, "function_clear: %s is running on another thread", function->name);
  forget_all(function);
  atomic_flag_clear(&function->busy);
  return MIX_OK;
}

mix_status mix_function_report(mix_function *function, mix_plan_report *report, size_t report_size) {
  if (mix_failed()) return mix_error();
  if (!mix_is(function, &function_class) || !function->latest)
    return mix_fail_status(MIX_RUNTIME_ERROR,
                           "function_report: the function has not been called yet, or runs eagerly");
  if (!report || report_size > sizeof *report)
    return mix_fail_status(
        MIX_VALUE_ERROR, "function_report: a report of %zu bytes is not known to this library", report_size);
  memcpy(report, &function->latest->compiled->report, report_size);
  return MIX_OK;
}

const char *mix_function_dump(mix_function *function, const char *stage) {
  if (mix_failed()) return NULL;
  if (!mix_is(function, &function_class))
    return mix_fail_type("function_dump: %s; expected a function",
                         function ? "got another object" : "got NULL");
  if (!function->latest)
    return mix_fail_runtime("function_dump: the function has not been called yet, or runs eagerly");
  const specialization *latest = function->latest;
  environment now = environment_now(function);
  return mix_compiled_text(latest->compiled, stage, compiles_alike(&latest->environment, &now));
}

const char *mix_function_explain_rewrite(mix_function *function, const char *dtype) {
  if (mix_failed()) return NULL;
  if (!mix_is(function, &function_class) || !function->latest)
    return mix_fail_runtime("function_explain_rewrite: the function has not been called yet");
  const mix_dtype target = mix_dtype_from_name(dtype ? dtype : "float16");
  if (!mix_dtype_is_16_bit(target))
    return mix_fail_value("function_explain_rewrite: '%s'; expected float16 or bfloat16", dtype);
  mix_ir *ir = mix_ir_copy(function->latest->compiled->captured);
  char *table = ir ? mix_rewrite_tables(ir, target, "function_explain_rewrite") : NULL;
  mix_ir_free(ir);
  if (!table) return NULL;
  mix_free(function->table);
  return function->table = table;
}
