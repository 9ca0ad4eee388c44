/* A model as it is decoded: the caches of its attention, and the captured step that feeds some tokens. */
#include "model/decode.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "graph/capture.h"
#include "tensor/shape.h"
#include <string.h>

struct mix_decode_state {
  mix_object object;
  mix_model *model; /* retained */
  mix_decoding decoding;
  int64_t position;
  int tokens, positions, mask;           /* the inputs that take them; -1: none does */
  mix_function *step, *reorder, *forget; /* retained */
  uint64_t epoch;                        /* the model's, when the step was captured last */
  mix_shape result;                      /* of one position: (batch, 1, vocabulary) */
};

static void state_finalize(void *object) {
  mix_decode_state *state = object;
  mix_release(state->step);
  mix_release(state->reorder);
  mix_release(state->forget);
  mix_decoding_clear(&state->decoding);
  mix_release(state->model);
}
static const mix_class state_class = {.name = "decode state", .finalize = state_finalize};

/* ---- the step ---- */

/* The output, or the logits that its last softmax was made of. */
static mix_tensor *logits_of(mix_tensor *output) {
  if (!output || !output->logits || mix_tensor_dtype(output->logits) != mix_tensor_dtype(output))
    return output;
  return output->logits;
}

/* The mask of tokens none of which is padding. */
static mix_tensor *all_given(const mix_decode_state *state, int input, mix_tensor *tokens) {
  const mix_shape shape = mix_tensor_shape(tokens);
  return mix_fill(shape, 1, mix_model_input_dtype(state->model, input));
}

static mix_tensor *run_model(mix_decode_state *state, mix_tensor *tokens, mix_tensor *positions) {
  mix_list *inputs = mix_list_new(0, NULL);
  for (int i = 0; i < mix_model_input_count(state->model); i++)
    mix_list_append(inputs, i == state->tokens ? tokens
                            : i == state->mask ? all_given(state, i, tokens)
                                               : positions);
  mix_list *outputs =
      mix_failed() ? NULL
                   : mix_model_call_outputs_with(
                         state->model, &(mix_model_call_options){.size = sizeof(mix_model_call_options),
                                                                 .inputs = inputs,
                                                                 .training = MIX_FALSE});
  return outputs ? logits_of(mix_list_get(outputs, 0)) : NULL;
}

/* (batch, count): the places of the new positions. */
static mix_tensor *new_positions(const mix_decoding *d) {
  mix_tensor *place = mix_add(mix_range(0, (double)d->count, 1, MIX_INT32), d->position);
  return mix_broadcast_to(place, MIX_SHAPE(d->batch, d->count));
}

/* Arguments: tokens (batch, count), and the position of the first (). */
static mix_list *step_body(void *context, mix_list *arguments) {
  mix_decode_state *state = context;
  mix_decoding *d = &state->decoding;
  mix_tensor *tokens = mix_list_get(arguments, 0);
  d->count = mix_tensor_shape(tokens).dims[1];
  d->position = mix_list_get(arguments, 1);
  d->next = 0;
  d->inside = NULL;
  mix_decoding *former = mix_decoding_set(d);
  mix_tensor *logits = run_model(state, tokens, state->positions >= 0 ? new_positions(d) : NULL);
  mix_decoding_set(former);
  d->position = NULL;
  return logits ? mix_list_of(logits) : NULL;
}

static bool reorder_rows(const mix_decoding *d, mix_variable *rows, mix_tensor *parents) {
  if (!rows || mix_failed()) return !mix_failed();
  const mix_shape shape = mix_variable_shape(rows);
  mix_tensor *by_sequence =
      mix_reshape(mix_variable_true_value(rows), MIX_SHAPE(d->batch, mix_shape_size(shape) / d->batch));
  mix_tensor *ordered = mix_gather(by_sequence, parents, 0);
  return ordered && mix_variable_assign(rows, mix_reshape(ordered, shape)) == MIX_OK;
}

static mix_list *reorder_body(void *context, mix_list *arguments) {
  const mix_decoding *d = &((mix_decode_state *)context)->decoding;
  mix_tensor *parents = mix_list_get(arguments, 0);
  for (int i = 0; i < d->cache_count; i++)
    if (!reorder_rows(d, d->caches[i].keys, parents) || !reorder_rows(d, d->caches[i].values, parents) ||
        !reorder_rows(d, d->caches[i].mask, parents))
      return NULL;
  return mix_list_of(parents);
}

/* Argument: the position from which on all values become 0. A step multiplies those that it must not see by
 * 0, which NaN and infinity would survive. */
static mix_list *forget_body(void *context, mix_list *arguments) {
  const mix_decoding *d = &((mix_decode_state *)context)->decoding;
  mix_tensor *position = mix_list_get(arguments, 0);
  mix_tensor *kept = mix_reshape(mix_less(mix_range(0, (double)d->window, 1, MIX_INT32), position),
                                 MIX_SHAPE(1, d->window, 1));
  for (int i = 0; i < d->cache_count; i++) {
    const mix_attention_cache *cache = &d->caches[i];
    mix_tensor *values = mix_reshape(mix_variable_true_value(cache->values),
                                     MIX_SHAPE(MIX_UNKNOWN, d->window, cache->value.dims[3]));
    values = values ? mix_select(kept, values, mix_scalar_like(values, 0)) : NULL;
    if (!values ||
        mix_variable_assign(cache->values, mix_reshape(values, mix_variable_shape(cache->values))) != MIX_OK)
      return NULL;
  }
  return mix_list_of(position);
}

static mix_function *function_of(mix_decode_state *state, mix_function_body body, const char *name) {
  const mix_compiled_state *compiled = state->model->state;
  mix_function_options options = {.size = sizeof options,
                                  .body = body,
                                  .context = state,
                                  .name = name,
                                  .jit_compile = compiled && compiled->given.jit_compile};
  return mix_retain(mix_function_with(&options));
}

/* ---- what can be decoded ---- */

#define MASK "padding_mask" /* of KerasHub's models */

static bool find_inputs(mix_decode_state *state, const char *positions) {
  mix_model *model = state->model;
  const int count = mix_model_input_count(model);
  state->tokens = state->positions = state->mask = -1;
  for (int i = count - 1; i >= 0; i--) {
    const char *name = mix_model_input_name(model, i);
    if (positions && name && !strcmp(name, positions))
      state->positions = i;
    else if (count > 1 && name && !strcmp(name, MASK))
      state->mask = i;
    else
      state->tokens = i;
  }
  if (positions && state->positions < 0)
    return mix_fail_value("decode_state_new: '%s' has no input '%.60s'", mix_model_name(model), positions);
  if (state->tokens >= 0 && count == 1 + (positions != NULL) + (state->mask >= 0) &&
      mix_model_output_count(model) == 1)
    return true;
  return mix_fail_value(
      "decode_state_new: '%s' has %d inputs and %d outputs; expected one input of tokens, one "
      "output, and no input beside it but that of .positions and '" MASK "'",
      mix_model_name(model), count, mix_model_output_count(model));
}

static bool find_window(mix_decode_state *state) {
  const mix_shape input = mix_model_input_shape(state->model, state->tokens);
  const int64_t declared = input.rank == 2 ? input.dims[1] : MIX_UNKNOWN;
  int64_t *window = &state->decoding.window;
  if (!*window && declared != MIX_UNKNOWN) *window = declared;
  if (*window <= 0)
    return mix_fail_value("decode_state_new: the window is %lld, and the input of '%s' has no length; give a "
                          "positive .window",
                          (long long)*window, mix_model_name(state->model));
  if (declared == MIX_UNKNOWN || *window <= declared) return true;
  return mix_fail_value("decode_state_new: the window is %lld, and the input of '%s' has %lld positions; "
                        "expected at most these",
                        (long long)*window, mix_model_name(state->model), (long long)declared);
}

static mix_tensor *symbolic_input(mix_model *model, int input, int64_t batch) {
  mix_node *node = mix_node_placeholder(mix_model_input_dtype(model, input), MIX_SHAPE(batch, 1), true);
  mix_tensor *tensor = node ? mix_tensor_of(node, 0) : NULL;
  mix_release(node);
  return tensor;
}

/* A symbolic call with one position: it meets all layers, and notes the caches. */
static bool plan_caches(mix_decode_state *state) {
  mix_decoding *d = &state->decoding;
  mix_tensor *tokens = symbolic_input(state->model, state->tokens, d->batch),
             *places = state->positions < 0 ? NULL : symbolic_input(state->model, state->positions, d->batch);
  d->count = 1;
  mix_decoding *former = mix_decoding_set(d);
  mix_tensor *output = mix_failed() ? NULL : run_model(state, tokens, places);
  mix_decoding_set(former);
  if (!output) return false;
  state->result = mix_tensor_shape(output);
  if (state->result.rank == 3 && state->result.dims[2] > 0 && mix_dtype_is_floating(mix_tensor_dtype(output)))
    return true;
  return mix_fail_value("decode_state_new: the output of '%s' has shape %s for one token; expected logits "
                        "(batch, positions, vocabulary)",
                        mix_model_name(state->model), MIX_SHAPE_TEXT(state->result));
}

static bool build(mix_decode_state *state, const mix_decode_options *o) {
  if (o->batch < 0 || o->window < 0)
    return mix_fail_value("decode_state_new: batch is %lld and window %lld; expected positive numbers",
                          (long long)o->batch, (long long)o->window);
  state->decoding.batch = o->batch ? o->batch : 1;
  state->decoding.window = o->window;
  if (!mix_model_weights_ready(state->model, "decode_state_new")) return false;
  if (!find_inputs(state, o->positions) || !find_window(state) || !plan_caches(state) ||
      !mix_decoding_make_caches(&state->decoding))
    return false;
  state->step = function_of(state, step_body, "decode_step");
  state->reorder = function_of(state, reorder_body, "decode_reorder");
  state->forget = function_of(state, forget_body, "decode_forget");
  state->epoch = state->model->predictor_epoch;
  return !mix_failed();
}

mix_decode_state *mix_decode_state_with(mix_model *model, const mix_decode_options *given) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_model_given(model, "decode_state_new")) return NULL;
  MIX_OPTIONS(mix_decode_options, o, given, "decode_state_new");
  mix_decode_state *state = mix_object_new(sizeof *state, &state_class);
  if (!state) return NULL;
  state->model = mix_retain(model);
  MIX_MODEL_USE(model, MIX_READS_MODEL, "decode_state_new") {
    MIX_SCOPE { build(state, &o); }
  }
  if (!mix_failed()) return mix_scoped(state);
  mix_release(state);
  return NULL;
}

/* ---- calls ---- */

static bool state_given(const mix_decode_state *state, const char *call) {
  return mix_given(state, &state_class, call, "a decode state");
}

/* Integers of that rank with the batch as axis 0, as int32. */
static mix_tensor *integers(const mix_decode_state *state, mix_tensor *given, int rank, const char *call,
                            const char *what) {
  if (!mix_given(given, &mix_tensor_class, call, "a tensor")) return NULL;
  const mix_shape shape = mix_tensor_shape(given);
  if (mix_tensor_is_symbolic(given) || !mix_dtype_is_integer(mix_tensor_dtype(given)))
    return mix_fail_type("%s: %s are of dtype %s%s; expected integers", call, what,
                         mix_dtype_name(mix_tensor_dtype(given)),
                         mix_tensor_is_symbolic(given) ? ", symbolic" : "");
  if (shape.rank != rank || shape.dims[0] != state->decoding.batch || (rank > 1 && shape.dims[1] < 1))
    return mix_fail_value("%s: %s have shape %s; expected (%lld%s) for the batch of this state", call, what,
                          MIX_SHAPE_TEXT(shape), (long long)state->decoding.batch,
                          rank > 1 ? ", 1 or more" : "");
  return mix_cast(given, MIX_INT32);
}

static mix_tensor *place(int64_t position) {
  const int32_t number = (int32_t)position;
  return mix_tensor_from(&number, MIX_INT32, (mix_shape){.rank = 0});
}

static mix_tensor *decode(mix_decode_state *state, mix_tensor *given) {
  if (mix_capture_current())
    return mix_fail_runtime("decode: a function is being captured, whose plan would stay at position %lld; "
                            "call it outside, or in a function with .run_eagerly",
                            (long long)state->position);
  mix_tensor *tokens = integers(state, given, 2, "decode", "tokens");
  if (!tokens) return NULL;
  const int64_t count = mix_tensor_shape(tokens).dims[1], window = state->decoding.window;
  if (count > window - state->position)
    return mix_fail_value(
        "decode: %lld tokens at position %lld; the window holds %lld; rewind, or make a state "
        "with a larger .window",
        (long long)count, (long long)state->position, (long long)window);
  if (state->epoch != state->model->predictor_epoch) mix_function_clear(state->step);
  state->epoch = state->model->predictor_epoch;
  mix_list *results = mix_function_call(state->step, mix_list_of(tokens, place(state->position)));
  if (!results) return NULL;
  state->position += count;
  return mix_list_get(results, 0);
}

mix_tensor *mix_decode(mix_decode_state *state, mix_tensor *tokens) {
  MIX_OWN_FLOAT_MODES;
  if (!state_given(state, "decode")) return NULL;
  mix_tensor *logits = NULL;
  MIX_MODEL_USE(state->model, MIX_READS_MODEL, "decode") {
    MIX_SCOPE { logits = mix_retain(decode(state, tokens)); }
  }
  return mix_scoped(logits);
}

int64_t mix_decode_position(const mix_decode_state *state) {
  return mix_is(state, &state_class) ? state->position : -1;
}

mix_status mix_decode_rewind(mix_decode_state *state, int64_t position) {
  MIX_OWN_FLOAT_MODES;
  if (!state_given(state, "decode_rewind")) return mix_error();
  if (position < 0 || position > state->position)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "decode_rewind: position %lld; expected 0 to %lld, where the state is",
                           (long long)position, (long long)state->position);
  MIX_SCOPE {
    if (position == state->position || mix_function_call(state->forget, mix_list_of(place(position))))
      state->position = position;
  }
  return mix_error();
}

mix_status mix_decode_reorder(mix_decode_state *state, mix_tensor *given) {
  MIX_OWN_FLOAT_MODES;
  if (!state_given(state, "decode_reorder")) return mix_error();
  MIX_SCOPE {
    mix_tensor *parents = integers(state, given, 1, "decode_reorder", "parents");
    if (parents) mix_function_call(state->reorder, mix_list_of(parents));
  }
  return mix_error();
}

mix_model *mix_decode_model(const mix_decode_state *state) { return state->model; }
int64_t mix_decode_batch(const mix_decode_state *state) { return state->decoding.batch; }
int64_t mix_decode_window(const mix_decode_state *state) { return state->decoding.window; }
int64_t mix_decode_vocabulary(const mix_decode_state *state) { return state->result.dims[2]; }
