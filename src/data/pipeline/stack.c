/* Stacks elements along a new axis 0. */
#include "data/pipeline/stack.h"

#include "base/error.h"
#include "base/structure.h"
#include "compile/evaluate.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"
#include <string.h>

/* Stacks component `index` of the elements. Scoped. */
static mix_tensor *stack(mix_list *const *lists, int count, int index, mix_buffers *buffers,
                         const char *call) {
  char what[256];
  mix_tensor *model = mix_list_get(lists[0], index);
  mix_dtype dtype = mix_tensor_dtype(model);
  mix_shape shape = mix_tensor_shape(model), stacked = {.rank = shape.rank + 1, .dims = {count}};
  if (shape.rank == MIX_MAX_RANK)
    return mix_fail_value("%s: elements have %d dimensions already, and no tensor has more", call,
                          MIX_MAX_RANK);
  memcpy(stacked.dims + 1, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
  size_t bytes = mix_value_bytes(dtype, shape);
  if (mix_shape_checked_size(stacked) < 0) return mix_fail_memory("a batch");
  if (!mix_memory_reuse(&buffers->items[index], mix_value_bytes(dtype, stacked))) return NULL;
  for (int i = 0; i < count; i++) {
    mix_tensor *tensor = mix_list_get(lists[i], index);
    if (mix_tensor_dtype(tensor) != dtype || !mix_shape_equal(mix_tensor_shape(tensor), shape))
      return mix_fail_value("%s: %s of element %d of a batch is %s %s, of its first element %s %s; "
                            "all elements of a batch must be alike",
                            call, mix_leaf_text(mix_list_structure(lists[0]), index, what, sizeof what), i,
                            mix_dtype_name(mix_tensor_dtype(tensor)),
                            MIX_SHAPE_TEXT(mix_tensor_shape(tensor)), mix_dtype_name(dtype),
                            MIX_SHAPE_TEXT(shape));
    mix_pinned pinned;
    if (!mix_tensor_pin(tensor, &pinned)) return NULL;
    bool copied = mix_memory_copy_in(buffers->items[index], (size_t)i * bytes, pinned.data, bytes);
    mix_tensor_unpin(&pinned);
    if (!copied) return NULL;
  }
  return mix_tensor_of_memory(buffers->items[index], dtype, stacked);
}

bool mix_elements_alike(mix_list *const *lists, int count, const char *call) {
  int components = mix_list_count(lists[0]);
  char text[512], other[512];
  for (int i = 1; i < count && !mix_failed(); i++)
    if (mix_list_structure(lists[i]) != mix_list_structure(lists[0]))
      mix_fail_value(
          "%s: element %d of a batch has the structure %s, its first element %s; all elements must be "
          "nested alike",
          call, i, mix_structure_text(lists[i], NULL, NULL, text, sizeof text),
          mix_structure_text(lists[0], NULL, NULL, other, sizeof other));
    else if (mix_list_count(lists[i]) != components)
      mix_fail_value("%s: element %d of a batch has %d tensors, its first element %d", call, i,
                     mix_list_count(lists[i]), components);
  return !mix_failed();
}

mix_list *mix_stack_elements(mix_list *const *lists, int count, mix_buffers *buffers, const char *call) {
  int components = mix_list_count(lists[0]);
  if (!mix_elements_alike(lists, count, call)) return NULL;
  if (components != buffers->count) {
    mix_buffers_clear(buffers);
    if (!mix_buffers_init(buffers, components)) return NULL;
  }
  mix_scope *scope = mix_scope_begin();
  mix_list *list = scope ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; list && i < components; i++) {
    mix_tensor *tensor = stack(lists, count, i, buffers, call);
    if (!tensor || mix_list_append(list, tensor) != MIX_OK) list = NULL;
  }
  mix_list_set_structure(mix_retain(list), mix_list_structure(lists[0]));
  mix_scope_end(scope);
  return list;
}
