/* The discrete Fourier transform along the last axis, of real and imaginary parts, not divided by n. */
#include "ops/rules.h"

static bool fourier_infer(mix_node *node) {
  const mix_shape shape = mix_input_value(node, 0)->shape;
  if (!mix_rule_one_shape(node)) return false;
  if (!shape.rank) return mix_rule_fail(node, "they are scalars; expected an axis");
  return mix_rule_output(node, 1, node->outputs[0].shape);
}

static mix_list *transform(mix_tensor *real, mix_tensor *imaginary, bool inverse) {
  mix_tensor *first =
      mix_apply(&mix_op_fourier, &(mix_fourier_attributes){inverse}, 2, (mix_tensor *[]){real, imaginary});
  return first ? mix_list_of(first, mix_tensor_of(first->node, 1)) : NULL;
}

/* The transpose of the real matrix of (real, imaginary) is the transform with the other sign. */
static void fourier_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  const bool inverse = ((const mix_fourier_attributes *)node->attributes)->inverse;
  mix_tensor *real = output_gradients[0], *imaginary = output_gradients[1];
  if (!real) real = mix_zeros_like(imaginary);
  if (!imaginary) imaginary = mix_zeros_like(real);
  mix_list *gradients = transform(real, imaginary, !inverse);
  for (int i = 0; gradients && i < 2; i++) input_gradients[i] = mix_list_get(gradients, i);
}

static const mix_attribute_row fourier_fields[] = {
    {"inverse", MIX_ATTRIBUTE_BOOL, offsetof(mix_fourier_attributes, inverse)}, {NULL}};

const mix_op mix_op_fourier = {.name = "fourier",
                               .signature = "T,T->T,T",
                               .types = "float",
                               .attributes_size = sizeof(mix_fourier_attributes),
                               .infer = fourier_infer,
                               .row_independent = mix_rows_before_classes,
                               .gradient = fourier_gradient,
                               .fields = fourier_fields};

mix_list *mix_fft(mix_tensor *real, mix_tensor *imaginary, bool inverse) {
  if (!mix_operand_ready("fft", real) || !mix_operand_ready("fft", imaginary)) return NULL;
  mix_list *parts = transform(real, imaginary, inverse);
  if (!parts || !inverse) return parts;
  const mix_shape shape = mix_tensor_shape(real);
  const double size = (double)shape.dims[shape.rank - 1];
  mix_tensor *a = mix_over(mix_list_get(parts, 0), size), *b = mix_over(mix_list_get(parts, 1), size);
  return mix_failed() ? NULL : mix_list_of(a, b);
}
