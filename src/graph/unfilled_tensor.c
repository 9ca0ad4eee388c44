#include "graph/unfilled_tensor.h"

#include "base/error.h"
#include "graph/node.h"
#include "tensor/shape.h"

mix_tensor *mix_tensor_of_memory(mix_memory *memory, mix_dtype dtype, mix_shape shape) {
  mix_node *node = mix_node_constant(memory, dtype, shape);
  if (!node) return NULL;
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  return tensor;
}

mix_tensor *mix_tensor_unfilled(mix_dtype dtype, mix_shape shape, void **data) {
  mix_memory *memory = mix_memory_new(&mix_host_memory, mix_value_bytes(dtype, shape));
  if (!memory) return NULL;
  *data = mix_memory_map(memory, MIX_MAP_WRITE); /* of the host: stays valid when unmapped */
  mix_memory_unmap(memory);
  mix_tensor *tensor = mix_tensor_of_memory(memory, dtype, shape);
  mix_release(memory);
  return tensor;
}
