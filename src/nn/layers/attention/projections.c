/* Projections to and from heads: inner layers of the class EinsumDense. */
#include "base/error.h"
#include "nn/layers/attention/attention.h"
#include "nn/weights/weights.h"
#include <stdio.h>
#include <string.h>

enum { LETTERS = 2 * MIX_MAX_RANK };

/* "abc,cde->abde" for an input of rank 3 with one bound axis and two new ones. */
static void write_equation(int free, int bound, int added, char equation[4 * LETTERS]) {
  char letters[LETTERS + 1] = "";
  for (int i = 0; i < free + bound + added && i < LETTERS; i++) letters[i] = (char)('a' + i);
  snprintf(equation, 4 * LETTERS, "%.*s,%s->%.*s%s", free + bound, letters, letters + free, free, letters,
           letters + free + bound);
}

/* An initializer without a seed of its own draws another one for each projection, as in Keras. */
static mix_initializer *another(const mix_layer *layer, mix_initializer *initializer) {
  json_t *json = mix_initializer_to_json(initializer, layer->semantics);
  mix_initializer *copy = mix_initializer_from_json(json);
  json_decref(json);
  return copy;
}

const char *mix_attention_attribute(const mix_layer *layer, const char *attribute) {
  return layer->semantics->attention_properties_saved ? attribute + 1 : attribute;
}

mix_layer *mix_projection(mix_layer *layer, const char *name, const char *attribute, mix_shape input,
                          int bound, mix_shape sizes, const char *activation,
                          const mix_projection_options *o) {
  char equation[4 * LETTERS], text[160];
  const int free = input.rank - bound;
  if (free < 1 || free + sizes.rank > MIX_MAX_RANK)
    return mix_fail_value("%s: %s has shape %s; expected another rank", layer->name, name,
                          mix_shape_text(input, text, sizeof text));
  write_equation(free, bound, sizes.rank, equation);
  mix_shape result = {.rank = free - 1};
  for (int i = 0; i < result.rank; i++) result.dims[i] = MIX_UNKNOWN;
  for (int i = 0; i < sizes.rank; i++) result.dims[result.rank++] = sizes.dims[i];
  mix_layer *made =
      mix_einsum_dense(.name = name, .policy = layer->policy, .semantics = layer->semantics,
                       .not_trainable = !layer->trainable,
                       .activity_regularizer =
                           layer->kind ? ((const mix_layer_common *)layer->data)->activity_regularizer : NULL,
                       .equation = equation, .output_shape = result, .activation = activation,
                       .bias_axes = o->no_bias ? NULL : equation + strlen(equation) - sizes.rank,
                       .kernel_initializer_object = another(layer, o->kernel_initializer),
                       .bias_initializer_object = another(layer, o->bias_initializer),
                       .kernel_regularizer = o->kernel_regularizer, .bias_regularizer = o->bias_regularizer,
                       .kernel_constraint = o->kernel_constraint, .bias_constraint = o->bias_constraint,
                       .quantization_config = o->quantization_config);
  if (!made || !mix_layer_add_layer(layer, made)) return NULL;
  made->attribute = attribute;
  return mix_layer_build(made, input) ? NULL : made;
}
