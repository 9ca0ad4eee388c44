/* Layers and operations of the model that an ONNX graph becomes, and the weights that no layer of Keras has.
 *
 * Keras has no layer that is a weight alone. Embedding of one row, asked for row 0, is one: its number is
 * taken from the model's first input, so that the model saves as Keras's files have it. */
#include "onnx/import.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Constants of more elements are weights that are not trained, instead of texts. */
enum { MAX_TEXT = 4096, MAX_EXACT = 1 << 20, NAME_BYTES = 200 };

/* ---- names ---- */

/* Letters, digits and points stay; what else separates becomes one underscore. */
static void plain_name(const char *text, char *name) {
  int used = 0;
  for (; *text && used < NAME_BYTES - 1; text++) {
    const char c = *text;
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (!stays && (!used || name[used - 1] == '_')) continue;
    name[used++] = c;
    if (!stays) name[used - 1] = '_';
  }
  while (used && (name[used - 1] == '_' || name[used - 1] == '.')) used--;
  name[used] = 0;
}

const char *mix_import_layer_name(mix_import *in, const char *text) {
  char name[NAME_BYTES], unique[NAME_BYTES + 16];
  const bool own = *text != 0;
  for (int i = 0; !own && i < in->file->graph.output_count && in->node->output_count; i++)
    if (!strcmp(in->file->graph.outputs[i].name, in->node->outputs[0])) text = in->node->outputs[0];
  if (!*text) text = in->node->name;
  plain_name(text, name);
  if (!*name) plain_name(in->node->op, name);
  if (!*name) strcpy(name, "layer");
  int64_t number = json_integer_value(json_object_get(in->taken, name));
  snprintf(unique, sizeof unique, "%s", name);
  while (number && json_object_get(in->taken, unique))
    snprintf(unique, sizeof unique, "%s_%lld", name, (long long)number++);
  mix_json_set(in->taken, name, json_integer(number ? number : 1));
  if (strcmp(unique, name)) mix_json_set(in->taken, unique, json_integer(1));
  char *copy = mix_scoped_memory(strlen(unique) + 1);
  if (copy) strcpy(copy, unique);
  return mix_failed() ? NULL : copy;
}

/* The initialiser's name without what it is of its layer: "encoder.0.linear1" of "encoder.0.linear1.weight".
 */
static const char *module_name(mix_import *in, const char *weight) {
  static const char *const ends[] = {".weight",  ".bias",       "/kernel", "/ReadVariableOp",
                                     "/BiasAdd", "/embeddings", ".kernel"};
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%.*s", NAME_BYTES - 1, weight);
  char *colon = strrchr(name, ':');
  if (colon && strncmp(name, "onnx::", 6)) *colon = 0;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const size_t length = strlen(name), end = strlen(ends[i]);
    if (length > end && !strcmp(name + length - end, ends[i])) name[length - end] = 0;
  }
  return mix_import_layer_name(in, strncmp(name, "onnx::", 6) ? name : in->node->name);
}

/* ---- constants ---- */

mix_tensor *mix_import_number_like(const mix_tensor *like, double value) {
  return mix_scalar(value, mix_tensor_dtype(like));
}

mix_tensor *mix_import_evaluated(mix_import *in, mix_tensor *x) {
  const int64_t size = x ? mix_shape_size(mix_tensor_shape(x)) : 0;
  if (!x || mix_failed()) return NULL;
  if (size > in->budget - in->folded)
    return mix_import_fail(in, MIX_UNSUPPORTED, "constants that nodes make have more than %lld elements",
                           (long long)in->budget);
  in->folded += size;
  return mix_evaluate(1, &x) ? NULL : x;
}

mix_tensor *mix_import_transposed(mix_import *in, mix_tensor *x, mix_axes axes) {
  return mix_import_evaluated(in, mix_transpose(x, axes));
}

/* JSON has no infinity: where masks have it, the largest finite number is as good. */
static mix_tensor *made_finite(mix_tensor *x) {
  if (!mix_dtype_is_floating(mix_tensor_dtype(x))) return x;
  const double most = mix_dtype_max(mix_tensor_dtype(x));
  return mix_maximum(mix_minimum(x, mix_import_number_like(x, most)), mix_import_number_like(x, -most));
}

/* ---- operations ---- */

typedef struct operands {
  mix_list *symbolic;
  json_t *forms;
} operands;

static bool add_operand(mix_import *in, operands *o, mix_tensor *x) {
  const int64_t size = x ? mix_shape_size(mix_tensor_shape(x)) : 0;
  if (!x) return false;
  if (!mix_tensor_is_symbolic(x)) {
    const bool floats = mix_dtype_is_floating(mix_tensor_dtype(x));
    if (size <= (floats ? MAX_TEXT : MAX_EXACT))
      return mix_json_append(
          o->forms, mix_array_form(floats ? mix_import_evaluated(in, made_finite(x)) : x, in->node->op));
    if (!floats)
      return mix_import_fail(in, MIX_UNSUPPORTED, "a constant of %lld integers; expected at most %d",
                             (long long)size, MAX_EXACT);
    if (!(x = mix_import_parameter(in, x, "", false))) return false;
  }
  mix_list_append(o->symbolic, x);
  return mix_json_append(o->forms, mix_operand_form(mix_list_count(o->symbolic) - 1));
}

static mix_layer *operation_layer(mix_import *in, const mix_keras_operation *row, json_t *config,
                                  bool named) {
  if (!config) config = json_object();
  if (!in->semantics->node_objects) {
    json_decref(config);
    return mix_import_fail(in, MIX_UNSUPPORTED, "it becomes an operation of Keras 3; expected its semantics");
  }
  const char *name = named ? mix_import_layer_name(in, "") : "constant";
  if (name) mix_json_set(config, "name", json_string(name));
  mix_layer *layer = mix_failed() ? NULL : mix_layer_read(&row->kind, config, in->semantics);
  json_decref(config);
  return layer;
}

static json_t *call_form(const mix_keras_operation *row, json_t *forms, json_t *further) {
  json_t *args = row->operation.takes_list ? MIX_PACK("[o]", forms) : forms;
  if (further) mix_json_extend(args, further);
  return MIX_PACK("{s:o,s:{}}", "args", args, "kwargs");
}

static mix_list *evaluated(mix_import *in, mix_list *results) {
  for (int i = 0; results && i < mix_list_count(results); i++)
    if (!mix_import_evaluated(in, mix_list_get(results, i))) return NULL;
  return results;
}

mix_list *mix_import_run(mix_import *in, const char *class_name, int count, mix_tensor *const *tensors,
                         json_t *config, json_t *further) {
  const mix_keras_operation *row = mix_keras_operation_named(class_name);
  bool symbolic = false, given = !mix_failed();
  for (int i = 0; i < count; i++) {
    given = given && tensors[i];
    symbolic = symbolic || (tensors[i] && mix_tensor_is_symbolic(tensors[i]));
  }
  if (!given || !row) {
    json_decref(config);
    json_decref(further);
    return given ? mix_fail_internal("onnx: there is no operation %s", class_name) : NULL;
  }
  operands o = {mix_list_new(0, NULL), json_array()};
  for (int i = 0; i < count && !mix_failed(); i++) {
    if (symbolic) {
      add_operand(in, &o, tensors[i]);
    } else {
      mix_list_append(o.symbolic, tensors[i]);
      mix_json_append(o.forms, mix_operand_form(i));
    }
  }
  mix_layer *layer = operation_layer(in, row, config, symbolic);
  json_t *form = call_form(row, o.forms, further);
  mix_list *results = NULL;
  if (layer && form && !mix_failed())
    results = mix_layer_call_outputs(layer, o.symbolic, true, NULL, NULL, NULL, MIX_INHERIT,
                                     &(mix_call_keywords){.form = form});
  json_decref(form);
  json_decref(further);
  return symbolic ? results : evaluated(in, results);
}

mix_tensor *mix_import_run_one(mix_import *in, const char *class_name, int count, mix_tensor *const *tensors,
                               json_t *config) {
  mix_list *results = mix_import_run(in, class_name, count, tensors, config, NULL);
  return results ? mix_list_get(results, 0) : NULL;
}

mix_tensor *mix_import_apply(mix_import *in, const char *class_name, mix_tensor *x, json_t *config) {
  return mix_import_run_one(in, class_name, 1, &x, config);
}

mix_tensor *mix_import_apply_two(mix_import *in, const char *class_name, mix_tensor *a, mix_tensor *b) {
  mix_tensor *pair[] = {a, b};
  return mix_import_run_one(in, class_name, 2, pair, NULL);
}

/* ---- layers ---- */

bool mix_import_is_weight(const mix_import *in, int index) {
  const mix_import_value *value = mix_import_input(in, index);
  if (!value || value->shared || !mix_import_is_constant(value)) return false;
  return mix_dtype_is_floating(value->stored ? value->stored->dtype : mix_tensor_dtype(value->tensor));
}

const char *mix_import_share_key(const mix_import *in, int index) {
  const mix_import_value *value = mix_import_input(in, index);
  if (!value || value->uses < 2 || value->uniform) return NULL;
  json_t *parts = MIX_PACK("[s]", in->node->op);
  for (int i = index; i < in->node->input_count && parts; i++)
    mix_json_append(parts, json_string(in->node->inputs[i]));
  for (int i = 0; i < in->node->attribute_count; i++) {
    const mix_onnx_attribute *a = &in->node->attributes[i];
    mix_json_append(parts, MIX_PACK("[s,I,f,s,o]", a->name, (json_int_t)a->i, (double)a->f, a->s ? a->s : "",
                                    mix_import_list(a->ints ? a->count : 0, a->ints)));
  }
  char *text = mix_failed() ? NULL : json_dumps(parts, JSON_COMPACT), *copy = NULL;
  json_decref(parts);
  if (text) copy = mix_scoped_memory(strlen(text) + 1);
  if (copy) strcpy(copy, text);
  free(text);
  return copy;
}

static bool set_weights(mix_import *in, mix_layer *layer, int count, mix_tensor *const *weights) {
  mix_list *own = mix_layer_weights(layer);
  if (!own || mix_list_count(own) != count)
    return mix_import_fail(in, MIX_INTERNAL_ERROR, "layer %s has %d weights, not %d", layer->name,
                           mix_list_count(own), count);
  for (int i = 0; i < count && !mix_failed(); i++) {
    mix_variable *variable = mix_list_get(own, i);
    if (!weights[i]) continue;
    if (!mix_shape_equal(mix_variable_shape(variable), mix_tensor_shape(weights[i])))
      return mix_import_fail(in, MIX_FORMAT_ERROR, "weight %d has shape %s; its layer has %s", i,
                             MIX_SHAPE_TEXT(mix_tensor_shape(weights[i])),
                             MIX_SHAPE_TEXT(mix_variable_shape(variable)));
    mix_variable_assign(variable, mix_cast(weights[i], mix_variable_true_dtype(variable)));
  }
  return !mix_failed();
}

static mix_layer *new_layer(mix_import *in, const char *class_name, json_t *config, const char *weight) {
  const char *name = module_name(in, weight);
  if (name) mix_json_set(config, "name", json_string(name));
  mix_layer *layer =
      mix_failed() ? NULL : mix_layer_read(mix_layer_kind_named(class_name), config, in->semantics);
  return layer;
}

mix_list *mix_import_call_layer(mix_import *in, const char *class_name, json_t *config, mix_tensor *x,
                                mix_list *states, const char *weight, const char *key, int count,
                                mix_tensor *const *weights) {
  const json_t *former = key ? json_object_get(in->layers, key) : NULL;
  mix_layer *layer = NULL;
  if (former)
    layer = mix_list_get(in->layer_list, (int)json_integer_value(former));
  else if (config && x && !mix_failed())
    layer = new_layer(in, class_name, config, weight);
  json_decref(config);
  if (!layer || !x || mix_failed()) return NULL;
  const bool zeros = mix_zero_weights_set(true); /* each is set */
  mix_list *results = mix_call_outputs_with(
      layer, &(mix_call_options){.size = sizeof(mix_call_options), .inputs = x, .initial_state = states});
  mix_zero_weights_set(zeros);
  if (!results || former) return results;
  if (key) mix_json_set(in->layers, key, json_integer(mix_list_count(in->layer_list)));
  mix_list_append(in->layer_list, layer);
  return set_weights(in, layer, count, weights) ? results : NULL;
}

/* ---- weights of no layer ---- */

/* 0 for one row, whatever the data are. */
static mix_tensor *zero_of_input(mix_import *in) {
  mix_tensor *x = mix_list_count(in->inputs) ? mix_list_get(in->inputs, 0) : NULL;
  if (!x) return mix_import_fail(in, MIX_UNSUPPORTED, "the model has weights, and no inputs");
  json_t *key =
      MIX_PACK("[{s:s,s:{s:i,s:i,s:n}}]", "class_name", "__slice__", "config", "start", 0, "stop", 1, "step");
  for (int i = 1; i < mix_tensor_shape(x).rank; i++) mix_json_append(key, json_integer(0));
  mix_list *first = mix_import_run(in, "GetItem", 1, &x, NULL, MIX_PACK("[o]", key));
  return first
             ? mix_import_apply(in, "ZerosLike", mix_list_get(first, 0), MIX_PACK("{s:s}", "dtype", "int32"))
             : NULL;
}

mix_tensor *mix_import_symbolic(mix_import *in, mix_tensor *constant) {
  if (!in->zero && !(in->zero = zero_of_input(in))) return NULL;
  const char *dtype = mix_dtype_name(mix_tensor_dtype(constant));
  mix_tensor *zero = mix_import_apply(in, "Cast", in->zero, MIX_PACK("{s:s}", "dtype", dtype));
  return zero ? mix_import_apply_two(in, "Add", constant, zero) : NULL;
}

mix_tensor *mix_import_parameter(mix_import *in, mix_tensor *value, const char *name, bool trains) {
  const mix_shape shape = mix_tensor_shape(value);
  const int64_t size = mix_shape_size(shape);
  if (size < 1) return mix_import_fail(in, MIX_UNSUPPORTED, "a weight without elements");
  if (!in->zero && !(in->zero = zero_of_input(in))) return NULL;
  mix_tensor *row = mix_import_evaluated(in, mix_reshape(value, MIX_SHAPE(1, size)));
  json_t *config = MIX_PACK("{s:i,s:I,s:b,s:s}", "input_dim", 1, "output_dim", (json_int_t)size, "trainable",
                            trains, "dtype", mix_dtype_name(mix_tensor_dtype(value)));
  mix_list *result =
      row ? mix_import_call_layer(in, "Embedding", config, in->zero, NULL, name, NULL, 1, &row) : NULL;
  if (!row) json_decref(config);
  return result ? mix_import_apply(in, "Reshape", mix_list_get(result, 0),
                                   MIX_PACK("{s:o}", "newshape", mix_import_list(shape.rank, shape.dims)))
                : NULL;
}
