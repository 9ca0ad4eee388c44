#include "compile/function.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/evaluate.h"
#include "compile/plan.h"
#include "compile/pool.h"
#include "graph/tape.h"
#include "tensor/shape.h"
#include <mixtape/function.h>
#include <string.h>

/* One captured signature. */
typedef struct specialisation {
  int argument_count;
  mix_value *arguments;   /* dtype and shape of each */
  uint64_t backend_epoch, trainable_epoch;
  mix_compiled *compiled;
  mix_pool *pool;
  bool returns;           /* the body returned a list, not NULL */
  mix_variable **written; /* borrowed from the plan's ir: variables that a run may change */
  int written_count;
  void **addresses;       /* arguments, then results */
  mix_buffer **buffers;   /* results of the run in progress */
} specialisation;

struct mix_function {
  mix_object object;
  mix_function_body body;
  void *context;
  const char *name;
  atomic_flag busy;
  specialisation **known;
  int known_count, known_capacity;
  specialisation *latest;
  void *arena; /* one for all plans, of the largest size */
  size_t arena_bytes;
};

static _Thread_local bool later_capture;
bool mix_capture_may_create(void) { return !mix_capture_current() || !later_capture; }

static void specialisation_free(specialisation *s) {
  if (!s) return;
  mix_compiled_free(s->compiled);
  mix_release(s->pool);
  mix_free(s->arguments);
  mix_free(s->written);
  mix_free(s->addresses);
  mix_free(s->buffers);
  mix_free(s);
}

static void function_finalize(void *object) {
  mix_function *function = object;
  for (int i = 0; i < function->known_count; i++) specialisation_free(function->known[i]);
  mix_free(function->known);
  if (function->arena) mix_free_buffer(function->arena, function->arena_bytes);
}

static const mix_class function_class = {.name = "function", .finalize = function_finalize};

mix_function *mix_function_with(const mix_function_options *given) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_function_options, options, given, "function_new");
  if (!options.body) return mix_fail(MIX_TYPE_ERROR, "function_new: body is NULL; expected the function to capture");
  mix_function *function = mix_object_new(sizeof *function, &function_class);
  if (!function) return NULL;
  function->body = options.body;
  function->context = options.context;
  function->name = mix_intern(options.name ? options.name : "function");
  atomic_flag_clear(&function->busy);
  return mix_scoped(function);
}

/* ---- capturing ---- */

typedef struct tracing {
  mix_capture capture;
  mix_node **placeholders;
  mix_edge *results;
  int result_count;
  bool returns;
} tracing;

/* Runs the body on placeholders; what it returns and what the variables are bound to at the end are the capture. */
static bool trace(mix_function *function, mix_list *arguments, tracing *t) {
  int count = mix_list_count(arguments);
  mix_list *symbols = mix_list_new(0, NULL);
  for (int i = 0; i < count; i++) {
    const mix_value *value = mix_tensor_value(mix_list_get(arguments, i));
    if (!(t->placeholders[i] = mix_node_placeholder(value->dtype, value->shape, false))) return false;
    mix_list_append(symbols, mix_tensor_of(t->placeholders[i], 0));
  }
  mix_list *list = mix_failed() ? NULL : function->body(function->context, symbols);
  if (mix_failed()) return false;
  t->returns = list != NULL;
  if (list && !mix_is(list, &mix_list_class)) {
    mix_fail(MIX_TYPE_ERROR, "function_call: %s returned an object that is not a list", function->name);
    return false;
  }
  t->result_count = list ? mix_list_count(list) : 0;
  t->results = mix_calloc((size_t)t->result_count + 1, sizeof *t->results);
  if (!t->results) return false;
  for (int i = 0; i < t->result_count; i++) {
    mix_tensor *tensor = mix_list_get(list, i);
    if (!mix_is(tensor, &mix_tensor_class)) {
      mix_fail(MIX_TYPE_ERROR, "function_call: result %d of %s is %s; expected a tensor", i, function->name, tensor ? "another object" : "NULL");
      return false;
    }
    t->results[i] = (mix_edge){mix_retain(tensor->node), tensor->output};
  }
  return true;
}

static mix_ir *capture(mix_function *function, mix_list *arguments, bool *returns) {
  int count = mix_list_count(arguments);
  tracing t = {.placeholders = mix_calloc((size_t)count + 1, sizeof *t.placeholders)};
  if (!t.placeholders) return NULL;
  bool former_later = later_capture;
  mix_dtype former_cast = mix_cast_dtype_set(MIX_DTYPE_NONE);
  const char *former_scope = mix_graph_scope_set(NULL);
  mix_capture *former = mix_capture_set(&t.capture);
  later_capture = function->known_count > 0;
  mix_scope *scope = mix_scope_begin();
  bool good = trace(function, arguments, &t);
  mix_capture_set(former);
  mix_graph_scope_set(former_scope);
  mix_cast_dtype_set(former_cast);
  later_capture = former_later;
  mix_ir *ir = NULL;
  if (good && mix_evaluate_outside(t.result_count, t.results, &t.capture))
    ir = mix_ir_from_graph(t.result_count, t.results, count, t.placeholders, &t.capture);
  *returns = t.returns;
  for (int i = 0; i < t.result_count && t.results; i++) mix_release(t.results[i].node);
  for (int i = 0; i < count; i++) mix_release(t.placeholders[i]);
  mix_capture_clear(&t.capture);
  mix_free(t.results);
  mix_free(t.placeholders);
  mix_scope_end(scope);
  return ir;
}

static bool finish(specialisation *s) {
  const mix_ir *ir = s->compiled->ir;
  int result_count = s->compiled->plan.result_count;
  size_t *bytes = mix_calloc((size_t)result_count + 1, sizeof *bytes);
  s->written = mix_calloc((size_t)ir->variable_count + 1, sizeof *s->written);
  s->addresses = mix_calloc((size_t)(s->argument_count + result_count) + 1, sizeof *s->addresses);
  s->buffers = mix_calloc((size_t)result_count + 1, sizeof *s->buffers);
  if (bytes && s->written && s->addresses && s->buffers) {
    for (int r = 0; r < result_count; r++) bytes[r] = mix_value_bytes(s->compiled->results[r].dtype, s->compiled->results[r].shape);
    for (int i = 0; i < ir->variable_count; i++)
      if (ir->variables[i].exit != ir->variables[i].entry) s->written[s->written_count++] = ir->variables[i].variable;
    s->pool = mix_pool_new(result_count, bytes);
  }
  mix_free(bytes);
  return s->pool != NULL;
}

static specialisation *specialise(mix_function *function, mix_list *arguments) {
  if (!mix_reserve(&function->known, &function->known_capacity, function->known_count + 1, sizeof *function->known)) return NULL;
  specialisation *s = mix_calloc(1, sizeof *s);
  if (!s) return NULL;
  s->argument_count = mix_list_count(arguments);
  s->arguments = mix_calloc((size_t)s->argument_count + 1, sizeof *s->arguments);
  mix_ir *ir = s->arguments ? capture(function, arguments, &s->returns) : NULL;
  for (int i = 0; ir && i < s->argument_count; i++) {
    const mix_value *value = mix_tensor_value(mix_list_get(arguments, i));
    s->arguments[i] = (mix_value){.dtype = value->dtype, .shape = value->shape};
  }
  s->backend_epoch = mix_backend_epoch();
  s->trainable_epoch = mix_trainable_epoch();
  if (ir) s->compiled = mix_compile(ir, true);
  if (!s->compiled || !finish(s)) {
    specialisation_free(s);
    return NULL;
  }
  if (s->compiled->plan.arena_bytes > function->arena_bytes) {
    void *arena = mix_alloc_buffer(s->compiled->plan.arena_bytes);
    if (!arena) {
      specialisation_free(s);
      return NULL;
    }
    if (function->arena) mix_free_buffer(function->arena, function->arena_bytes);
    function->arena = arena;
    function->arena_bytes = s->compiled->plan.arena_bytes;
  }
  return function->known[function->known_count++] = s;
}

/* ---- calling ---- */

static bool fits(const specialisation *s, mix_list *arguments, uint64_t backend_epoch, uint64_t trainable_epoch) {
  if (s->argument_count != mix_list_count(arguments) || s->backend_epoch != backend_epoch || s->trainable_epoch != trainable_epoch) return false;
  for (int i = 0; i < s->argument_count; i++) {
    const mix_value *value = mix_tensor_value(mix_list_get(arguments, i));
    if (value->dtype != s->arguments[i].dtype || !mix_shape_equal(value->shape, s->arguments[i].shape)) return false;
  }
  return true;
}

static specialisation *find(mix_function *function, mix_list *arguments) {
  uint64_t backend_epoch = mix_backend_epoch(), trainable_epoch = mix_trainable_epoch();
  if (function->latest && fits(function->latest, arguments, backend_epoch, trainable_epoch)) return function->latest;
  for (int i = 0; i < function->known_count; i++)
    if (fits(function->known[i], arguments, backend_epoch, trainable_epoch)) return function->known[i];
  return NULL;
}

static mix_list *result_list(const specialisation *s) {
  mix_list *list = mix_list_new(0, NULL);
  for (int r = 0; r < s->compiled->plan.result_count; r++) {
    mix_node *node = mix_node_constant(s->buffers[r], s->compiled->results[r].dtype, s->compiled->results[r].shape);
    mix_list_append(list, mix_tensor_of(node, 0));
    mix_release(node);
  }
  return mix_failed() ? NULL : list;
}

static mix_list *run(mix_function *function, specialisation *s, mix_list *arguments) {
  int result_count = s->compiled->plan.result_count;
  bool good = true;
  for (int i = 0; i < s->argument_count; i++) s->addresses[i] = mix_tensor_value(mix_list_get(arguments, i))->buffer->data;
  for (int i = 0; i < s->written_count && good; i++) good = mix_variable_before_write(s->written[i]);
  for (int r = 0; r < result_count && good; r++) {
    good = (s->buffers[r] = mix_pool_take(s->pool, r)) != NULL;
    if (good) s->addresses[s->argument_count + r] = s->buffers[r]->data;
  }
  mix_bindings bindings = {.arguments = s->addresses, .results = s->addresses + s->argument_count, .arena = function->arena};
  mix_list *list = NULL;
  if (good && s->compiled->backend->run(s->compiled->executable, &bindings) == MIX_OK) list = result_list(s);
  for (int r = 0; r < result_count; r++) {
    mix_release(s->buffers[r]);
    s->buffers[r] = NULL;
  }
  return list;
}

static bool arguments_ready(mix_function *function, mix_list *arguments) {
  mix_tensor *small[16], **tensors = small;
  int count = mix_list_count(arguments);
  if (count > 16 && !(tensors = mix_alloc(sizeof *tensors * (size_t)count))) return false;
  for (int i = 0; i < count && !mix_failed(); i++) {
    tensors[i] = mix_list_get(arguments, i);
    if (!mix_is(tensors[i], &mix_tensor_class))
      mix_fail(MIX_TYPE_ERROR, "function_call: argument %d of %s is %s; expected a tensor", i, function->name, tensors[i] ? "another object" : "NULL");
  }
  bool good = !mix_failed() && mix_evaluate(count, tensors) == MIX_OK;
  if (tensors != small) mix_free(tensors);
  return good;
}

mix_list *mix_function_call(mix_function *function, mix_list *arguments) {
  if (mix_failed()) return NULL;
  if (!mix_is(function, &function_class)) return mix_fail(MIX_TYPE_ERROR, "function_call: expected a function");
  mix_list *empty = NULL;
  if (!arguments) arguments = empty = mix_list_new(0, NULL);
  if (!mix_is(arguments, &mix_list_class)) return mix_fail(MIX_TYPE_ERROR, "function_call: the arguments of %s are not a list", function->name);
  if (mix_capture_current() || mix_tapes_open()) return function->body(function->context, arguments);
  if (!arguments_ready(function, arguments)) return NULL;
  if (atomic_flag_test_and_set(&function->busy))
    return mix_fail(MIX_BUSY, "function_call: %s is running on another thread; a function runs one call at a time", function->name);
  specialisation *s = find(function, arguments);
  if (!s) s = specialise(function, arguments);
  mix_list *list = NULL;
  if (s) {
    function->latest = s;
    list = run(function, s, arguments);
  }
  atomic_flag_clear(&function->busy);
  return list;
}

mix_status mix_function_report(mix_function *function, mix_plan_report *report, size_t report_size) {
  if (mix_failed()) return mix_error();
  if (!mix_is(function, &function_class) || !function->latest)
    return mix_fail_status(MIX_RUNTIME_ERROR, "function_report: the function has not been called yet");
  if (report_size > sizeof *report)
    return mix_fail_status(MIX_VALUE_ERROR, "function_report: a report of %zu bytes is not known to this library", report_size);
  memcpy(report, &function->latest->compiled->report, report_size);
  return MIX_OK;
}

const char *mix_function_dump(mix_function *function, const char *stage) {
  if (mix_failed()) return NULL;
  if (!mix_is(function, &function_class) || !function->latest)
    return mix_fail(MIX_RUNTIME_ERROR, "function_dump: the function has not been called yet");
  mix_compiled *compiled = function->latest->compiled;
  if (stage && !strcmp(stage, "graph")) return compiled->captured_text;
  if (stage && !strcmp(stage, "passes")) return mix_ir_text(compiled->ir);
  if (stage && !strcmp(stage, "plan")) return mix_plan_text(compiled);
  return mix_fail(MIX_VALUE_ERROR, "function_dump: stage '%s'; expected graph, passes or plan", stage ? stage : "(null)");
}
