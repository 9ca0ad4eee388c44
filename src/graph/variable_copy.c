/* Copies of weights, rounded to 16 bits. */
#include "graph/divided_variable.h"
#include "graph/lock.h"
#include "tensor/convert.h"
#include "tensor/shape.h"

static mix_variable *copy_new(mix_variable *variable, mix_dtype rounded, bool widened) {
  mix_variable *made = mix_object_new(sizeof *made, &mix_variable_class);
  if (!made) return NULL;
  made->name = variable->name;
  made->dtype = widened ? MIX_FLOAT32 : rounded;
  made->rounded = rounded;
  made->shape = variable->shape;
  made->original = variable;
  made->copied_version = variable->version - 1;
  size_t bytes = mix_value_bytes(made->dtype, variable->shape);
  mix_memory *memory = mix_memory_new(&mix_host_memory, bytes);
  made->memory = memory;
  if (memory) return made;
  mix_release(made);
  return NULL;
}

mix_variable *mix_variable_copy(mix_variable *variable, mix_dtype rounded, bool widened) {
  mix_variable **copy = &variable->copies[(rounded == MIX_BFLOAT16) + 2 * widened];
  mix_graph_lock();
  if (!*copy) *copy = copy_new(variable, rounded, widened);
  mix_graph_unlock();
  return *copy;
}

/* The original, or another copy with the same numbers if no whole original is here. */
static const mix_variable *copied_from(const mix_variable *copy) {
  const mix_variable *original = copy->original;
  if (mix_variable_is_here(original)) return original;
  for (int i = 0; i < 4; i++) {
    const mix_variable *other = original->copies[i];
    if (other && other->rounded == copy->rounded && other->copied_version == original->version) return other;
  }
  mix_variable_check_here(original, "function_call");
  return NULL;
}

static bool copy_refresh(mix_variable *copy) {
  const mix_variable *original = copy->original;
  if (copy->copied_version == original->version) return true; /* another thread has done it */
  enum { SOME = 256 };
  const uint64_t version = original->version; /* before the values, which a run may change meanwhile */
  uint16_t numbers[SOME];
  const int64_t count = mix_shape_size(copy->shape);
  const mix_variable *source = copied_from(copy);
  const char *from = source ? mix_memory_map(source->memory, MIX_MAP_READ) : NULL;
  char *to = from ? mix_memory_map(copy->memory, MIX_MAP_WRITE) : NULL;
  for (int64_t i = 0; to && i < count; i += SOME) {
    const int64_t some = count - i < SOME ? count - i : SOME;
    mix_convert(from + i * (int64_t)mix_dtype_size(source->dtype), source->dtype, numbers, copy->rounded,
                some);
    mix_convert(numbers, copy->rounded, to + i * (int64_t)mix_dtype_size(copy->dtype), copy->dtype, some);
  }
  if (to) mix_memory_unmap(copy->memory);
  if (from) mix_memory_unmap(source->memory);
  if (to) copy->copied_version = version;
  return to != NULL;
}

bool mix_variable_refresh(mix_variable *copy) {
  mix_variable *original = copy->original;
  if (!original) return true;
  bool good = true;
  if (copy->copied_version != original->version) {
    mix_graph_lock();
    good = copy_refresh(copy);
    mix_graph_unlock();
  }
  return good && (!mix_variable_has_narrow(original) || mix_variable_drop_whole(original));
}
