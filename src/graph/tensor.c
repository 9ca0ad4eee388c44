/* Tensors: creation from memory, properties, and text. */
#include "base/error.h"
#include "base/float_modes.h"
#include "graph/lock.h"
#include "graph/node.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <stdio.h>

static bool shape_valid(const char *call, mix_dtype dtype, mix_shape shape) {
  if (!mix_dtype_size(dtype))
    return mix_fail_type("%s: no tensor can have dtype %s", call, mix_dtype_name(dtype));
  if (shape.rank < 0 || shape.rank > MIX_MAX_RANK)
    return mix_fail_value("%s: rank %d; expected 0 to %d", call, shape.rank, MIX_MAX_RANK);
  if (mix_shape_checked_size(shape) < 0)
    return mix_fail_value(
        "%s: shape %s is negative, unknown or too large; expected dimensions of 0 or more, and fewer than "
        "2^60 elements",
        call, MIX_SHAPE_TEXT(shape));
  return true;
}

bool mix_tensor_check_array(const char *call, const void *data, mix_dtype dtype, mix_shape shape) {
  if (mix_failed() || !shape_valid(call, dtype, shape)) return false;
  return data || mix_shape_size(shape) == 0 || mix_fail_type("%s: data is NULL", call);
}

/* Consumes the caller's reference to the buffer. */
static mix_tensor *constant_tensor(mix_memory *buffer, mix_dtype dtype, mix_shape shape) {
  mix_node *node = buffer ? mix_node_constant(buffer, dtype, shape) : NULL;
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  mix_release(buffer);
  return tensor;
}

mix_tensor *mix_tensor_from(const void *data, mix_dtype dtype, mix_shape shape) {
  if (!mix_tensor_check_array("tensor_from", data, dtype, shape)) return NULL;
  mix_memory *buffer = mix_memory_new(&mix_host_memory, mix_value_bytes(dtype, shape));
  if (buffer && data && !mix_memory_copy_in(buffer, 0, data, mix_memory_bytes(buffer)))
    return mix_release(buffer), NULL;
  return constant_tensor(buffer, dtype, shape);
}

static mix_tensor *from_doubles(const char *call, const double *data, mix_dtype dtype, mix_shape shape) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_tensor_check_array(call, data, dtype, shape)) return NULL;
  mix_memory *buffer = mix_memory_new(&mix_host_memory, mix_value_bytes(dtype, shape));
  void *bytes = buffer ? mix_memory_map(buffer, MIX_MAP_WRITE) : NULL;
  if (bytes) mix_convert(data, MIX_FLOAT64, bytes, dtype, mix_shape_size(shape));
  if (bytes) mix_memory_unmap(buffer);
  return constant_tensor(buffer, dtype, shape);
}

mix_tensor *mix_tensor_from_doubles(const double *data, mix_dtype dtype, mix_shape shape) {
  return from_doubles("tensor_from_doubles", data, dtype, shape);
}

mix_tensor *mix_scalar(double value, mix_dtype dtype) {
  return from_doubles("scalar", &value, dtype, (mix_shape){.rank = 0});
}

mix_tensor *mix_tensor_wrap(void *data, mix_dtype dtype, mix_shape shape, void (*release)(void *data)) {
  if (!mix_tensor_check_array("tensor_wrap", data, dtype, shape)) return NULL;
  mix_memory *buffer = mix_memory_wrap(data, mix_value_bytes(dtype, shape), NULL);
  mix_tensor *tensor = constant_tensor(buffer, dtype, shape);
  /* Set last: if the call fails, the caller still owns the memory. */
  if (tensor && release) mix_memory_own_wrapped(buffer, release);
  return tensor;
}

mix_dtype mix_tensor_dtype(const mix_tensor *tensor) {
  return mix_is(tensor, &mix_tensor_class) ? mix_tensor_value(tensor)->dtype : MIX_DTYPE_NONE;
}
mix_shape mix_tensor_shape(const mix_tensor *tensor) {
  return mix_is(tensor, &mix_tensor_class) ? mix_tensor_value(tensor)->shape : (mix_shape){.rank = 0};
}
bool mix_tensor_is_symbolic(const mix_tensor *tensor) {
  return mix_is(tensor, &mix_tensor_class) && tensor->node->symbolic;
}

/* Appends the first elements of a finished value, and the end of the text. */
static void put_elements(const mix_value *value, const void *data, char *text, size_t size, size_t at) {
  int64_t count = mix_shape_size(value->shape);
  for (int64_t i = 0; i < count && i < 8 && at < size; i++) {
    int used = mix_dtype_is_floating(value->dtype)
                   ? snprintf(text + at, size - at, "%s%.9g", i ? ", " : " [",
                              mix_load_double(data, value->dtype, i))
                   : snprintf(text + at, size - at, "%s%lld", i ? ", " : " [",
                              (long long)mix_load_integer(data, value->dtype, i));
    if (used > 0) at += (size_t)used;
  }
  if (at < size) snprintf(text + at, size - at, "%s%s>", count > 8 ? ", ..." : "", count ? "]" : "");
}

const char *mix_tensor_text(const mix_tensor *tensor, char *text, size_t size) {
  if (!text || !size) return "";
  if (!mix_is(tensor, &mix_tensor_class)) return snprintf(text, size, "<no tensor>"), text;
  const mix_value *value = mix_tensor_value(tensor);
  int used =
      snprintf(text, size, "<tensor %s %s", mix_dtype_name(value->dtype), MIX_SHAPE_TEXT(value->shape));
  size_t at = used < 0 ? 0 : (size_t)used;
  mix_graph_lock();
  const void *data = value->memory ? mix_memory_map(value->memory, MIX_MAP_READ) : NULL;
  if (data)
    put_elements(value, data, text, size, at);
  else if (at < size)
    snprintf(text + at, size - at, " = %s, %s>", tensor->node->op->name,
             tensor->node->symbolic ? "symbolic" : "not computed");
  if (data) mix_memory_unmap(value->memory);
  mix_graph_unlock();
  return text;
}
