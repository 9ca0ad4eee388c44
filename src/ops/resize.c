/* Resizing along one axis, and its transpose: tf.image.resize is two of them. The weights are those of
 * TensorFlow's kernels ResizeNearestNeighbor, ResizeBilinear, ResizeBicubic, ResizeArea and
 * ScaleAndTranslate, with pixels at half-integer positions. */
#include "ops/resize.h"
#include "base/alloc.h"
#include "ops/rules.h"
#include <math.h>
#include <mixtape/image.h>

static const mix_resize_attributes *resizing(const mix_node *node) { return node->attributes; }

/* ---- weights ---- */

static double cubic(double x, double b, double c) {
  x = fabs(x);
  if (x < 1) return ((12 - 9 * b - 6 * c) * x * x * x + (-18 + 12 * b + 6 * c) * x * x + (6 - 2 * b)) / 6;
  if (x < 2)
    return ((-b - 6 * c) * x * x * x + (6 * b + 30 * c) * x * x + (-12 * b - 48 * c) * x + (8 * b + 24 * c)) /
           6;
  return 0;
}

static double lanczos(double x, double radius) {
  x = fabs(x);
  if (x > radius) return 0;
  if (x <= 1e-3) return 1;
  return radius * sin(M_PI * x) * sin(M_PI * x / radius) / (M_PI * M_PI * x * x);
}

static double kernel_radius(int interpolation) {
  static const double radii[] = {[MIX_BILINEAR] = 1, [MIX_BICUBIC] = 2,    [MIX_LANCZOS3] = 3,
                                 [MIX_LANCZOS5] = 5, [MIX_GAUSSIAN] = 1.5, [MIX_MITCHELL_CUBIC] = 2};
  return radii[interpolation];
}

static double kernel_at(int interpolation, double x) {
  switch (interpolation) {
  case MIX_BICUBIC: return cubic(x, 0, 0.5);
  case MIX_MITCHELL_CUBIC: return cubic(x, 1.0 / 3, 1.0 / 3);
  case MIX_LANCZOS3: return lanczos(x, 3);
  case MIX_LANCZOS5: return lanczos(x, 5);
  case MIX_GAUSSIAN: return fabs(x) >= 1.5 ? 0 : exp(-x * x / (2 * 0.5 * 0.5));
  default: return fmax(0, 1 - fabs(x));
  }
}

/* Elements of the operand for one of the result, rounded as in ScaleAndTranslate: it decides which elements
 * are within the radius. */
static float inverse_scale(const mix_resize_attributes *a) { return 1 / ((float)a->to / (float)a->from); }

static float kernel_scale(const mix_resize_attributes *a) {
  const float shrinks = inverse_scale(a);
  return a->antialias && shrinks > 1 ? shrinks : 1;
}

/* The number of weights that an element has at most. */
static int64_t span_of(const mix_resize_attributes *a) {
  double span = 1;
  if (a->interpolation == MIX_AREA)
    span = ceil((double)a->from / (double)a->to) + 1;
  else if (a->interpolation != MIX_NEAREST)
    span = 2 * ceil(kernel_radius(a->interpolation) * (double)kernel_scale(a)) + 1;
  return span < (double)a->from ? (int64_t)span : a->from;
}

static void set_nearest(const mix_resize_attributes *a, mix_resize_weights *w, int64_t i) {
  const float scale = (float)a->from / (float)a->to;
  const int64_t at = (int64_t)floorf(((float)i + 0.5f) * scale);
  w->first[i] = at < a->from ? at : a->from - 1;
  w->count[i] = 1;
  w->weights[i] = 1;
}

/* The part of element i that each element covers. */
static void set_area(const mix_resize_attributes *a, mix_resize_weights *w, int64_t i) {
  const double scale = (double)a->from / (double)a->to, begin = (double)i * scale, end = begin + scale;
  const int64_t first = (int64_t)floor(begin);
  w->first[i] = first < a->from ? first : a->from - 1;
  for (int64_t k = 0; k < w->span && w->first[i] + k < a->from; k++) {
    const double from = (double)(w->first[i] + k);
    const double part = fmin(from + 1, end) - fmax(from, begin);
    if (k > 0 && part <= 0) break;
    w->weights[i * w->span + k] = part / scale;
    w->count[i] = k + 1;
  }
}

/* TensorFlow's bicubic kernel without antialiasing has a table of 1024 places between two pixels. */
static float sample_of(const mix_resize_attributes *a, int64_t i) {
  if (a->interpolation != MIX_BICUBIC || a->antialias) return ((float)i + 0.5f) * inverse_scale(a);
  const float scale = (float)a->from / (float)a->to, at = ((float)i + 0.5f) * scale - 0.5f;
  const float whole = floorf(at);
  return whole + (float)lrintf((at - whole) * 1024) / 1024 + 0.5f;
}

static void set_kernel(const mix_resize_attributes *a, mix_resize_weights *w, int64_t i) {
  const float scale = kernel_scale(a), reach = (float)kernel_radius(a->interpolation) * scale,
              sample = sample_of(a, i);
  const int64_t first = (int64_t)ceilf(sample - reach - 0.5f), last = (int64_t)floorf(sample + reach - 0.5f);
  double sum = 0;
  w->first[i] = first > 0 ? first : 0;
  for (int64_t k = 0; w->first[i] + k <= last && w->first[i] + k < a->from && k < w->span; k++) {
    const float at = ((float)(w->first[i] + k) + 0.5f - sample) * (1 / scale);
    const double weight = kernel_at(a->interpolation, (double)at);
    w->weights[i * w->span + k] = weight;
    w->count[i] = k + 1;
    sum += weight;
  }
  for (int64_t k = 0; k < w->count[i] && sum != 0; k++) w->weights[i * w->span + k] /= sum;
}

mix_resize_weights *mix_resize_weights_new(const mix_resize_attributes *a) {
  const size_t span = (size_t)span_of(a), to = (size_t)a->to;
  size_t numbers, bytes;
  if (__builtin_mul_overflow(to, span + 2, &numbers) || __builtin_mul_overflow(numbers, 8, &bytes) ||
      bytes > SIZE_MAX / 2)
    return mix_fail_memory("the weights of resize_axis");
  mix_resize_weights *w = mix_calloc(1, sizeof *w + bytes);
  if (!w) return NULL;
  w->span = (int64_t)span;
  w->weights = (double *)(w + 1);
  w->first = (int64_t *)(w->weights + to * span);
  w->count = w->first + to;
  for (int64_t i = 0; i < a->to; i++) {
    if (a->interpolation == MIX_NEAREST)
      set_nearest(a, w, i);
    else if (a->interpolation == MIX_AREA)
      set_area(a, w, i);
    else
      set_kernel(a, w, i);
  }
  return w;
}

/* ---- the op ---- */

static bool resize_infer(mix_node *node) {
  const mix_resize_attributes *a = resizing(node);
  mix_shape shape = mix_input_value(node, 0)->shape;
  if (!mix_rule_axis(node, a->axis)) return false;
  if (a->from < 1 || a->to < 1 || a->interpolation < MIX_NEAREST || a->interpolation > MIX_MITCHELL_CUBIC)
    return mix_rule_fail(node,
                         "from %lld to %lld elements; expected positive numbers, and an interpolation "
                         "of mixtape/image.h",
                         (long long)a->from, (long long)a->to);
  if (!mix_dimension_merge(shape.dims[a->axis], a->transposed ? a->to : a->from, &shape.dims[a->axis]))
    return mix_rule_fail(node, "expected %lld elements along axis %d",
                         (long long)(a->transposed ? a->to : a->from), a->axis);
  shape.dims[a->axis] = a->transposed ? a->from : a->to;
  return mix_rule_output(node, 0, shape);
}

static void resize_gradient(mix_node *node, mix_tensor *const *output_gradients,
                            mix_tensor **input_gradients) {
  mix_resize_attributes attributes = *resizing(node);
  attributes.transposed = !attributes.transposed;
  input_gradients[0] = mix_apply(&mix_op_resize_axis, &attributes, 1, output_gradients);
}

static bool resize_rows(const mix_row_query *query) {
  return ((const mix_resize_attributes *)query->attributes)->axis > 0;
}

static const mix_attribute_row resize_fields[] = {
    {"axis", MIX_ATTRIBUTE_INT, offsetof(mix_resize_attributes, axis)},
    {"from", MIX_ATTRIBUTE_INT64, offsetof(mix_resize_attributes, from)},
    {"to", MIX_ATTRIBUTE_INT64, offsetof(mix_resize_attributes, to)},
    {"interpolation", MIX_ATTRIBUTE_INT, offsetof(mix_resize_attributes, interpolation)},
    {"antialias", MIX_ATTRIBUTE_BOOL, offsetof(mix_resize_attributes, antialias)},
    {"transposed", MIX_ATTRIBUTE_BOOL, offsetof(mix_resize_attributes, transposed)},
    {NULL}};

const mix_op mix_op_resize_axis = {.name = "resize_axis",
                                   .signature = "T->T",
                                   .types = "float",
                                   .attributes_size = sizeof(mix_resize_attributes),
                                   .infer = resize_infer,
                                   .row_independent = resize_rows,
                                   .gradient = resize_gradient,
                                   .fields = resize_fields};

mix_tensor *mix_resize_axis(mix_tensor *x, int axis, int64_t length, mix_interpolation interpolation,
                            bool antialias) {
  if (!mix_operand_ready("resize_axis", x)) return NULL;
  const int at = mix_call_axis("resize_axis", x, axis, 0);
  if (at < 0) return NULL;
  return mix_apply(&mix_op_resize_axis,
                   &(mix_resize_attributes){.axis = at,
                                            .from = mix_tensor_shape(x).dims[at],
                                            .to = length,
                                            .interpolation = (int)interpolation,
                                            .antialias = antialias},
                   1, &x);
}

/* ---- projective transforms ---- */

static bool transform_infer(mix_node *node) {
  const mix_transform_attributes *a = node->attributes;
  mix_shape images = mix_input_value(node, 0)->shape, transforms = mix_input_value(node, 1)->shape;
  if (images.rank != 4 || transforms.rank != 2 ||
      !mix_dimension_merge(transforms.dims[0], images.dims[0], &images.dims[0]) ||
      !mix_dimension_merge(transforms.dims[1], 8, &transforms.dims[1]))
    return mix_rule_fail(node, "expected images (batch, height, width, channels) and transforms (batch, 8)");
  if (a->interpolation < MIX_NEAREST || a->interpolation > MIX_BILINEAR || a->fill_mode < MIX_FILL_CONSTANT ||
      a->fill_mode > MIX_FILL_NEAREST)
    return mix_rule_fail(node, "expected an interpolation of 0 or 1 and a fill mode of 0 to 3");
  return mix_rule_output(node, 0, images);
}

/* The transforms have none, as in TensorFlow. */
static void transform_gradient(mix_node *node, mix_tensor *const *output_gradients,
                               mix_tensor **input_gradients) {
  mix_transform_attributes attributes = *(const mix_transform_attributes *)node->attributes;
  attributes.transposed = !attributes.transposed;
  attributes.fill_value = 0;
  input_gradients[0] = mix_apply(&mix_op_projective_transform, &attributes, 2,
                                 (mix_tensor *[]){output_gradients[0], mix_node_input(node, 1)});
}

static bool transform_rows(const mix_row_query *query) { return query->batched[0] && query->batched[1]; }

static const mix_attribute_row transform_fields[] = {
    {"interpolation", MIX_ATTRIBUTE_INT, offsetof(mix_transform_attributes, interpolation)},
    {"fill_mode", MIX_ATTRIBUTE_INT, offsetof(mix_transform_attributes, fill_mode)},
    {"fill_value", MIX_ATTRIBUTE_DOUBLE, offsetof(mix_transform_attributes, fill_value)},
    {"transposed", MIX_ATTRIBUTE_BOOL, offsetof(mix_transform_attributes, transposed)},
    {NULL}};

const mix_op mix_op_projective_transform = {.name = "projective_transform",
                                            .tf_name = "ImageProjectiveTransformV3",
                                            .signature = "T,f->T",
                                            .types = "float",
                                            .attributes_size = sizeof(mix_transform_attributes),
                                            .infer = transform_infer,
                                            .row_independent = transform_rows,
                                            .gradient = transform_gradient,
                                            .fields = transform_fields};

mix_tensor *mix_projective_transform(mix_tensor *images, mix_tensor *transforms,
                                     mix_interpolation interpolation, mix_fill_mode fill_mode,
                                     double fill_value) {
  return mix_apply(&mix_op_projective_transform,
                   &(mix_transform_attributes){.interpolation = (int)interpolation,
                                               .fill_mode = (int)fill_mode,
                                               .fill_value = fill_value},
                   2, (mix_tensor *[]){images, transforms});
}
