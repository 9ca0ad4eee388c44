/* ReversibleEmbedding: rows of a table, and from such rows back to one logit for each row of the table
 * (keras3). */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/layers/embedding_table.h"
#include "ops/with_number.h"
#include "tensor/shape.h"
#include <math.h>

typedef struct reversible {
  mix_reversible_embedding_options options;
  mix_embedding_table table;
  mix_variable *reverse; /* (output_dim, input_dim), owned by the layer's list; NULL: the table, transposed */
} reversible;

static mix_status reversible_embedding_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  reversible *r = mix_layer_data(layer);
  const mix_reversible_embedding_options *o = &r->options;
  r->table.embeddings = mix_layer_add_weight(
      layer, "embeddings", .shape = MIX_SHAPE(o->input_dim, o->output_dim), .no_autocast = true,
      .initializer_object = o->embeddings_initializer_object, .regularizer_object = o->embeddings_regularizer,
      .constraint_object = o->embeddings_constraint);
  if (o->untied_weights)
    r->reverse =
        mix_layer_add_weight(layer, "reverse_embeddings", .shape = MIX_SHAPE(o->output_dim, o->input_dim),
                             .no_autocast = true, .initializer_object = o->embeddings_initializer_object);
  return mix_error();
}

/* ---- reverse ---- */

/* The dtype that holds both: of float16 and bfloat16 it is float32. */
static mix_dtype dtype_of_both(mix_dtype a, mix_dtype b) {
  if (a == b) return a;
  if (mix_dtype_size(a) == mix_dtype_size(b)) return MIX_FLOAT32;
  return mix_dtype_size(a) > mix_dtype_size(b) ? a : b;
}

/* x (..., output_dim) times the kernel. Higher ranks are reshaped to one matrix, so that the product and each
 * gradient is one matmul. */
static mix_tensor *product(const reversible *r, mix_tensor *x, mix_tensor *kernel) {
  const bool transpose = !r->reverse;
  mix_shape shape = mix_tensor_shape(x);
  int unknown = 0;
  for (int i = 0; i + 1 < shape.rank; i++) unknown += shape.dims[i] == MIX_UNKNOWN;
  if (shape.rank == 2 || unknown > 1) return mix_matmul(x, kernel, false, transpose);
  mix_tensor *rows = mix_reshape(x, MIX_SHAPE(-1, r->options.output_dim));
  shape.dims[shape.rank - 1] = r->options.input_dim;
  return mix_reshape(mix_matmul(rows, kernel, false, transpose), shape);
}

/* The kernel is rounded to the compute dtype first, in whatever dtype the product is, as in a model that
 * Keras has read from its file. */
static mix_tensor *logits_of(const mix_layer *layer, const reversible *r, mix_tensor *x) {
  const char *asked = r->options.reverse_dtype;
  if (!mix_dtype_is_floating(mix_tensor_dtype(x))) x = mix_cast(x, layer->compute);
  mix_tensor *kernel =
      mix_cast(mix_variable_value(r->reverse ? r->reverse : r->table.embeddings), layer->compute);
  if (!x || !kernel) return NULL;
  const mix_dtype dtype =
      asked ? mix_dtype_from_name(asked) : dtype_of_both(mix_tensor_dtype(x), layer->compute);
  return product(r, mix_cast(x, dtype), mix_cast(kernel, dtype));
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
  return capped(logits_of(layer, r, x), r->options.logit_soft_cap);
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
    {"lora_rank", 0, &mix_field_refused, .text = "null"}, /* other weights train */
    {"tie_weights", offsetof(mix_reversible_embedding_options, untied_weights), &mix_field_negated},
    {FIELD(reverse_dtype), &mix_field_text, .optional = true},
    {FIELD(logit_soft_cap), &mix_field_number, .number = INFINITY},
    {0}};
MIX_LAYER_KIND(reversible_embedding, mix_reversible_embedding_options, .fields = fields,
               .check = reversible_embedding_check, .call_has_reverse = true, .keras3_only = true,
               MIX_LAYER_CLASS(.name = "ReversibleEmbedding", .instance_size = sizeof(reversible),
                               .build = reversible_embedding_build, .call = reversible_embedding_call,
                               .output_shape = reversible_embedding_output_shape, .no_autocast = true,
                               .compute_mask = reversible_embedding_mask))
