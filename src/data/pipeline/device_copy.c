/* Copies of data in the memory of the device in force. */
#include "data/pipeline/device_copy.h"

#include "backend/backend.h"
#include "base/error.h"
#include "base/structure.h"
#include "graph/node.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"

bool mix_device_copies(void) { return mix_backend_current()->memory != &mix_host_memory; }

static mix_tensor *copy_of(mix_tensor *tensor) {
  const mix_dtype dtype = mix_tensor_dtype(tensor);
  const mix_shape shape = mix_tensor_shape(tensor);
  mix_memory *memory = mix_memory_new(mix_backend_current()->memory, mix_value_bytes(dtype, shape));
  mix_tensor *copy = NULL;
  if (memory && mix_memory_copy(memory, mix_tensor_value(tensor)->memory))
    copy = mix_tensor_of_memory(memory, dtype, shape);
  mix_release(memory);
  return copy;
}

mix_list *mix_device_copy(mix_list *tensors) {
  mix_list *copies = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(tensors) && !mix_failed(); i++) {
    mix_tensor *tensor = mix_list_get(tensors, i), *copy = NULL;
    for (int k = 0; k < i && !copy; k++)
      if (mix_list_get(tensors, k) == tensor) copy = mix_list_get(copies, k);
    mix_list_append(copies, copy || !tensor ? copy : copy_of(tensor));
  }
  if (mix_failed()) return NULL;
  mix_list_set_structure(copies, mix_list_structure(tensors));
  return copies;
}
