/* SpectralNormalization (Miyato et al.; arXiv:1802.05957): power iteration on the kernel of an inner layer.
 */
#include "base/error.h"
#include "nn/layers/moments.h"
#include <string.h>

enum { ITERATION_LIMIT = 1024 }; /* each is a dozen nodes of the graph */

typedef struct spectral_normalization {
  mix_spectral_normalization_options options;
  mix_variable *kernel, *vector_u; /* owned by the lists of the inner layer and of this one */
} spectral_normalization;

static mix_layer *inner_of(const mix_layer *layer) {
  return ((const spectral_normalization *)layer->data)->options.layer;
}

/* The inner layer's own weight "kernel" or "embeddings". */
static mix_variable *kernel_of(const mix_layer *inner) {
  static const char *const names[] = {"kernel", "embeddings"};
  for (int n = 0; n < 2; n++)
    for (int i = 0; inner->weights && i < mix_list_count(inner->weights); i++) {
      mix_variable *variable = mix_list_items(inner->weights)[i];
      const char *slash = strrchr(variable->name, '/'), *name = slash ? slash + 1 : variable->name;
      if (!strncmp(name, names[n], strlen(names[n])) &&
          (!name[strlen(names[n])] || name[strlen(names[n])] == ':'))
        return variable;
    }
  return NULL;
}

static mix_status build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  spectral_normalization *s = layer->data;
  mix_layer *inner = inner_of(layer);
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  if (mix_layer_build(inner, input_shapes[0]) != MIX_OK) return mix_error();
  s->kernel = kernel_of(inner);
  if (!s->kernel || !s->kernel->shape.rank)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: the layer %s has no weight 'kernel' or 'embeddings'",
                           layer->name, inner->name);
  /* an attribute of this layer too, as in Keras: its files have the kernel twice */
  if (mix_list_append(layer->weights, s->kernel) != MIX_OK) return mix_error();
  const mix_shape shape = s->kernel->shape;
  s->vector_u =
      mix_layer_add_weight(layer, "vector_u", .shape = MIX_SHAPE(1, shape.dims[shape.rank - 1]),
                           .dtype = mix_dtype_name(s->kernel->dtype), .not_trainable = true,
                           .initializer_object = mix_initializer_new("truncated_normal", .stddev = 0.02));
  return mix_error();
}

/* One step or more of u -> v -> u; the kernel divided by v W u, unless it is zero. */
static bool normalize(const mix_layer *layer) {
  const spectral_normalization *s = layer->data;
  mix_tensor *kernel = mix_variable_value(s->kernel), *u = mix_variable_value(s->vector_u), *old = u,
             *v = NULL;
  if (!kernel || !u) return false;
  u = mix_cast(u, mix_tensor_dtype(kernel));
  mix_tensor *rows = mix_reshape(kernel, MIX_SHAPE(-1, s->vector_u->shape.dims[1]));
  for (int64_t i = 0; i < s->options.power_iterations && !mix_failed(); i++) {
    v = mix_l2_normalize(mix_matmul(u, rows, false, true), MIX_ALL_AXES, layer->semantics);
    u = mix_l2_normalize(mix_matmul(v, rows, false, false), MIX_ALL_AXES, layer->semantics);
  }
  mix_tensor *sigma = mix_matmul(mix_matmul(v, rows, false, false), u, false, true); /* (1, 1) */
  if (!sigma) return false;
  mix_tensor *zero = mix_reduce_all(mix_equal(kernel, mix_scalar_like(kernel, 0)), MIX_ALL_AXES, false);
  mix_tensor *divided = mix_select(zero, kernel, mix_divide(kernel, mix_reshape(sigma, MIX_SCALAR)));
  u = mix_select(zero, mix_cast(old, mix_tensor_dtype(u)), u);
  return mix_variable_assign(s->vector_u, mix_stop_gradient(mix_cast(u, s->vector_u->dtype))) == MIX_OK &&
         mix_variable_assign(s->kernel, mix_stop_gradient(mix_cast(divided, s->kernel->dtype))) == MIX_OK;
}

static mix_list *call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  if (args->training && !args->symbolic && !normalize(layer)) return NULL;
  mix_tensor *y = mix_call(inner_of(layer), x, .training = args->training ? MIX_TRUE : MIX_FALSE);
  if (y && mix_dtype_is_floating(mix_tensor_dtype(x))) y = mix_cast(y, mix_tensor_dtype(x));
  return mix_one_result(y);
}

/* Each call goes on with the power iteration. */
static bool mixes_samples(const mix_layer *layer) { return true; }

static mix_shape output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  return mix_layer_output_shape(inner_of(layer), input_shapes[0]);
}

static bool ready(mix_layer *layer) {
  const int64_t iterations = ((const spectral_normalization *)layer->data)->options.power_iterations;
  if (iterations > ITERATION_LIMIT)
    return mix_fail_value("%s: power_iterations is %lld; expected at most %d", layer->name,
                          (long long)iterations, ITERATION_LIMIT);
  mix_layer *inner = inner_of(layer);
  inner->attribute = "layer";
  return mix_layer_add_layer(layer, inner) != NULL;
}

/* ---- the field of the inner layer ---- */

static bool resolve_layer(const mix_field *field) {
  if (!mix_is(*(void **)field->value, &mix_layer_object_class))
    return mix_fail_type("%s: %s is no layer", field->call, field->name);
  return mix_retain_field(field);
}
static json_t *write_layer(const mix_field *field) {
  mix_layer *layer = *(mix_layer **)field->value;
  return mix_layer_object_json(layer, mix_layer_config_json(layer));
}
static bool read_layer(const mix_field *field, const json_t *value) {
  if (!json_is_object(value)) return mix_field_mistyped(field, value);
  *(mix_layer **)field->value = mix_layer_from_object(value, field->rules, field->call);
  return !mix_failed();
}
static const mix_value_kind layer_kind = {.expected = "a layer",
                                          .size = sizeof(void *),
                                          .resolve = resolve_layer,
                                          .release = mix_release_field,
                                          .write = write_layer,
                                          .read = read_layer};

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_spectral_normalization_options, layer), &layer_kind, .required = true},
    {MIX_FIELD(mix_spectral_normalization_options, power_iterations), &mix_field_integer, .number = 1,
     .range = MIX_POSITIVE},
    {0}};
MIX_LAYER_KIND(spectral_normalization, mix_spectral_normalization_options, .fields = fields, .ready = ready,
               .call_training = MIX_FALSE, .mixes_samples = mixes_samples,
               MIX_LAYER_CLASS(.name = "SpectralNormalization",
                               .instance_size = sizeof(spectral_normalization), .build = build, .call = call,
                               .output_shape = output_shape))
