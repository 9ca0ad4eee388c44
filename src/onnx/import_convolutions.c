/* Convolutions and pooling of ONNX: layers with channels first, after a padding of their own where Keras has
 * no such one. */
#include "onnx/import.h"

#include "base/error.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

enum { MAX_AXES = 3 };

/* The window of a node, for each spatial axis. */
typedef struct window {
  int axes;
  int64_t size[MAX_AXES], stride[MAX_AXES], dilation[MAX_AXES], pads[MAX_AXES][2];
  bool same; /* padding of Keras's "same" */
} window;

static bool read_sizes(mix_import *in, const char *name, int count, int64_t *sizes, int64_t least) {
  const mix_onnx_attribute *a = mix_onnx_find(in->node, name);
  if (a && (a->count != count || !a->ints))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%s has %d numbers; expected %d", name, a->count, count);
  for (int i = 0; a && i < count; i++) {
    if (a->ints[i] < least || a->ints[i] > 1 << 24)
      return mix_import_fail(in, MIX_FORMAT_ERROR, "%s is %lld", name, (long long)a->ints[i]);
    sizes[i] = a->ints[i];
  }
  return true;
}

static bool read_window(mix_import *in, const mix_tensor *x, window *w) {
  int64_t pads[2 * MAX_AXES] = {0};
  w->axes = mix_tensor_shape(x).rank - 2;
  if (w->axes < 1 || w->axes > MAX_AXES)
    return mix_import_fail(in, MIX_UNSUPPORTED, "an input of rank %d; expected 3 to 5", w->axes + 2);
  for (int i = 0; i < w->axes; i++) w->stride[i] = w->dilation[i] = 1;
  if (!read_sizes(in, "strides", w->axes, w->stride, 1) ||
      !read_sizes(in, "dilations", w->axes, w->dilation, 1) ||
      !read_sizes(in, "kernel_shape", w->axes, w->size, 1) || !read_sizes(in, "pads", 2 * w->axes, pads, 0))
    return false;
  for (int i = 0; i < w->axes; i++) {
    w->pads[i][0] = pads[i];
    w->pads[i][1] = pads[i + w->axes];
    if (w->size[i] < 1) return mix_import_fail(in, MIX_FORMAT_ERROR, "its kernel_shape is missing");
  }
  const char *automatic = mix_onnx_string(in->node, "auto_pad", "NOTSET");
  w->same = !strcmp(automatic, "SAME_UPPER");
  if (!strcmp(automatic, "SAME_LOWER")) return mix_import_fail(in, MIX_UNSUPPORTED, "auto_pad is SAME_LOWER");
  return true;
}

/* What "same" of Keras would add: without steps, as much on both sides, the odd one at the end. */
static bool is_same(const window *w) {
  bool same = true, any = false;
  for (int i = 0; i < w->axes; i++) {
    const int64_t all = w->dilation[i] * (w->size[i] - 1);
    same = same && w->stride[i] == 1 && w->pads[i][0] == all / 2 && w->pads[i][1] == all - all / 2;
    any = any || all;
  }
  return same && any;
}

static bool pads_any(const window *w) {
  for (int i = 0; i < w->axes; i++)
    if (w->pads[i][0] || w->pads[i][1]) return true;
  return false;
}

static mix_tensor *padded(mix_import *in, mix_tensor *x, const window *w, double value) {
  json_t *width = MIX_PACK("[[i,i],[i,i]]", 0, 0, 0, 0);
  for (int i = 0; i < w->axes; i++) mix_json_append(width, mix_import_list(2, w->pads[i]));
  mix_list *result =
      mix_import_run(in, "Pad", 1, &x, MIX_PACK("{s:o,s:s}", "pad_width", width, "mode", "constant"),
                     MIX_PACK("[f]", value));
  return result ? mix_list_get(result, 0) : NULL;
}

static json_t *window_config(const window *w, const char *size_name, const char *dtype) {
  return MIX_PACK("{s:o,s:o,s:s,s:s,s:s}", size_name, mix_import_list(w->axes, w->size), "strides",
                  mix_import_list(w->axes, w->stride), "padding", w->same ? "same" : "valid", "data_format",
                  "channels_first", "dtype", dtype);
}

static const char *class_of(const char *name, int axes, char text[32]) {
  snprintf(text, 32, "%s%dD", name, axes);
  return text;
}

/* ---- convolutions ---- */

/* (out, in, ...) -> (..., in, out) */
static mix_axes kernel_order(int axes) {
  mix_axes order = {.count = axes + 2};
  for (int i = 0; i < axes; i++) order.axis[i] = i + 2;
  order.axis[axes] = 1;
  order.axis[axes + 1] = 0;
  return order;
}

static mix_tensor *bias_of(mix_import *in, int64_t filters) {
  mix_import_value *value = mix_import_input(in, 2);
  if (!value) return NULL;
  mix_tensor *bias = mix_import_constant(in, value);
  /* Zeros that nodes make stand where PyTorch has no bias. */
  if (bias && !value->weight && mix_tensor_item(mix_reduce_max(mix_abs(bias), MIX_ALL_AXES, false)) == 0)
    return NULL;
  if (!bias || mix_shape_equal(mix_tensor_shape(bias), MIX_SHAPE(filters))) return bias;
  return mix_import_fail(in, MIX_FORMAT_ERROR, "its bias has shape %s; expected (%lld)",
                         MIX_SHAPE_TEXT(mix_tensor_shape(bias)), (long long)filters);
}

/* The kernel of a convolution, which must be a weight. */
static mix_tensor *kernel_of(mix_import *in, const mix_tensor *x, window *w) {
  mix_import_value *value = mix_import_input(in, 1);
  if (!value) return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks its kernel");
  if (value->shared)
    return mix_import_fail(in, MIX_UNSUPPORTED, "its kernel is read by nodes of another kind");
  mix_tensor *kernel = mix_import_constant(in, value);
  if (!kernel) return NULL;
  const mix_shape shape = mix_tensor_shape(kernel);
  if (shape.rank < 3 || shape.rank > 2 + MAX_AXES || shape.rank != mix_tensor_shape(x).rank ||
      !mix_dtype_is_floating(mix_tensor_dtype(kernel)))
    return mix_import_fail(in, MIX_UNSUPPORTED, "a kernel of shape %s for data of rank %d",
                           MIX_SHAPE_TEXT(shape), mix_tensor_shape(x).rank);
  for (int i = 2; i < shape.rank; i++) w->size[i - 2] = shape.dims[i];
  return kernel;
}

static mix_tensor *depthwise_kernel(mix_import *in, mix_tensor *kernel, int64_t channels) {
  mix_shape shape = mix_tensor_shape(kernel);
  const int axes = shape.rank - 2;
  mix_tensor *transposed = mix_import_transposed(in, kernel, kernel_order(axes));
  mix_shape to = {.rank = axes + 2};
  for (int i = 0; i < axes; i++) to.dims[i] = shape.dims[i + 2];
  to.dims[axes] = channels;
  to.dims[axes + 1] = shape.dims[0] / channels;
  return transposed ? mix_import_evaluated(in, mix_reshape(transposed, to)) : NULL;
}

bool mix_import_conv(mix_import *in) {
  char class_name[32];
  window w = {0};
  mix_tensor *x = mix_import_operand(in, 0), *kernel = x ? kernel_of(in, x, &w) : NULL;
  if (!kernel || !read_window(in, x, &w)) return false;
  const mix_shape shape = mix_tensor_shape(kernel);
  const int64_t groups = mix_onnx_integer(in->node, "group", 1), filters = shape.dims[0],
                channels = mix_tensor_shape(x).dims[1];
  if (groups < 1 || filters < 1 || filters % groups || channels < 1 || channels % groups ||
      channels / groups != shape.dims[1])
    return mix_import_fail(in, MIX_FORMAT_ERROR, "a kernel of shape %s in %lld groups for %lld channels",
                           MIX_SHAPE_TEXT(shape), (long long)groups, (long long)channels);
  const bool depthwise = groups > 1 && groups == channels && w.axes < 3;
  mix_tensor *bias = bias_of(in, filters);
  if (mix_failed()) return false;
  if (!w.same && is_same(&w))
    w.same = true;
  else if (!w.same && pads_any(&w) && !(x = padded(in, x, &w, 0)))
    return false;
  json_t *config = window_config(&w, "kernel_size", mix_dtype_name(mix_tensor_dtype(kernel)));
  mix_json_set(config, "dilation_rate", mix_import_list(w.axes, w.dilation));
  mix_json_set(config, "use_bias", json_boolean(bias));
  mix_json_set(config, depthwise ? "depth_multiplier" : "filters",
               json_integer(depthwise ? filters / groups : filters));
  if (!depthwise) mix_json_set(config, "groups", json_integer(groups));
  mix_tensor *weights[] = {depthwise ? depthwise_kernel(in, kernel, channels)
                                     : mix_import_transposed(in, kernel, kernel_order(w.axes)),
                           bias};
  const mix_import_value *value = mix_import_input(in, 1);
  mix_list *result =
      weights[0]
          ? mix_import_call_layer(in, class_of(depthwise ? "DepthwiseConv" : "Conv", w.axes, class_name),
                                  config, x, NULL, value->weight ? value->weight : "",
                                  mix_import_share_key(in, 1), bias ? 2 : 1, weights)
          : NULL;
  if (!weights[0]) json_decref(config);
  return result && mix_import_bind(in, 0, mix_list_get(result, 0));
}

/* Without padding Keras's result is whole; what the pads cut is cut after it. */
bool mix_import_conv_transpose(mix_import *in) {
  char class_name[32];
  window w = {0};
  int64_t more[MAX_AXES] = {0};
  mix_tensor *x = mix_import_operand(in, 0), *kernel = x ? kernel_of(in, x, &w) : NULL;
  if (!kernel || !read_window(in, x, &w) || !read_sizes(in, "output_padding", w.axes, more, 0)) return false;
  const mix_shape shape = mix_tensor_shape(kernel);
  if (mix_tensor_shape(x).dims[1] != shape.dims[0])
    return mix_import_fail(in, MIX_FORMAT_ERROR, "a kernel of shape %s for %lld channels",
                           MIX_SHAPE_TEXT(shape), (long long)mix_tensor_shape(x).dims[1]);
  if (mix_onnx_integer(in->node, "group", 1) != 1 || mix_onnx_find(in->node, "output_shape") || w.same)
    return mix_import_fail(in, MIX_UNSUPPORTED, "groups, output_shape or auto_pad; expected pads alone");
  mix_tensor *bias = bias_of(in, shape.dims[1]);
  if (mix_failed()) return false;
  json_t *config = window_config(&w, "kernel_size", mix_dtype_name(mix_tensor_dtype(kernel)));
  mix_json_set(config, "dilation_rate", mix_import_list(w.axes, w.dilation));
  mix_json_set(config, "use_bias", json_boolean(bias));
  mix_json_set(config, "filters", json_integer(shape.dims[1]));
  /* (in, out, ...) -> (..., out, in) */
  mix_tensor *weights[] = {mix_import_transposed(in, kernel, kernel_order(w.axes)), bias};
  const mix_import_value *value = mix_import_input(in, 1);
  mix_list *result =
      weights[0]
          ? mix_import_call_layer(
                in, class_of("Conv", w.axes, class_name)[0] ? strcat(class_name, "Transpose") : "", config, x,
                NULL, value->weight ? value->weight : "", mix_import_share_key(in, 1), bias ? 2 : 1, weights)
          : NULL;
  if (!weights[0]) json_decref(config);
  mix_tensor *y = result ? mix_list_get(result, 0) : NULL;
  json_t *key = json_array();
  bool cuts = false;
  for (int i = 0; i < 2; i++)
    mix_json_append(
        key, MIX_PACK("{s:s,s:{s:n,s:n,s:n}}", "class_name", "__slice__", "config", "start", "stop", "step"));
  for (int i = 0; i < w.axes && y; i++) {
    const int64_t size = mix_tensor_shape(x).dims[i + 2], reach = w.dilation[i] * (w.size[i] - 1) + 1;
    const int64_t whole = mix_tensor_shape(y).dims[i + 2],
                  end = (size - 1) * w.stride[i] + reach + more[i] - w.pads[i][1];
    if (size < 0 || whole < 0 || end > whole || end <= w.pads[i][0]) {
      json_decref(key);
      return mix_import_fail(in, MIX_UNSUPPORTED,
                             "its output_padding is more than its pads, or a size is unknown");
    }
    cuts = cuts || w.pads[i][0] || end != whole;
    mix_json_append(key, MIX_PACK("{s:s,s:{s:I,s:I,s:n}}", "class_name", "__slice__", "config", "start",
                                  (json_int_t)w.pads[i][0], "stop", (json_int_t)end, "step"));
  }
  if (y && cuts) {
    result = mix_import_run(in, "GetItem", 1, &y, NULL, MIX_PACK("[o]", key));
    return result && mix_import_bind(in, 0, mix_list_get(result, 0));
  }
  json_decref(key);
  return mix_import_bind(in, 0, y);
}

/* ---- pooling ---- */

/* The windows that begin inside what is padded, of which ceil_mode counts one more where a rest is left. */
static bool add_rest(mix_import *in, const mix_tensor *x, window *w) {
  for (int i = 0; i < w->axes; i++) {
    const int64_t size = mix_tensor_shape(x).dims[i + 2],
                  whole = size + w->pads[i][0] + w->pads[i][1] - w->size[i];
    if (size < 0) return mix_import_fail(in, MIX_UNSUPPORTED, "ceil_mode with an unknown size");
    const int64_t rest = whole % w->stride[i], windows = whole / w->stride[i] + 1;
    if (rest && windows * w->stride[i] < size + w->pads[i][0]) w->pads[i][1] += w->stride[i] - rest;
  }
  return true;
}

/* Elements of each window that are data: (1, 1, ...), how many times fewer than a window has. */
static mix_tensor *coverage(mix_import *in, const mix_tensor *x, const window *w) {
  mix_shape shape = mix_tensor_shape(x), before = {.rank = shape.rank}, after = before;
  shape.dims[0] = shape.dims[1] = 1;
  for (int i = 0; i < w->axes; i++) {
    if (shape.dims[i + 2] < 0)
      return mix_import_fail(in, MIX_UNSUPPORTED, "pads that are not counted, with an unknown size");
    before.dims[i + 2] = w->pads[i][0];
    after.dims[i + 2] = w->pads[i][1];
  }
  mix_tensor *ones =
      mix_import_evaluated(in, mix_pad(mix_fill(shape, 1, mix_tensor_dtype(x)), before, after, 0));
  json_t *config =
      MIX_PACK("{s:o,s:o,s:s,s:s}", "pool_size", mix_import_list(w->axes, w->size), "strides",
               mix_import_list(w->axes, w->stride), "padding", "valid", "data_format", "channels_first");
  mix_tensor *part = ones ? mix_import_apply(in, "AveragePool", ones, config) : NULL;
  if (!ones) json_decref(config);
  return part ? mix_import_apply(in, "Reciprocal", part, NULL) : NULL;
}

bool mix_import_pool(mix_import *in) {
  char class_name[32];
  window w = {0};
  const bool max = !strcmp(in->node->op, "MaxPool");
  mix_tensor *x = mix_import_operand(in, 0), *scale = NULL;
  if (!x || !read_window(in, x, &w)) return false;
  if (mix_import_is_used(in, 1)) return mix_import_fail(in, MIX_UNSUPPORTED, "its indices are used");
  for (int i = 0; i < w.axes; i++)
    if (w.dilation[i] != 1) return mix_import_fail(in, MIX_UNSUPPORTED, "dilations other than 1");
  const bool counted = mix_onnx_integer(in->node, "count_include_pad", 0) != 0,
             rounds = mix_onnx_integer(in->node, "ceil_mode", 0) != 0;
  window plain = w;
  if (rounds && !add_rest(in, x, &w)) return false;
  if (!max && counted && (w.same || memcmp(plain.pads, w.pads, sizeof w.pads)))
    return mix_import_fail(in, MIX_UNSUPPORTED, "%s and count_include_pad together",
                           w.same ? "auto_pad" : "ceil_mode");
  if (!max && !counted && pads_any(&w) && !(scale = coverage(in, x, &w))) return false;
  const char *dtype = mix_dtype_name(mix_tensor_dtype(x));
  if (!w.same && pads_any(&w) && !(x = padded(in, x, &w, max ? -mix_dtype_max(mix_tensor_dtype(x)) : 0)))
    return false;
  mix_list *result =
      mix_import_call_layer(in, class_of(max ? "MaxPooling" : "AveragePooling", w.axes, class_name),
                            window_config(&w, "pool_size", dtype), x, NULL, "", NULL, 0, NULL);
  mix_tensor *y = result ? mix_list_get(result, 0) : NULL;
  return mix_import_bind(in, 0, y && scale ? mix_import_apply_two(in, "Multiply", y, scale) : y);
}

bool mix_import_global_pool(mix_import *in) {
  mix_tensor *x = mix_import_operand(in, 0);
  if (!x) return false;
  json_t *axes = json_array();
  for (int i = 2; i < mix_tensor_shape(x).rank; i++) mix_json_append(axes, json_integer(i));
  const char *name = !strcmp(in->node->op, "GlobalMaxPool") ? "Amax" : "Mean";
  return mix_import_bind(in, 0,
                         mix_import_apply(in, name, x, MIX_PACK("{s:o,s:b}", "axis", axes, "keepdims", 1)));
}

/* Twice, three times, ... the size, by the nearest pixel or as half pixels lie between. */
bool mix_import_resize(mix_import *in) {
  double numbers[MIX_MAX_RANK];
  int64_t factors[2], sizes[MIX_MAX_RANK];
  mix_tensor *x = mix_import_operand(in, 0);
  if (!x) return false;
  const mix_shape shape = mix_tensor_shape(x);
  /* The first Resize was as Upsample. */
  const bool upsample = !strcmp(in->node->op, "Upsample") || in->file->opset < 11;
  mix_import_value *scales = mix_import_input(in, upsample ? 1 : 2);
  if (shape.rank != 4)
    return mix_import_fail(in, MIX_UNSUPPORTED, "an input of rank %d; expected 4", shape.rank);
  if (mix_import_input(in, 3)) {
    if (mix_import_integers(in, 3, 4, sizes) != 4)
      return mix_import_fail(in, MIX_UNSUPPORTED, "its sizes are not four");
    for (int i = 0; i < 4; i++) numbers[i] = i < 2 ? 1 : (double)sizes[i] / (double)shape.dims[i];
  } else {
    mix_tensor *value = scales ? mix_import_constant(in, scales) : NULL;
    if (!value || mix_shape_size(mix_tensor_shape(value)) != 4 ||
        mix_tensor_read(value, MIX_FLOAT64, numbers, 4))
      return mix_import_fail(in, MIX_UNSUPPORTED, "its scales are not four constants");
  }
  for (int i = 0; i < 2; i++) {
    if (!(numbers[i + 2] >= 1 && numbers[i + 2] <= 1024))
      return mix_import_fail(in, MIX_UNSUPPORTED, "a scale of %g; expected 1, 2, ...", numbers[i + 2]);
    factors[i] = (int64_t)numbers[i + 2];
    if ((double)factors[i] != numbers[i + 2] || numbers[i] != 1)
      return mix_import_fail(in, MIX_UNSUPPORTED, "a scale of %g; expected 1, 2, ...", numbers[i + 2]);
  }
  const char *mode = mix_onnx_string(in->node, "mode", "nearest"),
             *place = mix_onnx_string(in->node, "coordinate_transformation_mode",
                                      upsample ? "asymmetric" : "half_pixel");
  const bool linear = !strcmp(mode, "linear"),
             half = !strcmp(place, "half_pixel") || !strcmp(place, "pytorch_half_pixel");
  /* The nearest pixel of whole factors is the same by all of these rules. */
  const char *rounds = mix_onnx_string(in->node, "nearest_mode", "round_prefer_floor");
  const bool nearest =
      !strcmp(mode, "nearest") && ((half && !strncmp(rounds, "round_", 6)) ||
                                   (!strcmp(place, "asymmetric") && (upsample || !strcmp(rounds, "floor"))));
  if (!nearest && !(linear && half))
    return mix_import_fail(in, MIX_UNSUPPORTED,
                           "mode %s with %s; expected nearest, or linear with half_pixel", mode, place);
  json_t *config = MIX_PACK("{s:o,s:s,s:s,s:s}", "size", mix_import_list(2, factors), "interpolation",
                            linear ? "bilinear" : "nearest", "data_format", "channels_first", "dtype",
                            mix_dtype_name(mix_tensor_dtype(x)));
  mix_list *result = mix_import_call_layer(in, "UpSampling2D", config, x, NULL, "", NULL, 0, NULL);
  return result && mix_import_bind(in, 0, mix_list_get(result, 0));
}
