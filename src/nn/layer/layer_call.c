/* Layer calls: cast by policy, compute, record symbolic calls (docs/spec/mixed_precision.md, 3 and 4). */
#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "nn/layer/decoding.h"
#include "nn/layer/layer_build.h"
#include "nn/layer/remat.h"
#include "ops/with_number.h"
#include "tensor/shape.h"

/* The innermost layer call of the thread. */
static _Thread_local struct {
  int depth;
  bool training;
  const mix_call_keywords *keywords;
} context;
static _Thread_local const mix_layer_observer *observer;

const mix_layer_observer *mix_layer_observer_set(const mix_layer_observer *given) {
  const mix_layer_observer *former = observer;
  observer = given;
  return former;
}

const json_t *mix_call_form(void) { return context.keywords ? context.keywords->form : NULL; }
bool mix_call_steps_reversed(void) { return context.keywords && context.keywords->steps_reversed; }

/* ---- the record of a symbolic call ---- */

static void call_finalize(void *object) {
  mix_layer_call *call = object;
  mix_release(call->layer);
  mix_release(call->inputs);
  mix_release(call->arguments);
  mix_release(call->masks);
  mix_release(call->initial_state);
  mix_release(call->keywords.argument_masks);
  mix_release(call->keywords.attention_mask);
  json_decref(call->keywords.form);
  mix_free(call->outputs);
  mix_free(call->shapes);
}
const mix_class mix_layer_call_class = {.name = "layer call", .finalize = call_finalize};

mix_layer_call *mix_tensor_history(const mix_tensor *tensor, int *output) {
  if (!tensor || !mix_is(tensor->history, &mix_layer_call_class)) return NULL;
  mix_layer_call *call = tensor->history;
  for (int i = 0; i < call->output_count; i++)
    if (call->outputs[i] == tensor) {
      if (output) *output = i;
      return call;
    }
  return NULL;
}

bool mix_layer_call_add_results(mix_layer_call *call, mix_list *outputs) {
  const int count = mix_list_count(outputs);
  call->outputs = mix_calloc((size_t)count, sizeof *call->outputs);
  call->shapes = mix_calloc((size_t)count, sizeof *call->shapes);
  if (!outputs || !call->outputs || !call->shapes) return false;
  call->output_count = count;
  for (int i = 0; i < count; i++) {
    mix_tensor *tensor = mix_list_items(outputs)[i];
    call->outputs[i] = tensor;
    call->shapes[i] = mix_tensor_shape(tensor);
    mix_release(tensor->history);
    tensor->history = mix_retain(call);
  }
  return true;
}

/* The operands of a call. All lists except `inputs` may be NULL. */
typedef struct invocation {
  mix_layer *layer;
  mix_list *inputs, *arguments, *masks, *initial_state;
  bool inputs_are_list;
  mix_training training;
  mix_call_keywords keywords;
} invocation;

static bool record(const invocation *given, mix_list *outputs) {
  static atomic_ullong sequence;
  mix_layer_call *call = mix_object_new(sizeof *call, &mix_layer_call_class);
  if (!call) return false;
  call->sequence = atomic_fetch_add(&sequence, 1);
  call->layer = mix_retain(given->layer);
  call->inputs = mix_retain(given->inputs);
  call->inputs_are_list = given->inputs_are_list;
  call->arguments = mix_retain(given->arguments);
  call->masks = mix_retain(given->masks);
  call->initial_state = mix_retain(given->initial_state);
  call->training = given->training;
  call->keywords = given->keywords;
  mix_retain(call->keywords.argument_masks);
  mix_retain(call->keywords.attention_mask);
  json_incref(call->keywords.form);
  const bool good = mix_layer_call_add_results(call, outputs);
  mix_release(call);
  return good;
}

/* ---- casting ---- */

/* The list with floating tensors of other dtypes cast; the same list if nothing changes. */
static mix_list *cast_list(mix_list *list, mix_dtype dtype) {
  bool any = false;
  for (int i = 0; list && i < mix_list_count(list); i++) {
    mix_tensor *tensor = mix_list_items(list)[i];
    any |= tensor && mix_dtype_is_floating(mix_tensor_dtype(tensor)) && mix_tensor_dtype(tensor) != dtype;
  }
  if (!any) return list;
  mix_list *result = mix_list_like(list);
  for (int i = 0; i < mix_list_count(list); i++) {
    mix_tensor *tensor = mix_list_items(list)[i];
    if (tensor && mix_dtype_is_floating(mix_tensor_dtype(tensor))) tensor = mix_cast(tensor, dtype);
    if (mix_list_append_like(result, list, i, tensor)) return NULL;
  }
  return result;
}

static bool cast_inputs(invocation *call) {
  const mix_layer *layer = call->layer;
  if (!layer->autocast || !mix_dtype_is_floating(layer->compute)) return true;
  call->inputs = cast_list(call->inputs, layer->compute);
  if (layer->semantics->all_arguments_cast) {
    call->arguments = cast_list(call->arguments, layer->compute);
    call->initial_state = cast_list(call->initial_state, layer->compute);
  }
  return !mix_failed();
}

/* The cast dtype during the call of this layer. */
static mix_dtype scope_dtype(const mix_layer *layer) {
  mix_dtype own = mix_dtype_is_floating(layer->compute) ? layer->compute : MIX_DTYPE_NONE;
  if (!layer->semantics->autocast_scope_by_difference) return own;
  mix_dtype outer = mix_cast_dtype();
  if (outer != MIX_DTYPE_NONE) return layer->autocast ? own : MIX_DTYPE_NONE;
  return layer->compute != layer->variable ? own : MIX_DTYPE_NONE;
}

/* ---- the call ---- */

/* The tensors of a first argument, which is a tensor or a list of tensors. */
static mix_list *inputs_of(const mix_layer *layer, void *inputs, bool *are_list) {
  if (!inputs)
    return mix_fail_type("%s: got NULL for inputs; expected a tensor or a list of tensors", layer->name);
  if (mix_is(inputs, &mix_tensor_class)) return mix_list_of(inputs);
  if (!mix_is(inputs, &mix_list_class))
    return mix_fail_type("%s: the first argument must be a tensor or a list of tensors", layer->name);
  *are_list = true;
  for (int i = 0; i < mix_list_count(inputs); i++)
    if (!mix_is(mix_list_items(inputs)[i], &mix_tensor_class))
      return mix_fail_type("%s: item %d of the first argument is no tensor", layer->name, i);
  if (!mix_list_count(inputs)) return mix_fail_value("%s: the first argument is an empty list", layer->name);
  return inputs;
}

/* Is each item of the list (may be NULL) a tensor or NULL? Otherwise false with a TypeError recorded. */
static bool holds_tensors(const mix_layer *layer, mix_list *list, const char *what) {
  for (int i = 0; list && i < mix_list_count(list); i++) {
    void *item = mix_list_items(list)[i];
    if (!item || mix_is(item, &mix_tensor_class)) continue;
    return mix_fail_type("%s: item %d of %s is another object; expected a tensor", layer->name, i, what);
  }
  return true;
}

/* The given masks, or those of the inputs; NULL if there are none. */
static mix_list *masks_of(mix_list *tensors, mix_list *given) {
  if (given || !tensors) return given;
  bool any = false;
  for (int i = 0; i < mix_list_count(tensors); i++) {
    const mix_tensor *tensor = mix_list_items(tensors)[i];
    any |= tensor && tensor->mask;
  }
  if (!any) return NULL;
  mix_list *masks = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(tensors); i++) {
    const mix_tensor *tensor = mix_list_items(tensors)[i];
    if (mix_list_append(masks, tensor ? tensor->mask : NULL)) return NULL;
  }
  return masks;
}

static bool contains(mix_list *list, const mix_tensor *tensor) {
  for (int i = 0; list && i < mix_list_count(list); i++)
    if (mix_list_items(list)[i] == tensor) return true;
  return false;
}

/* A second handle of the same value. History and mask of a result must not be set on an input. */
static mix_tensor *another_handle(mix_tensor *tensor, mix_tensor *mask) {
  mix_tensor *copy = tensor ? mix_tensor_of(tensor->node, tensor->output) : NULL;
  if (!copy) return NULL;
  copy->logits = mix_retain(tensor->logits);
  copy->mask = mix_retain(mask);
  return copy;
}

mix_list *mix_call_masked_inputs(const mix_call_args *args) {
  if (!args->masks) return args->inputs;
  mix_list *inputs = mix_list_new(0, NULL);
  for (int i = 0; inputs && i < mix_list_count(args->inputs); i++)
    mix_list_append(inputs, another_handle(mix_list_get(args->inputs, i), mix_list_get(args->masks, i)));
  return mix_failed() ? NULL : inputs;
}

static mix_list *results_of(const invocation *given, mix_list *called, bool symbolic) {
  mix_list *results = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(called); i++) {
    mix_tensor *tensor = mix_list_items(called)[i];
    if (!mix_is(tensor, &mix_tensor_class))
      return mix_fail_type("%s: result %d is no tensor", given->layer->name, i);
    bool passed = contains(given->inputs, tensor) || contains(given->arguments, tensor);
    /* An input that is returned keeps its mask, as in Keras, unless the layer computes masks. */
    const bool unmasked = passed && given->layer->class.compute_mask;
    if (passed || contains(results, tensor) || (symbolic && tensor->history))
      tensor = another_handle(tensor, unmasked ? NULL : tensor->mask);
    if (!tensor || mix_list_append(results, tensor)) return NULL;
  }
  return results;
}

static bool carries_masks(const mix_layer *layer) {
  return layer->semantics->attention_masks_carried && layer->kind && layer->kind->call_tensors;
}
static bool ignores_mask(const mix_layer *layer) {
  return carries_masks(layer) && layer->kind->call_ignores_mask;
}

/* Sets the layer's mask on the result, unless an inner layer has set one. */
static void note_mask(const mix_layer *layer, const mix_call_args *args, mix_list *results) {
  mix_tensor *mask = NULL;
  if (layer->class.compute_mask)
    mask = layer->class.compute_mask((mix_layer *)layer, args);
  else if (layer->class.supports_masking && args->masks)
    mask = mix_list_get(args->masks, 0);
  /* only the first result gets the mask, as in Keras */
  mix_tensor *result = mix_list_count(results) ? mix_list_items(results)[0] : NULL;
  if (result && !result->mask) result->mask = mix_retain(mask);
}

/* As in Keras: the penalty of each result, divided by the batch size. */
static bool add_activity_losses(mix_layer *layer, mix_list *results, bool symbolic) {
  for (int i = 0; layer->activity_regularizer && !symbolic && i < mix_list_count(results); i++) {
    mix_tensor *result = mix_list_items(results)[i],
               *loss = mix_regularizer_call(layer->activity_regularizer, result);
    mix_shape shape = mix_tensor_shape(result);
    if (loss && shape.rank && shape.dims[0] > 0) loss = mix_over(loss, (double)shape.dims[0]);
    if (!loss || mix_layer_add_loss(layer, loss)) return false;
  }
  return true;
}

static bool is_symbolic(mix_list *list) {
  for (int i = 0; list && i < mix_list_count(list); i++)
    if (mix_list_items(list)[i] && mix_tensor_is_symbolic(mix_list_items(list)[i])) return true;
  return false;
}

/* Runs the layer's call function with its path, cast dtype and training flag in force. */
static mix_list *compute(const mix_layer *layer, const mix_call_args *args,
                         const mix_call_keywords *keywords) {
  const char *path = mix_layer_path_in_scope(layer);
  if (!path || !mix_decoding_admits(layer, args)) return NULL;
  mix_dtype former = mix_cast_dtype_set(scope_dtype(layer));
  bool updates = mix_cast_updates_set(layer->semantics->assign_add_reads_cast_value),
       training = context.training;
  const mix_call_keywords *outer = context.keywords;
  const char *scope = mix_graph_scope_set(path);
  const char *map_scope = mix_map_scope_set(mix_map_path(layer, path));
  context.depth++;
  context.training = args->training;
  context.keywords = keywords;
  mix_segment *segment = args->symbolic ? NULL : mix_remat_begin_call(layer);
  const mix_layer *inside = mix_decoding_enter(layer);
  mix_list *called = layer->class.call((mix_layer *)layer, args);
  mix_decoding_leave(layer, inside, called);
  mix_remat_end_call(layer, segment, called);
  context.training = training;
  context.keywords = outer;
  context.depth--;
  mix_map_scope_set(map_scope);
  mix_graph_scope_set(scope);
  mix_cast_updates_set(updates);
  mix_cast_dtype_set(former);
  if (mix_failed()) return NULL;
  if (called && mix_list_count(called)) return called;
  return mix_fail_type("%s: call returned no results", layer->name);
}

/* Casts, builds and computes. New objects belong to the open scope. */
/* As given, else that of the enclosing call, else the default of the class. */
static bool is_training(const mix_layer *layer, mix_training given) {
  if (given != MIX_INHERIT) return given == MIX_TRUE;
  return context.depth ? context.training : layer->kind && layer->kind->call_training == MIX_TRUE;
}

static mix_list *invoke(invocation *given, bool symbolic) {
  mix_layer *layer = given->layer;
  invocation cast = *given;
  mix_list *carried = carries_masks(layer) ? masks_of(given->inputs, NULL) : NULL;
  mix_list *masks = masks_of(given->inputs, given->masks),
           *argument_masks = masks_of(given->arguments, given->keywords.argument_masks);
  const bool observed = observer && observer->masked;
  if (observed && (masks || argument_masks)) observer->masked(observer->context, layer, masks);
  if (mix_failed()) return NULL;
  if (ignores_mask(layer)) masks = carried;
  if (!mix_layer_choose_dtype(layer, mix_tensor_dtype(mix_list_items(given->inputs)[0]))) return NULL;
  if (layer->semantics->cast_before_input_spec && !cast_inputs(&cast)) return NULL;
  if (!mix_layer_spec_holds(layer, cast.inputs) ||
      !mix_layer_build_for(layer, given->inputs, given->arguments, given->inputs_are_list))
    return NULL;
  if (!layer->semantics->cast_before_input_spec && !cast_inputs(&cast)) return NULL;
  if (!context.depth && !observed) mix_layer_clear_added(layer);
  mix_call_args args = {.size = sizeof args,
                        .inputs = cast.inputs,
                        .inputs_are_list = given->inputs_are_list,
                        .arguments = cast.arguments,
                        .masks = masks,
                        .initial_state = cast.initial_state,
                        .training = is_training(layer, given->training),
                        .symbolic = symbolic,
                        .argument_masks = argument_masks,
                        .attention_mask = given->keywords.attention_mask,
                        .use_causal_mask = given->keywords.use_causal_mask,
                        .return_attention_scores = given->keywords.return_attention_scores,
                        .reverse = given->keywords.reverse};
  mix_list *called = compute(layer, &args, &given->keywords);
  mix_list *results = called ? results_of(given, called, symbolic) : NULL;
  if (!results) return NULL;
  if (carries_masks(layer)) args.masks = carried;
  note_mask(layer, &args, results);
  if (!given->keywords.no_activity_loss && !add_activity_losses(layer, results, symbolic)) return NULL;
  if (symbolic && !context.depth && !record(given, results)) return NULL;
  if (observer && observer->called && !symbolic && !mix_failed())
    observer->called(observer->context, layer, mix_layer_path_in_scope(layer), cast.inputs, results);
  return mix_failed() ? NULL : results;
}

enum { MAX_NESTED = 1000 }; /* as Python's limit; deeper calls would overflow the stack */

/* Temporaries are released on return; the results move to the caller's scope. */
static mix_list *invoke_in_scope(invocation *given) {
  if (context.depth >= MAX_NESTED)
    return mix_fail_runtime(
        "%s: calls of layers inside calls, %d deep; does a layer call itself without an end?",
        given->layer->name, MAX_NESTED);
  bool symbolic =
      is_symbolic(given->inputs) || is_symbolic(given->arguments) || is_symbolic(given->initial_state);
  mix_scope *scope = mix_scope_begin();
  mix_list *results = mix_retain(invoke(given, symbolic));
  mix_scope_end(scope);
  for (int i = 0; results && i < mix_list_count(results); i++)
    mix_scoped(mix_retain(mix_list_items(results)[i]));
  return mix_scoped(results);
}

mix_list *mix_layer_call_outputs(mix_layer *layer, mix_list *inputs, bool inputs_are_list,
                                 mix_list *arguments, mix_list *masks, mix_list *initial_state,
                                 mix_training training, const mix_call_keywords *keywords) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed() || !layer || !inputs) return NULL;
  invocation given = {layer, inputs, arguments, masks, initial_state, inputs_are_list, training};
  if (keywords) given.keywords = *keywords;
  return invoke_in_scope(&given);
}

/* Layers of the user may use any of them. */
static bool takes_keywords(const mix_layer *layer, const mix_call_options *o) {
  const mix_layer_kind *kind = layer->kind;
  const char *refused = NULL;
  if (!kind) return true;
  if (!kind->call_is_attention && o->use_causal_mask) refused = "use_causal_mask";
  if (!kind->call_is_attention && o->return_attention_scores) refused = "return_attention_scores";
  if (!kind->call_tensors && o->attention_mask) refused = "attention_mask";
  if (!kind->call_has_reverse && o->reverse) refused = "reverse";
  if (refused) mix_fail_type("%s: its call has no argument %s", layer->name, refused);
  int names = 0;
  while (kind->call_tensors && kind->call_tensors[names]) names++;
  const int more = names && o->arguments ? mix_list_count(o->arguments) : 0;
  if (more && more >= names)
    return mix_fail_type("%s: %d arguments behind its input; expected at most %d", layer->name, more,
                         names - 1);
  return !refused;
}

mix_list *mix_call_outputs_with(mix_layer *layer, const mix_call_options *options) {
  if (!mix_given(layer, &mix_layer_object_class, "call", "a layer")) return NULL;
  MIX_OPTIONS(mix_call_options, o, options, "call");
  if (!mix_is(layer, &mix_layer_object_class)) return mix_fail_type("call: the object is no layer");
  if (o.mask && o.masks) return mix_fail_value("%s: both mask and masks were given; give one", layer->name);
  bool are_list = false;
  mix_list *inputs = inputs_of(layer, o.inputs, &are_list);
  if (!inputs) return NULL;
  mix_list *masks = o.mask ? mix_list_of(o.mask) : o.masks;
  if (!holds_tensors(layer, masks, "masks") || !holds_tensors(layer, o.arguments, "arguments") ||
      !holds_tensors(layer, o.initial_state, "initial_state") ||
      !holds_tensors(layer, o.argument_masks, "argument_masks"))
    return NULL;
  if (o.attention_mask && !mix_is(o.attention_mask, &mix_tensor_class))
    return mix_fail_type("%s: attention_mask is another object; expected a tensor", layer->name);
  if (masks && mix_list_count(masks) != mix_list_count(inputs))
    return mix_fail_value("%s: %d masks for %d inputs", layer->name, mix_list_count(masks),
                          mix_list_count(inputs));
  if (o.argument_masks && (!o.arguments || mix_list_count(o.argument_masks) != mix_list_count(o.arguments)))
    return mix_fail_value("%s: %d argument_masks for %d arguments", layer->name,
                          mix_list_count(o.argument_masks), o.arguments ? mix_list_count(o.arguments) : 0);
  if (!takes_keywords(layer, &o)) return NULL;
  return mix_layer_call_outputs(layer, inputs, are_list, o.arguments, masks, o.initial_state, o.training,
                                &(mix_call_keywords){.argument_masks = o.argument_masks,
                                                     .attention_mask = o.attention_mask,
                                                     .use_causal_mask = o.use_causal_mask,
                                                     .return_attention_scores = o.return_attention_scores,
                                                     .reverse = o.reverse});
}

mix_tensor *mix_call_with(mix_layer *layer, const mix_call_options *options) {
  mix_list *results = mix_call_outputs_with(layer, options);
  return results ? mix_list_get(results, 0) : NULL;
}

mix_shape mix_layer_output_shape(mix_layer *layer, mix_shape input_shape) {
  mix_shape shape = {.rank = 0};
  if (!mix_given(layer, &mix_layer_object_class, "layer_output_shape", "a layer") ||
      !mix_shape_option(input_shape, "layer_output_shape", "input_shape"))
    return shape;
  if (layer->class.output_shape) {
    mix_shape found = layer->class.output_shape(layer, 1, &input_shape);
    return !mix_failed() && mix_shape_option(found, layer->name, "the result of output_shape") ? found
                                                                                               : shape;
  }
  mix_scope *scope = mix_scope_begin();
  mix_dtype dtype =
      layer->compute == MIX_DTYPE_NONE || !mix_dtype_size(layer->compute) ? mix_floatx() : layer->compute;
  mix_node *node = mix_node_placeholder(dtype, input_shape, true);
  mix_tensor *result = node ? mix_call(layer, mix_tensor_of(node, 0)) : NULL;
  mix_release(node);
  if (result) shape = mix_tensor_shape(result);
  mix_scope_end(scope);
  return shape;
}

mix_status mix_autocast_begin(mix_dtype dtype, mix_dtype *former) {
  if (mix_failed()) return mix_error();
  if (dtype != MIX_DTYPE_NONE && !mix_dtype_is_floating(dtype)) {
    if (mix_semantics_current()->autocast_non_float_refused)
      return mix_fail_status(MIX_VALUE_ERROR, "autocast: the dtype is %s; expected a floating-point dtype",
                             mix_dtype_name(dtype));
    dtype = MIX_DTYPE_NONE;
  }
  mix_dtype before = mix_cast_dtype_set(dtype);
  if (before == MIX_DTYPE_NONE) /* an inner scope follows the rule of the outer one */
    mix_cast_updates_set(mix_semantics_current()->assign_add_reads_cast_value);
  if (former) *former = before;
  return MIX_OK;
}

void mix_autocast_end(mix_dtype former) { mix_cast_dtype_set(former); }
