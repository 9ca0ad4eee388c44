/* Weights as the tensors that a weight map makes them of: its rules backwards. */
#include "saving/weight_map.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/fields.h"
#include "tensor/shape.h"
#include <mixtape/ops.h>
#include <string.h>

/* One tensor of the file, of one weight or of several that are its parts. */
typedef struct target {
  const char *name, *weight; /* of the first that is in it */
  mix_mapped_weight how;     /* of that */
  mix_tensor **parts;        /* NULL: not seen yet */
} target;

static bool never(const void *context, const char *tensor) { return false; }

/* The weight before its reshape and its transposition. */
static mix_tensor *unmapped(const mix_mapped_weight *how, mix_tensor *value, const char *weight) {
  if (how->reshape && !how->joined_rank)
    return mix_fail_value("'%.200s' is reshaped, and the map says not how many of its axes each axis of "
                          "'%.200s' holds; give \"reshape\": a list, like [1, 2], instead of true",
                          weight, how->tensor);
  if (how->reshape) {
    const mix_shape joined = mix_mapped_weight_joined(how, mix_tensor_shape(value));
    if (joined.rank < 0)
      return mix_fail_value("'%.200s' has shape %s, and its rule reshapes another number of axes", weight,
                            MIX_SHAPE_TEXT(mix_tensor_shape(value)));
    value = mix_reshape(value, joined);
  }
  if (!how->rank || !value) return value;
  mix_axes back = {.count = how->rank};
  if (mix_tensor_shape(value).rank != how->rank)
    return mix_fail_value("'%.200s' has %d axes before it is reshaped, and its rule transposes %d", weight,
                          mix_tensor_shape(value).rank, how->rank);
  for (int i = 0; i < how->rank; i++) back.axis[how->transpose[i]] = i;
  return mix_transpose(value, back);
}

/* The second weight of a whole tensor must be the first one's equal, as those of tied layers are. */
static bool is_same(const target *t, mix_tensor *value, const char *weight) {
  mix_tensor *first = t->parts[0];
  const void *a = mix_tensor_data(first), *b = a ? mix_tensor_data(value) : NULL;
  const mix_dtype dtype = mix_tensor_dtype(first);
  const mix_shape shape = mix_tensor_shape(first);
  if (!a || !b) return false;
  return (dtype == mix_tensor_dtype(value) && mix_shape_equal(shape, mix_tensor_shape(value)) &&
          !memcmp(a, b, mix_value_bytes(dtype, shape))) ||
         mix_fail_value("'%.200s' and '%.200s' are of the one tensor '%.200s', and differ", t->weight, weight,
                        t->name);
}

static bool add_weight(target *t, const mix_mapped_weight *how, mix_tensor *value, const char *weight) {
  const int64_t count = how->parts ? how->parts : 1;
  if (!t->parts) {
    if (count > MIX_MAX_PARTS)
      return mix_fail_value("'%.200s' has %lld parts; expected at most %d to write it", how->tensor,
                            (long long)count, (int)MIX_MAX_PARTS);
    t->name = how->tensor;
    t->weight = weight;
    t->how = *how;
    t->parts = mix_scoped_memory((size_t)count * sizeof(mix_tensor *));
    if (!t->parts) return false;
    memset(t->parts, 0, (size_t)count * sizeof(mix_tensor *));
  }
  if (t->how.parts != how->parts || (how->parts && t->how.axis != how->axis))
    return mix_fail_value("'%.200s' and '%.200s' are of '%.200s' in other parts", t->weight, weight, t->name);
  if (!how->parts && t->parts[0]) return is_same(t, value, weight);
  if (t->parts[how->part])
    return mix_fail_value("'%.200s' is the part %lld of '%.200s', which another weight is too", weight,
                          (long long)how->part, t->name);
  t->parts[how->part] = value;
  return true;
}

static mix_tensor *joined_parts(const target *t) {
  if (!t->how.parts) return t->parts[0];
  const mix_shape shape = t->parts[0] ? mix_tensor_shape(t->parts[0]) : MIX_SCALAR;
  for (int64_t i = 0; i < t->how.parts; i++) {
    mix_tensor *part = t->parts[i];
    if (!part)
      return mix_fail_value("no weight is the part %lld of '%.200s', of which '%.200s' is another",
                            (long long)i, t->name, t->weight);
    if (mix_tensor_dtype(part) != mix_tensor_dtype(t->parts[0]) || t->how.axis >= shape.rank ||
        !mix_shape_equal(mix_tensor_shape(part), shape))
      return mix_fail_value("the parts of '%.200s' have shapes %s and %s, or other dtypes; expected equal "
                            "ones with an axis %d",
                            t->name, MIX_SHAPE_TEXT(shape), MIX_SHAPE_TEXT(mix_tensor_shape(part)),
                            t->how.axis);
  }
  return mix_concat((int)t->how.parts, t->parts, t->how.axis);
}

/* Which target a tensor's name has: a new one, or that of a weight before. -1 with the error recorded. */
static int target_of(json_t *numbers, const char *tensor, int *count) {
  const json_t *known = json_object_get(numbers, tensor);
  if (known) return (int)json_integer_value(known);
  return mix_json_set(numbers, tensor, json_integer(*count)) ? (*count)++ : -1;
}

static bool collect(const mix_weight_map *map, int count, const char *const *weights,
                    mix_tensor *const *values, json_t *numbers, target *targets, int *used) {
  for (int i = 0; i < count; i++) {
    mix_mapped_weight how;
    if (!mix_weight_map_find(map, weights[i], never, NULL, &how)) return false;
    mix_tensor *value = unmapped(&how, values[i], weights[i]);
    const int at = value ? target_of(numbers, how.tensor, used) : -1;
    if (at < 0 || !add_weight(&targets[at], &how, value, weights[i])) return false;
  }
  return true;
}

int mix_unmap_weights(const mix_weight_map *map, int count, const char *const *weights,
                      mix_tensor *const *values, const char **names, mix_tensor **tensors) {
  int used = 0;
  target *targets = mix_scoped_memory(((size_t)count + 1) * sizeof *targets);
  json_t *numbers = targets ? mix_json_whole(json_object()) : NULL;
  if (targets) memset(targets, 0, ((size_t)count + 1) * sizeof *targets);
  bool good = numbers && collect(map, count, weights, values, numbers, targets, &used);
  for (int i = 0; good && i < used; i++) {
    names[i] = targets[i].name;
    good = (tensors[i] = joined_parts(&targets[i])) != NULL;
  }
  json_decref(numbers);
  return good && !mix_failed() ? used : -1;
}
