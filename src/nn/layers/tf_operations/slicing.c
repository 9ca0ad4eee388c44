/* x[...] with numbers, slices, new axes and an ellipsis. */
#include "nn/layers/tf_operations/operation.h"

#include "base/error.h"
#include "base/json.h"
#include "tensor/shape.h"
#include <string.h>

/* An x[...] on its way. */
typedef struct indexing {
  const mix_tf_operation_call *call;
  const json_t *items; /* a list, or one item */
  mix_shape shape;     /* of x */
  int axis;            /* the next of x */
  mix_shape begin, size;
  int64_t starts[MIX_MAX_RANK], steps[MIX_MAX_RANK],
      counts[MIX_MAX_RANK]; /* of axes with another step than 1 */
  mix_axes dropped;
  int rank;                      /* of the result */
  bool is_new[2 * MIX_MAX_RANK]; /* axes of the result */
} indexing;

static bool is_ellipsis(const json_t *item) {
  const char *text = json_string_value(item);
  return (text && !strcmp(text, "Ellipsis")) || mix_json_is_class(item, "__ellipsis__");
}

static bool is_slice(const json_t *item) {
  return json_object_get(item, "start") || json_object_get(item, "stop") || json_object_get(item, "step");
}

static void *refused(const indexing *x) {
  return mix_tf_operation_mistyped(x->call, "slice_spec", "integers, slices, null and one ellipsis");
}

static bool outside(const indexing *x, int64_t index) {
  mix_fail(MIX_VALUE_ERROR, "tf.__operators__.getitem in layer '%s': %lld is outside axis %d of size %lld",
           x->call->layer->name, (long long)index, x->axis, (long long)x->shape.dims[x->axis]);
  return false;
}

static bool of_unknown_size(const indexing *x) {
  mix_fail(MIX_UNSUPPORTED,
           "tf.__operators__.getitem in layer '%s': axis %d has an unknown size; supported on it is [:]",
           x->call->layer->name, x->axis);
  return false;
}

static bool take_slice(indexing *x, const json_t *value) {
  const int axis = x->axis;
  const int64_t size = x->shape.dims[axis];
  mix_json_slice slice;
  if (!mix_json_slice_read(value, &slice)) return refused(x);
  if (size == MIX_UNKNOWN) {
    const bool from_0 = !slice.start || !json_integer_value(slice.start);
    return (slice.step == 1 && from_0 && !slice.stop) || of_unknown_size(x);
  }
  int64_t begin;
  const int64_t count = mix_json_slice_range(&slice, size, &begin);
  if (slice.step == 1) {
    x->begin.dims[axis] = count ? begin : 0;
    x->size.dims[axis] = count;
    return true;
  }
  x->starts[axis] = begin;
  x->steps[axis] = slice.step;
  x->counts[axis] = count;
  return true;
}

static bool take_index(indexing *x, int64_t index) {
  const int64_t size = x->shape.dims[x->axis];
  if (size == MIX_UNKNOWN) return of_unknown_size(x);
  if (index < -size || index >= size) return outside(x, index);
  x->begin.dims[x->axis] = index < 0 ? index + size : index;
  x->size.dims[x->axis] = 1;
  x->dropped.axis[x->dropped.count++] = x->axis;
  return true;
}

static bool add_axis(indexing *x, bool is_new) {
  if (x->rank == 2 * MIX_MAX_RANK) return refused(x);
  x->is_new[x->rank++] = is_new;
  return true;
}

/* `further`: items behind it that take an axis. */
static bool take_item(indexing *x, const json_t *item, int further) {
  if (json_is_null(item)) return add_axis(x, true);
  if (is_ellipsis(item)) {
    for (; x->axis < x->shape.rank - further; x->axis++)
      if (!add_axis(x, false)) return false;
    return true;
  }
  const bool slice = is_slice(item);
  if ((!slice && !json_is_integer(item)) || x->axis >= x->shape.rank) return refused(x);
  const bool good =
      slice ? take_slice(x, item) && add_axis(x, false) : take_index(x, json_integer_value(item));
  x->axis++;
  return good;
}

static int axes_of(const json_t *items, size_t from) {
  int count = 0;
  for (size_t i = from; i < json_array_size(items); i++) {
    const json_t *item = json_array_get(items, i);
    count += !json_is_null(item) && !is_ellipsis(item);
  }
  return count;
}

static bool take_items(indexing *x) {
  if (!json_is_array(x->items) && !take_item(x, x->items, 0)) return false;
  bool ellipsis = false;
  for (size_t i = 0; i < json_array_size(x->items); i++) {
    const json_t *item = json_array_get(x->items, i);
    if (is_ellipsis(item) && ellipsis) return refused(x);
    ellipsis |= is_ellipsis(item);
    if (!take_item(x, item, axes_of(x->items, i + 1))) return false;
  }
  for (; x->axis < x->shape.rank; x->axis++)
    if (!add_axis(x, false)) return false;
  return true;
}

static mix_tensor *apply(const indexing *x, mix_tensor *tensor) {
  for (int i = 0; tensor && i < x->shape.rank; i++)
    if (x->steps[i]) tensor = mix_layer_range(tensor, i, x->starts[i], x->counts[i], x->steps[i]);
  tensor = tensor ? mix_slice(tensor, x->begin, x->size) : NULL;
  if (tensor && x->dropped.count) tensor = mix_squeeze(tensor, x->dropped);
  for (int i = 0; tensor && i < x->rank; i++)
    if (x->is_new[i]) tensor = mix_expand_dims(tensor, i);
  return tensor;
}

mix_list *mix_tf_operation_getitem(const mix_tf_operation_call *call) {
  mix_tensor *tensor = mix_tf_operation_tensor(call, "tensor", NULL);
  if (!tensor) return NULL;
  indexing x = {.call = call, .shape = mix_tensor_shape(tensor)};
  for (int i = 0; i < call->count; i++)
    if (!strcmp(call->names[i], "slice_spec")) x.items = json_array_get(call->values, (size_t)i);
  x.begin = x.size = (mix_shape){.rank = x.shape.rank};
  for (int i = 0; i < x.shape.rank; i++) x.size.dims[i] = -1;
  return take_items(&x) ? mix_one_result(apply(&x, tensor)) : NULL;
}
