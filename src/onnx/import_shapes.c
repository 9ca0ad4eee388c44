/* Operators of ONNX that change shapes, and take or join parts. */
#include "onnx/import.h"

#include "base/error.h"
#include "base/fields.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* What movement of data leaves a weight is one, so that nodes may turn it around before its use. */
static bool bind_moved(mix_import *in, int index, mix_tensor *x) {
  const mix_import_value *value = mix_import_input(in, 0);
  const bool moved = value && value->weight && x && !mix_tensor_is_symbolic(x);
  return x && mix_import_bind_value(in, index,
                                    (mix_import_value){.tensor = x, .weight = moved ? value->weight : NULL});
}

static int rank_of(const mix_tensor *x) { return mix_tensor_shape(x).rank; }

bool mix_import_constant_op(mix_import *in) {
  const mix_onnx_attribute *a = in->node->attribute_count ? &in->node->attributes[0] : NULL;
  mix_tensor *value = NULL;
  if (!a) return mix_import_fail(in, MIX_FORMAT_ERROR, "it has no value");
  if (!strcmp(a->name, "value") && a->tensor)
    value = mix_onnx_tensor_value(in->file, a->tensor);
  else if (!strcmp(a->name, "value_float"))
    value = mix_scalar(a->f, MIX_FLOAT32);
  else if (!strcmp(a->name, "value_int"))
    value = mix_tensor_from(&a->i, MIX_INT64, MIX_SCALAR);
  else if (!strcmp(a->name, "value_ints") && a->ints)
    value = mix_tensor_from(a->ints, MIX_INT64, MIX_SHAPE(a->count));
  else if (!strcmp(a->name, "value_floats") && a->floats)
    value = mix_tensor_from(a->floats, MIX_FLOAT32, MIX_SHAPE(a->count));
  else
    mix_import_fail(in, MIX_UNSUPPORTED, "its value is %.60s; expected numbers", a->name);
  return mix_import_bind(in, 0, value);
}

/* ---- shapes ---- */

/* Gives the dimension -1 its number where what is known tells it; else it stays. */
static void resolve(mix_shape from, int count, mix_import_size *sizes) {
  int64_t rest = 1, whole = 1;
  int unknown = 0, open = 0, at = -1;
  for (int i = 0; i < from.rank; i++) {
    if (from.dims[i] == MIX_UNKNOWN)
      unknown++;
    else if (__builtin_mul_overflow(whole, from.dims[i], &whole))
      return;
  }
  for (int i = 0; i < count; i++) {
    const bool inferred = !sizes[i].open && sizes[i].value == -1;
    open += sizes[i].open;
    if (inferred)
      at = i;
    else if (__builtin_mul_overflow(rest, sizes[i].value, &rest))
      return;
  }
  if (at >= 0 && open == unknown && rest > 0 && whole % rest == 0) sizes[at].value = whole / rest;
}

static mix_tensor *kept_batch(mix_import *in, mix_tensor *x, int count, const int64_t *shape) {
  json_t *config = MIX_PACK("{s:o,s:s}", "target_shape", mix_import_list(count - 1, shape + 1), "dtype",
                            mix_dtype_name(mix_tensor_dtype(x)));
  mix_list *result = mix_import_call_layer(in, "Reshape", config, x, NULL, "", NULL, 0, NULL);
  return result ? mix_list_get(result, 0) : NULL;
}

bool mix_import_reshape(mix_import *in) {
  mix_import_size sizes[MIX_MAX_RANK];
  int64_t shape[MIX_MAX_RANK];
  mix_import_value *value = mix_import_input(in, 0), *target = mix_import_input(in, 1);
  if (!value || !target) return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks an input");
  mix_tensor *x = mix_import_is_constant(value) && !value->shared ? mix_import_constant(in, value)
                                                                  : mix_import_operand(in, 0);
  const int count = x ? mix_import_sizes(in, target, MIX_MAX_RANK, sizes) : -1;
  if (count < 0) return false;
  const mix_shape from = mix_tensor_shape(x);
  const bool keeps = !mix_onnx_integer(in->node, "allowzero", 0);
  for (int i = 0; i < count; i++) {
    if (sizes[i].open || sizes[i].value || !keeps) continue;
    if (i >= from.rank)
      return mix_import_fail(in, MIX_FORMAT_ERROR, "size %d is 0, and the input has %d axes", i, from.rank);
    const bool open = from.dims[i] == MIX_UNKNOWN;
    sizes[i] = (mix_import_size){open ? 1 : from.dims[i], open, open ? x : NULL, i};
  }
  resolve(from, count, sizes);
  int unknown = 0;
  for (int i = 0; i < count; i++) {
    shape[i] = sizes[i].open ? -1 : sizes[i].value;
    unknown += shape[i] == -1;
  }
  if (unknown == 2 && shape[0] == -1 && from.rank && from.dims[0] == MIX_UNKNOWN && sizes[0].open &&
      sizes[0].value == 1)
    return mix_import_bind(in, 0, kept_batch(in, x, count, shape));
  if (unknown > 1)
    return mix_import_fail(
        in, MIX_UNSUPPORTED,
        "%d sizes of the new shape are unknown; expected one, as in a file exported with a "
        "fixed sequence length",
        unknown);
  return bind_moved(
      in, 0,
      mix_import_apply(in, "Reshape", x, MIX_PACK("{s:o}", "newshape", mix_import_list(count, shape))));
}

bool mix_import_flatten(mix_import *in) {
  mix_tensor *x = mix_import_operand(in, 0);
  if (!x) return false;
  const mix_shape from = mix_tensor_shape(x);
  int64_t axis = mix_onnx_integer(in->node, "axis", 1), shape[2] = {1, 1};
  if (axis < 0) axis += from.rank;
  if (axis < 0 || axis > from.rank)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "axis %lld of rank %d", (long long)axis, from.rank);
  for (int i = 0; i < from.rank; i++) {
    int64_t *size = &shape[i >= axis];
    if (*size == -1 || from.dims[i] == MIX_UNKNOWN)
      *size = -1;
    else if (__builtin_mul_overflow(*size, from.dims[i], size))
      return mix_import_fail(in, MIX_FORMAT_ERROR, "too many elements");
  }
  if (shape[0] == -1 && shape[1] == -1) return mix_import_fail(in, MIX_UNSUPPORTED, "two unknown sizes");
  return bind_moved(
      in, 0, mix_import_apply(in, "Reshape", x, MIX_PACK("{s:o}", "newshape", mix_import_list(2, shape))));
}

/* The operand of data movement: a constant stays one. */
static mix_tensor *moved_operand(mix_import *in) {
  mix_import_value *value = mix_import_input(in, 0);
  return value && mix_import_is_constant(value) && !value->shared ? mix_import_constant(in, value)
                                                                  : mix_import_operand(in, 0);
}

bool mix_import_squeeze(mix_import *in) {
  int64_t axes[MIX_MAX_RANK];
  mix_tensor *x = moved_operand(in);
  const int count = x ? mix_import_integers_of(in, "axes", 1, MIX_MAX_RANK, axes) : -1;
  if (count < 0) return false;
  json_t *config = MIX_PACK("{s:o}", "axis", count ? mix_import_list(count, axes) : json_null());
  return bind_moved(in, 0, mix_import_apply(in, "Squeeze", x, config));
}

bool mix_import_unsqueeze(mix_import *in) {
  int64_t axes[MIX_MAX_RANK];
  mix_tensor *x = moved_operand(in);
  const int count = x ? mix_import_integers_of(in, "axes", 1, MIX_MAX_RANK, axes) : -1;
  if (count < 0) return false;
  return bind_moved(
      in, 0, mix_import_apply(in, "ExpandDims", x, MIX_PACK("{s:o}", "axis", mix_import_list(count, axes))));
}

bool mix_import_transpose(mix_import *in) {
  mix_tensor *x = moved_operand(in);
  const mix_onnx_attribute *order = mix_onnx_find(in->node, "perm");
  int64_t axes[MIX_MAX_RANK];
  if (!x) return false;
  const int rank = rank_of(x);
  if (order && (order->count != rank || !order->ints))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "perm has %d axes of %d", order->ints ? order->count : 0,
                           rank);
  for (int i = 0; i < rank; i++) axes[i] = order ? order->ints[i] : rank - 1 - i;
  return bind_moved(
      in, 0, mix_import_apply(in, "Transpose", x, MIX_PACK("{s:o}", "axes", mix_import_list(rank, axes))));
}

/* ---- joining and splitting ---- */

bool mix_import_concat(mix_import *in) {
  enum { MOST = 1024 };
  mix_tensor *parts[MOST];
  const int count = in->node->input_count;
  if (count < 1 || count > MOST)
    return mix_import_fail(in, MIX_UNSUPPORTED, "%d inputs; expected up to %d", count, (int)MOST);
  for (int i = 0; i < count; i++)
    if (!(parts[i] = mix_import_operand(in, i))) return false;
  const int axis = mix_import_axis(in, mix_onnx_integer(in->node, "axis", 0), rank_of(parts[0]));
  if (axis < 0) return false;
  return bind_moved(in, 0,
                    mix_import_run_one(in, "Concatenate", count, parts, MIX_PACK("{s:i}", "axis", axis)));
}

bool mix_import_split(mix_import *in) {
  enum { MOST = 1024 };
  int64_t sizes[MOST];
  mix_tensor *x = moved_operand(in);
  const int axis = x ? mix_import_axis(in, mix_onnx_integer(in->node, "axis", 0), rank_of(x)) : -1;
  if (axis < 0) return false;
  const int64_t whole = mix_tensor_shape(x).dims[axis];
  int count = mix_import_integers_of(in, "split", 1, MOST, sizes);
  if (count < 0) return false;
  if (!count) {
    const int64_t parts = mix_onnx_integer(in->node, "num_outputs", in->node->output_count);
    if (parts < 1 || parts > MOST || whole < 0)
      return mix_import_fail(in, MIX_UNSUPPORTED, "axis %d of size %lld in %lld parts", axis,
                             (long long)whole, (long long)parts);
    const int64_t size = whole / parts + (whole % parts != 0);
    for (count = 0; count < parts; count++)
      sizes[count] = count < parts - 1 ? size : whole - size * (parts - 1);
  }
  int64_t sum = 0;
  for (int i = 0; i < count; i++)
    if (sizes[i] < 0 || __builtin_add_overflow(sum, sizes[i], &sum))
      return mix_import_fail(in, MIX_FORMAT_ERROR, "part %d has size %lld", i, (long long)sizes[i]);
  if (whole >= 0 && sum != whole)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "parts of %lld in all, of an axis of size %lld",
                           (long long)sum, (long long)whole);
  if (count < in->node->output_count)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%d parts and %d outputs", count, in->node->output_count);
  for (int i = 1; i < count; i++) sizes[i] += sizes[i - 1];
  json_t *config =
      MIX_PACK("{s:o,s:i}", "indices_or_sections", mix_import_list(count - 1, sizes), "axis", axis);
  if (count == 1) {
    json_decref(config);
    return mix_import_identity(in);
  }
  mix_list *parts = mix_import_run(in, "Split", 1, &x, config, NULL);
  for (int i = 0; i < in->node->output_count && parts; i++)
    if (!bind_moved(in, i, mix_list_get(parts, i))) return false;
  return parts != NULL;
}

/* ---- parts ---- */

static json_t *bound(int64_t value, int64_t step, bool end) {
  const bool whole = end && (step > 0 ? value >= INT32_MAX : value <= -INT32_MAX);
  const bool from_last = !end && step < 0 && value >= INT32_MAX;
  return whole || from_last ? json_null() : json_integer(value);
}

/* x[:n] of an axis, where a call alone knows n. */
static bool slice_to_size(mix_import *in, mix_tensor *x, const mix_import_size *size, int64_t start,
                          int64_t axis) {
  if (start)
    return mix_import_fail(in, MIX_UNSUPPORTED, "a slice from %lld to an unknown size; expected one from 0",
                           (long long)start);
  const int place = mix_import_axis(in, axis, rank_of(x));
  mix_tensor *ones = place < 0 ? NULL : mix_import_ones(in, size, MIX_INT64);
  mix_tensor *ends = ones ? mix_import_apply(in, "Cumsum", ones, MIX_PACK("{s:i}", "axis", 0)) : NULL;
  mix_tensor *indices =
      ends ? mix_import_apply_two(in, "Subtract", ends, mix_import_number_like(ends, 1)) : NULL;
  mix_tensor *pair[] = {x, indices};
  return mix_import_bind(
      in, 0, indices ? mix_import_run_one(in, "Take", 2, pair, MIX_PACK("{s:i}", "axis", place)) : NULL);
}

bool mix_import_slice(mix_import *in) {
  int64_t starts[MIX_MAX_RANK], ends[MIX_MAX_RANK], axes[MIX_MAX_RANK], steps[MIX_MAX_RANK];
  mix_import_size open[MIX_MAX_RANK];
  mix_tensor *x = moved_operand(in);
  const int count = x ? mix_import_integers_of(in, "starts", 1, MIX_MAX_RANK, starts) : -1;
  if (count < 0) return false;
  mix_import_value *limit = mix_onnx_find(in->node, "ends") ? NULL : mix_import_input(in, 2);
  const bool unknown = limit && limit->sizes && !mix_import_is_constant(limit);
  const int end_count = unknown ? mix_import_sizes(in, limit, MIX_MAX_RANK, open)
                                : mix_import_integers_of(in, "ends", 2, MIX_MAX_RANK, ends);
  int axis_count = mix_import_integers_of(in, "axes", 3, MIX_MAX_RANK, axes);
  int step_count = mix_import_input(in, 4) ? mix_import_integers(in, 4, MIX_MAX_RANK, steps) : 0;
  if (axis_count < 0 || step_count < 0 || end_count < 0) return false;
  for (; !mix_import_input(in, 3) && !mix_onnx_find(in->node, "axes") && axis_count < count; axis_count++)
    axes[axis_count] = axis_count;
  for (; !mix_import_input(in, 4) && step_count < count; step_count++) steps[step_count] = 1;
  if (end_count != count || axis_count != count || step_count != count)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%d starts, %d ends, %d axes and %d steps", count, end_count,
                           axis_count, step_count);
  if (unknown && count == 1 && open[0].open && steps[0] == 1) {
    const int place = mix_import_axis(in, axes[0], rank_of(x));
    if (place < 0) return false;
    if (!mix_tensor_is_symbolic(x) || mix_tensor_shape(x).dims[place] != MIX_UNKNOWN)
      return slice_to_size(in, mix_import_operand(in, 0), &open[0], starts[0], axes[0]);
    return mix_import_fail(in, MIX_UNSUPPORTED, "a slice of an unknown size to an unknown size");
  }
  if (unknown) return mix_import_fail(in, MIX_UNSUPPORTED, "ends that are not known");
  const int rank = rank_of(x);
  json_t *key[MIX_MAX_RANK] = {NULL}, *keys = json_array();
  for (int i = 0; i < count && !mix_failed(); i++) {
    const int axis = mix_import_axis(in, axes[i], rank);
    if (axis >= 0 && key[axis]) mix_import_fail(in, MIX_FORMAT_ERROR, "axis %d twice", axis);
    if (axis >= 0 && !mix_failed())
      key[axis] = MIX_PACK("{s:s,s:{s:o,s:o,s:I}}", "class_name", "__slice__", "config", "start",
                           bound(starts[i], steps[i], false), "stop", bound(ends[i], steps[i], true), "step",
                           (json_int_t)steps[i]);
  }
  for (int i = 0; i < rank; i++)
    mix_json_append(keys, key[i] ? key[i]
                                 : MIX_PACK("{s:s,s:{s:n,s:n,s:n}}", "class_name", "__slice__", "config",
                                            "start", "stop", "step"));
  mix_list *result = mix_import_run(in, "GetItem", 1, &x, NULL, MIX_PACK("[o]", keys));
  return result && bind_moved(in, 0, mix_list_get(result, 0));
}

static mix_list *embedded(mix_import *in, mix_tensor *indices) {
  mix_import_value *value = mix_import_input(in, 0);
  mix_tensor *table = mix_import_constant(in, value);
  if (!table) return NULL;
  const mix_shape shape = mix_tensor_shape(table);
  json_t *config = MIX_PACK("{s:I,s:I,s:s}", "input_dim", (json_int_t)shape.dims[0], "output_dim",
                            (json_int_t)shape.dims[1], "dtype", mix_dtype_name(mix_tensor_dtype(table)));
  return mix_import_call_layer(in, "Embedding", config, indices, NULL, value->weight,
                               mix_import_share_key(in, 0), 1, &table);
}

bool mix_import_gather(mix_import *in) {
  mix_import_value *value = mix_import_input(in, 0), *at = mix_import_input(in, 1);
  if (!value || !at) return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks an input");
  const bool constant = mix_import_is_constant(at);
  mix_tensor *indices = constant ? mix_import_constant(in, at) : mix_import_operand(in, 1);
  mix_tensor *x = !indices                                          ? NULL
                  : mix_import_is_constant(value) && !value->shared ? mix_import_constant(in, value)
                                                                    : mix_import_operand(in, 0);
  const int axis = x ? mix_import_axis(in, mix_onnx_integer(in->node, "axis", 0), rank_of(x)) : -1;
  if (axis < 0) return false;
  if (!mix_dtype_is_integer(mix_tensor_dtype(indices)))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "its indices are no integers");
  if (value->weight && !value->shared && !constant && rank_of(x) == 2 && !axis && rank_of(indices)) {
    mix_list *rows = embedded(in, indices);
    return rows && mix_import_bind(in, 0, mix_list_get(rows, 0));
  }
  if (constant && !rank_of(indices)) {
    int64_t index;
    json_t *key = json_array();
    if (mix_tensor_read(indices, MIX_INT64, &index, 1)) return json_decref(key), false;
    for (int i = 0; i < axis; i++)
      mix_json_append(key, MIX_PACK("{s:s,s:{s:n,s:n,s:n}}", "class_name", "__slice__", "config", "start",
                                    "stop", "step"));
    mix_json_append(key, json_integer(index));
    mix_list *result = mix_import_run(in, "GetItem", 1, &x, NULL, MIX_PACK("[o]", key));
    return result && bind_moved(in, 0, mix_list_get(result, 0));
  }
  if (!constant && value->weight) x = mix_import_operand(in, 0);
  mix_tensor *pair[] = {x, indices};
  return bind_moved(in, 0, mix_import_run_one(in, "Take", 2, pair, MIX_PACK("{s:i}", "axis", axis)));
}

bool mix_import_gather_elements(mix_import *in) {
  mix_tensor *pair[] = {mix_import_operand(in, 0), mix_import_operand(in, 1)};
  json_t *config = MIX_PACK("{s:I}", "axis", (json_int_t)mix_onnx_integer(in->node, "axis", 0));
  return mix_import_bind(in, 0, mix_import_run_one(in, "TakeAlongAxis", 2, pair, config));
}

/* ---- more of the same elements ---- */

bool mix_import_tile(mix_import *in) {
  int64_t times[MIX_MAX_RANK];
  mix_tensor *x = mix_import_operand(in, 0);
  const int count = x ? mix_import_integers(in, 1, MIX_MAX_RANK, times) : -1;
  return count >= 0 &&
         mix_import_bind(
             in, 0,
             mix_import_apply(in, "Tile", x, MIX_PACK("{s:o}", "repeats", mix_import_list(count, times))));
}

bool mix_import_pad(mix_import *in) {
  int64_t pads[2 * MIX_MAX_RANK], axes[MIX_MAX_RANK], all[MIX_MAX_RANK][2] = {{0}};
  const char *mode = mix_onnx_string(in->node, "mode", "constant");
  mix_tensor *x = mix_import_operand(in, 0);
  const int count = x ? mix_import_integers_of(in, "pads", 1, 2 * MIX_MAX_RANK, pads) : -1;
  if (count < 0) return false;
  const double number = mix_onnx_find(in->node, "value") ? mix_onnx_number(in->node, "value", 0)
                        : mix_import_input(in, 2)        ? mix_import_scalar(in, 2)
                                                         : 0;
  int axis_count = mix_import_input(in, 3) ? mix_import_integers(in, 3, MIX_MAX_RANK, axes) : 0;
  if (axis_count < 0 || mix_failed()) return false;
  const int rank = rank_of(x);
  for (; !mix_import_input(in, 3) && axis_count < rank; axis_count++) axes[axis_count] = axis_count;
  if (count != 2 * axis_count)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%d pads for %d axes", count, axis_count);
  bool crops = false, pads_any = false;
  for (int i = 0; i < axis_count; i++) {
    const int axis = mix_import_axis(in, axes[i], rank);
    if (axis < 0) return false;
    all[axis][0] = pads[i];
    all[axis][1] = pads[i + axis_count];
    crops = crops || all[axis][0] < 0 || all[axis][1] < 0;
    pads_any = pads_any || all[axis][0] || all[axis][1];
  }
  if (!pads_any) return mix_import_identity(in);
  if (crops || (strcmp(mode, "constant") && strcmp(mode, "reflect")))
    return mix_import_fail(in, MIX_UNSUPPORTED,
                           "mode '%.20s'%s; expected constant or reflect, and pads of 0 or more", mode,
                           crops ? ", with pads below 0" : "");
  json_t *width = json_array();
  for (int i = 0; i < rank; i++) mix_json_append(width, mix_import_list(2, all[i]));
  json_t *further = MIX_PACK("[f]", isfinite(number) ? number
                                    : number > 0     ? 3.4028234663852886e38
                                                     : -3.4028234663852886e38);
  if (strcmp(mode, "constant")) {
    json_decref(further);
    further = NULL;
  }
  mix_list *result =
      mix_import_run(in, "Pad", 1, &x, MIX_PACK("{s:o,s:s}", "pad_width", width, "mode", mode), further);
  return result && mix_import_bind(in, 0, mix_list_get(result, 0));
}

/* The part of a matrix at and above, or below, a diagonal. */
bool mix_import_trilu(mix_import *in) {
  int64_t k = 0;
  if (mix_import_integers(in, 1, 1, &k) < 0) return false;
  const char *name = mix_onnx_integer(in->node, "upper", 1) ? "Triu" : "Tril";
  return mix_import_bind(
      in, 0, mix_import_apply(in, name, moved_operand(in), MIX_PACK("{s:I}", "k", (json_int_t)k)));
}

bool mix_import_blocks(mix_import *in) {
  if (!strcmp(in->node->op, "DepthToSpace") && strcmp(mix_onnx_string(in->node, "mode", "DCR"), "DCR"))
    return mix_import_fail(in, MIX_UNSUPPORTED, "mode is not DCR");
  json_t *config = MIX_PACK("{s:I,s:s}", "block_size", (json_int_t)mix_onnx_integer(in->node, "blocksize", 0),
                            "data_format", "channels_first");
  return mix_import_bind(in, 0, mix_import_apply(in, in->node->op, mix_import_operand(in, 0), config));
}

bool mix_import_einsum(mix_import *in) {
  mix_tensor *pair[2];
  const int count = in->node->input_count;
  if (count < 1 || count > 2)
    return mix_import_fail(in, MIX_UNSUPPORTED, "%d inputs; expected one or two", count);
  for (int i = 0; i < count; i++)
    if (!(pair[i] = mix_import_operand(in, i))) return false;
  json_t *config = MIX_PACK("{s:s}", "subscripts", mix_onnx_string(in->node, "equation", ""));
  return mix_import_bind(in, 0, mix_import_run_one(in, "Einsum", count, pair, config));
}

/* Negative indices count from the end; Keras has no class for them. */
static mix_tensor *from_the_front(mix_import *in, mix_tensor *x, double depth) {
  mix_tensor *three[] = {mix_import_apply_two(in, "Less", x, mix_import_number_like(x, 0)),
                         mix_import_apply_two(in, "Add", x, mix_import_number_like(x, depth)), x};
  return mix_import_run_one(in, "Where", 3, three, NULL);
}

bool mix_import_one_hot(mix_import *in) {
  const double depth = mix_import_scalar(in, 1);
  double values[2];
  mix_import_value *value = mix_import_input(in, 2);
  mix_tensor *pair = value ? mix_import_constant(in, value) : NULL,
             *x = pair ? mix_import_operand(in, 0) : NULL;
  if (!x || mix_failed() || mix_shape_size(mix_tensor_shape(pair)) != 2 ||
      mix_tensor_read(pair, MIX_FLOAT64, values, 2))
    return mix_import_fail(in, MIX_UNSUPPORTED, "its depth or its two values are not constants");
  if (values[0] != 0 || values[1] != 1)
    return mix_import_fail(in, MIX_UNSUPPORTED, "its values are not 0 and 1");
  if (!(depth >= 1 && depth <= 1 << 24))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "its depth is %g", depth);
  json_t *config = MIX_PACK("{s:I,s:I,s:s}", "num_classes", (json_int_t)depth, "axis",
                            (json_int_t)mix_onnx_integer(in->node, "axis", -1), "dtype",
                            mix_dtype_name(mix_tensor_dtype(pair)));
  return mix_import_bind(in, 0, mix_import_apply(in, "OneHot", from_the_front(in, x, depth), config));
}
