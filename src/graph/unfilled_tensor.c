#include "graph/unfilled_tensor.h"

#include "base/error.h"
#include "graph/node.h"
#include "tensor/shape.h"

mix_buffer *mix_buffer_reuse(mix_buffer **buffer, size_t bytes) {
  if (*buffer && mix_references(*buffer) == 1 && (*buffer)->bytes >= bytes) return *buffer;
  mix_release(*buffer);
  return *buffer = mix_buffer_new(bytes);
}

mix_tensor *mix_tensor_of_buffer(mix_buffer *buffer, mix_dtype dtype, mix_shape shape) {
  mix_node *node = mix_node_constant(buffer, dtype, shape);
  if (!node) return NULL;
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  return tensor;
}

mix_tensor *mix_tensor_unfilled(mix_dtype dtype, mix_shape shape, void **data) {
  mix_buffer *buffer = mix_buffer_new(mix_value_bytes(dtype, shape));
  if (!buffer) return NULL;
  *data = buffer->data;
  mix_tensor *tensor = mix_tensor_of_buffer(buffer, dtype, shape);
  mix_release(buffer);
  return tensor;
}
