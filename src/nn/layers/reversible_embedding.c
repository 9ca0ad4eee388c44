/* ReversibleEmbedding: rows of a table, and from such rows back to one logit for each row of the table
 * (keras3). */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"
#include "nn/layers/embedding_table.h"
#include "nn/layers/lora.h"
#include "ops/with_number.h"
#include "tensor/shape.h"
#include <math.h>

typedef struct reversible {
  mix_reversible_embedding_options options;
  mix_embedding_table table;
  /* Of untied weights: (output_dim, input_dim), floating, owned by the layer's list, or stored. */
  mix_variable *reverse;
  mix_stored_weight stored;
} reversible;

/* Its zeros are floating, and the numbers of its blocks are those of the table. */
static mix_stored_shape reverse_shape(const mix_reversible_embedding_options *o) {
  return (mix_stored_shape){.name = "reverse_embeddings",
                            .shape = MIX_SHAPE(o->output_dim, o->input_dim),
                            .kept = MIX_AXES(1),
                            .scale = MIX_SHAPE(o->input_dim),
                            .float_zero = true,
                            .no_group_index = true};
}

/* In files after the whole table. */
static bool in_order(const reversible *r) {
  r->stored.stored->saved_first = false;
  return true;
}

static bool build_reverse(mix_layer *layer, reversible *r) {
  const mix_reversible_embedding_options *o = &r->options;
  const mix_stored_shape of = reverse_shape(o);
  if (mix_layer_stores_integers(layer))
    return mix_stored_build(layer, o->quantization_config, &of, &r->stored) && in_order(r);
  r->reverse = mix_layer_add_weight(layer, of.name, .shape = of.shape, .no_autocast = true,
                                    .initializer_object = o->embeddings_initializer_object);
  return r->reverse;
}

static mix_status reversible_embedding_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  reversible *r = mix_layer_data(layer);
  const mix_reversible_embedding_options *o = &r->options;
  const mix_weight_options embeddings = MIX_EMBEDDINGS_OF(o);
  if (mix_embedding_build(layer, &r->table, &embeddings, o->quantization_config) && o->untied_weights)
    build_reverse(layer, r);
  return mix_lora_build(layer);
}

static const mix_stored_weight *reversible_embedding_stored(const mix_layer *layer, mix_shape *shape) {
  return mix_embedding_stored(&((const reversible *)layer->data)->table, shape);
}

static mix_status reversible_embedding_quantize(mix_layer *layer, const mix_quantization *quantization) {
  reversible *r = mix_layer_data(layer);
  const mix_quantization_config *config = &quantization->config;
  const mix_stored_shape of = reverse_shape(&r->options);
  r->options.quantization_config = mix_quantization_config_text(config);
  if (!r->options.quantization_config || !mix_embedding_quantize(layer, &r->table, config) || !r->reverse)
    return mix_lora_follow(layer);
  if (mix_stored_replace(layer, r->reverse, config, &of, &r->stored) && in_order(r)) r->reverse = NULL;
  return mix_lora_follow(layer);
}

/* ---- reverse ---- */

/* The dtype that holds both: of float16 and bfloat16 it is float32. */
static mix_dtype dtype_of_both(mix_dtype a, mix_dtype b) {
  if (a == b) return a;
  if (mix_dtype_size(a) == mix_dtype_size(b)) return MIX_FLOAT32;
  return mix_dtype_size(a) > mix_dtype_size(b) ? a : b;
}

typedef mix_tensor *product(mix_tensor *x, mix_tensor *kernel, bool transpose_x, bool transpose_kernel);

/* x (..., output_dim) times the kernel, which may be the table, transposed. Higher ranks are reshaped to one
 * matrix, so that the product and each gradient is one matmul. */
static mix_tensor *times(product *multiply, const reversible *r, mix_tensor *x, mix_tensor *kernel) {
  const bool transpose = !r->options.untied_weights;
  mix_shape shape = mix_tensor_shape(x);
  int unknown = 0;
  for (int i = 0; i + 1 < shape.rank; i++) unknown += shape.dims[i] == MIX_UNKNOWN;
  if (shape.rank == 2 || unknown > 1) return multiply(x, kernel, false, transpose);
  mix_tensor *rows = mix_reshape(x, MIX_SHAPE(-1, r->options.output_dim));
  shape.dims[shape.rank - 1] = r->options.input_dim;
  return mix_reshape(multiply(rows, kernel, false, transpose), shape);
}

/* The kernel is rounded to the compute dtype first, in whatever dtype the product is, as in a model that
 * Keras has read from its file. */
static mix_tensor *float_logits(const mix_layer *layer, const reversible *r, mix_tensor *x) {
  const char *asked = r->options.reverse_dtype;
  mix_tensor *kernel =
      mix_cast(r->reverse ? mix_variable_value(r->reverse) : mix_lora_kernel(layer, r->table.embeddings),
               layer->compute); /* R15: the tied one merged */
  if (!x || !kernel) return NULL;
  const mix_dtype dtype =
      asked ? mix_dtype_from_name(asked) : dtype_of_both(mix_tensor_dtype(x), layer->compute);
  return times(mix_matmul, r, mix_cast(x, dtype), mix_cast(kernel, dtype));
}

/* Integer products of inputs that are quantized row by row. There is no straight-through estimate here: the
 * gradient flows through the scale of the inputs alone (Q22). */
static mix_tensor *integer_logits(const reversible *r, const mix_stored_weight *w, mix_tensor *x,
                                  mix_tensor *kernel, mix_tensor *scale) {
  mix_tensor *constant_scale, *inputs = mix_quantize_inputs(&w->inputs, x, MIX_AXES(-1), &constant_scale);
  mix_tensor *largest = mix_reduce_max(mix_abs(x), MIX_AXES(-1), true);
  mix_tensor *of_inputs =
      mix_divide(mix_scalar_like(x, w->inputs.high), mix_add(largest, mix_scalar_like(x, w->inputs.epsilon)));
  mix_tensor *sums = times(mix_matmul_integer, r, inputs, kernel);
  return mix_divide(mix_cast(sums, mix_tensor_dtype(x)), mix_multiply(of_inputs, scale));
}

/* `reverse_dtype` has no say here, as in Keras. Numbers of 4 bits share bytes along the last axis of the
 * table, and along the first one of the kernel of untied weights. */
static mix_tensor *stored_logits(const mix_layer *layer, const reversible *r, const mix_stored_weight *w,
                                 mix_tensor *x) {
  const bool tied = !r->options.untied_weights;
  mix_tensor *kernel = mix_variable_true_value(w->stored),
             *scale = mix_cast(mix_variable_true_value(w->scale), layer->compute);
  if (!x || !scale) return NULL;
  x = mix_cast(x, dtype_of_both(mix_tensor_dtype(x), layer->compute));
  const bool unpack = w->bits == 4 && (!tied || w->inputs.given);
  if (unpack) kernel = mix_unpack_int4(kernel, w->of.packed_axis, r->options.output_dim);
  if (w->inputs.given) return integer_logits(r, w, x, kernel, mix_cast(scale, mix_tensor_dtype(x)));
  return mix_matmul_stored(x, kernel, scale, w->zero ? mix_variable_true_value(w->zero) : NULL,
                           &(mix_stored_options){.size = sizeof(mix_stored_options),
                                                 .bits = unpack ? 8 : w->bits,
                                                 .columns = w->of.shape.dims[1],
                                                 .block = w->block,
                                                 .transposed = tied});
}

static mix_tensor *capped(mix_tensor *logits, double cap) {
  if (!isfinite(cap) || !logits) return logits;
  return mix_times(mix_tanh(mix_over(logits, cap)), cap);
}

static mix_tensor *reverse(const mix_layer *layer, const reversible *r, mix_tensor *x) {
  const mix_shape shape = mix_tensor_shape(x);
  const int64_t last = shape.rank ? shape.dims[shape.rank - 1] : 0;
  if (shape.rank < 2 || (last != r->options.output_dim && last != MIX_UNKNOWN))
    return mix_fail_value("%s: got an input of shape %s for the call in reverse; expected rank 2 or more and "
                          "output_dim %lld as its last dimension",
                          layer->name, MIX_SHAPE_TEXT(shape), (long long)r->options.output_dim);
  if (!mix_dtype_is_floating(mix_tensor_dtype(x))) x = mix_cast(x, layer->compute);
  const mix_stored_weight *w = r->options.untied_weights ? &r->stored : &r->table.stored;
  mix_tensor *logits = w->bits ? stored_logits(layer, r, w, x) : float_logits(layer, r, x);
  return capped(logits, r->options.logit_soft_cap);
}

/* ---- the layer ---- */

static mix_list *reversible_embedding_call(mix_layer *layer, const mix_call_args *args) {
  const reversible *r = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!x) return NULL;
  return mix_one_result(args->reverse ? reverse(layer, r, x) : mix_embedding_rows(layer, &r->table, x));
}

static mix_tensor *reversible_embedding_mask(mix_layer *layer, const mix_call_args *args) {
  const reversible *r = mix_layer_data(layer);
  return r->options.mask_zero && !args->reverse ? mix_embedding_mask(mix_call_input(args, 0)) : NULL;
}

/* Of a call that is not in reverse. */
static mix_shape reversible_embedding_output_shape(mix_layer *layer, int count,
                                                   const mix_shape *input_shapes) {
  mix_shape shape = input_shapes[0];
  if (shape.rank < MIX_MAX_RANK)
    shape.dims[shape.rank++] = ((const reversible *)mix_layer_data(layer))->options.output_dim;
  return shape;
}

static bool reversible_embedding_check(void *options, const mix_layer_kind *kind) {
  const mix_reversible_embedding_options *o = options;
  const mix_dtype dtype = o->reverse_dtype ? mix_dtype_from_name(o->reverse_dtype) : MIX_FLOAT32;
  if (mix_dtype_is_floating(dtype)) return true;
  return mix_fail_value("%s: reverse_dtype is \"%.40s\"; expected float16, bfloat16, float32 or float64",
                        kind->call, o->reverse_dtype);
}

#define FIELD(member) MIX_FIELD(mix_reversible_embedding_options, member)
static const mix_field_row fields[] = {
    {FIELD(input_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(output_dim), &mix_field_integer, .range = MIX_POSITIVE},
    MIX_INITIALIZER_FIELD(mix_reversible_embedding_options, embeddings_initializer, "random_uniform"),
    {FIELD(embeddings_regularizer), &mix_field_regularizer},
    {FIELD(activity_regularizer), &mix_field_regularizer},
    {FIELD(embeddings_constraint), &mix_field_constraint},
    {FIELD(mask_zero), &mix_field_boolean},
    MIX_QUANTIZATION_CONFIG_FIELD(mix_reversible_embedding_options),
    MIX_LORA_FIELDS(mix_reversible_embedding_options),
    {"tie_weights", offsetof(mix_reversible_embedding_options, untied_weights), &mix_field_negated},
    {FIELD(reverse_dtype), &mix_field_text, .optional = true},
    {FIELD(logit_soft_cap), &mix_field_number, .number = INFINITY},
    {0}};
MIX_LAYER_KIND(reversible_embedding, mix_reversible_embedding_options, .fields = fields,
               .check = reversible_embedding_check, .quantize = reversible_embedding_quantize,
               .call_has_reverse = true, .keras3_only = true,
               MIX_LORA_OF(mix_reversible_embedding_options, embeddings), .lora_alpha_lost = true,
               .stored = reversible_embedding_stored, .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "ReversibleEmbedding", .instance_size = sizeof(reversible),
                               .build = reversible_embedding_build, .call = reversible_embedding_call,
                               .output_shape = reversible_embedding_output_shape, .no_autocast = true,
                               .compute_mask = reversible_embedding_mask))
