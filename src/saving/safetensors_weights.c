/* Saves a model's weights as safetensors, and loads them, also those of other libraries by a weight map. */
#include "saving/safetensors_weights.h"

#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include "formats/safetensors.h"
#include "graph/divided_variable.h"
#include "saving/weight_map.h"
#include "saving/write_weights.h"
#include "tensor/shape.h"
#include <string.h>

bool mix_save_safetensors(mix_model *model, const char *path, const char *map_path, const char *call) {
  mix_weight_map *map = map_path ? mix_weight_map_read(map_path, call) : NULL;
  mix_list *weights = mix_failed() ? NULL : mix_model_weights(model);
  int count = weights ? mix_list_count(weights) : 0;
  const char **names = weights ? mix_weight_names(weights) : NULL;
  mix_tensor **tensors = mix_scoped_memory(((size_t)count + 1) * sizeof(mix_tensor *));
  for (int i = 0; names && tensors && i < count; i++)
    tensors[i] = mix_variable_true_value(mix_list_get(weights, i));
  if (!names || !tensors || mix_failed()) return false;
  if (!map) return mix_safetensors_write(call, path, count, names, tensors);
  const char **mapped_names = mix_scoped_memory(((size_t)count + 1) * sizeof *mapped_names);
  mix_tensor **mapped = mapped_names ? mix_scoped_memory(((size_t)count + 1) * sizeof(mix_tensor *)) : NULL;
  if (!mapped) return false;
  count = mix_unmap_weights(map, count, names, tensors, mapped_names, mapped);
  if (count >= 0) return mix_safetensors_write(call, path, count, mapped_names, mapped);
  mix_error_aside error;
  mix_error_set_aside(&error);
  return mix_fail(error.status, "%s: %.200s: %.700s", call, map_path, error.message);
}

/* ---- loading ---- */

typedef struct reader {
  mix_safetensors *file;
  mix_weight_map *map;
  const char *path, *call;
  bool *used; /* by index of the file's tensors */
  bool assign;
} reader;

static bool is_missing(const reader *r, const char *name, const char *tensor) {
  mix_did_you_mean nearest = {.word = tensor};
  char hint[300];
  for (int i = 0; i < mix_safetensors_count(r->file); i++)
    mix_did_you_mean_try(&nearest, mix_safetensors_at(r->file, i)->name);
  return mix_fail_value("%s: %s has no '%.200s', of which '%.200s' is made%s", r->call, r->path, tensor, name,
                        mix_did_you_mean_hint(&nearest, hint, sizeof hint));
}

/* The variable's storage becomes the bytes in the file's mapping. False: it cannot, or an error. */
static bool borrow(const mix_stored_tensor *stored, const mix_mapped_weight *mapped, mix_variable *variable) {
  mix_memory *memory = stored->dtype == variable->dtype && mix_mapped_weight_is_plain(mapped)
                           ? mix_stored_tensor_share(stored)
                           : NULL;
  const bool good = memory && mix_variable_borrow(variable, memory) &&
                    (!variable->share || mix_variable_update_part(variable));
  mix_release(memory);
  return good;
}

/* The place of the map is told before what it says of the weight. */
static bool explain(const reader *r, const char *name) {
  mix_error_aside error;
  mix_error_set_aside(&error);
  return mix_fail(error.status, "%s: %s: weight '%.200s': %.600s", r->call, r->path, name, error.message);
}

static bool has_tensor(const void *context, const char *tensor) {
  return mix_safetensors_find(((const reader *)context)->file, tensor);
}

/* The value is a graph until the second pass reads it, so that the first one costs nothing. */
static bool read_weight(const reader *r, const char *name, mix_variable *variable) {
  mix_mapped_weight mapped;
  if (!mix_weight_map_find(r->map, name, has_tensor, r, &mapped)) return false;
  const mix_stored_tensor *stored = mix_safetensors_find(r->file, mapped.tensor);
  if (!stored) return is_missing(r, name, mapped.tensor);
  r->used[stored - mix_safetensors_at(r->file, 0)] = true;
  if (stored->dtype == MIX_DTYPE_NONE) return mix_stored_tensor_value(stored);
  if (mix_mapped_weight_is_plain(&mapped) && !mix_shape_equal(stored->shape, variable->shape))
    return mix_fail_value("%s: %s: '%s' has shape %s, but '%.200s' in the file has %s", r->call, r->path,
                          name, MIX_SHAPE_TEXT(variable->shape), stored->name, MIX_SHAPE_TEXT(stored->shape));
  if (r->assign && borrow(stored, &mapped, variable)) return true;
  if (!r->assign && mix_mapped_weight_is_plain(&mapped)) return true;
  mix_tensor *value = mix_failed() ? NULL : mix_stored_tensor_value(stored);
  value = value ? mix_mapped_weight_value(&mapped, value, variable->shape) : NULL;
  if (!value) return explain(r, name);
  if (!mix_shape_equal(mix_tensor_shape(value), variable->shape))
    return mix_fail_value("%s: %s: '%s' has shape %s, but the map makes %s of '%.200s'", r->call, r->path,
                          name, MIX_SHAPE_TEXT(variable->shape), MIX_SHAPE_TEXT(mix_tensor_shape(value)),
                          stored->name);
  if (r->assign) mix_variable_assign(variable, mix_cast(value, variable->dtype));
  return !mix_failed();
}

/* The same bytes of one dtype. */
static bool are_equal(const mix_stored_tensor *a, const mix_stored_tensor *b) {
  if (!b || a->dtype != b->dtype || a->bytes != b->bytes || !mix_shape_equal(a->shape, b->shape))
    return false;
  const char *x = mix_memory_map(a->file, MIX_MAP_READ),
             *y = x ? mix_memory_map(b->file, MIX_MAP_READ) : NULL;
  const bool equal = y && !memcmp(x + a->offset, y + b->offset, a->bytes);
  if (y) mix_memory_unmap(b->file);
  if (x) mix_memory_unmap(a->file);
  return equal;
}

/* A tensor that becomes no weight is a mistake in names, unless the map says that it may be left. */
static bool check_used(const reader *r, const mix_stored_tensor *tensor) {
  const char *equal;
  const bool left = mix_weight_map_leaves(r->map, tensor->name, has_tensor, r, &equal);
  if (mix_failed()) return false;
  if (left && equal && !r->assign && !are_equal(tensor, mix_safetensors_find(r->file, equal)))
    return mix_fail_value(
        "%s: '%.200s' in %s becomes no weight of the model, which has '%.200s' in its place, and their "
        "values differ; expected equal ones. A model with an output of its own (of KerasHub's Llama and "
        "others \"tie_word_embeddings\": false) takes it, and a map of your own may leave it",
        r->call, tensor->name, r->path, equal);
  return left ||
         mix_fail_value("%s: '%.200s' in %s becomes no weight of the model; the list \"leave\" of a weight "
                        "map (--weight-map) names what is to be left",
                        r->call, tensor->name, r->path);
}

static bool check_all_used(const reader *r) {
  bool good = true;
  for (int i = 0; i < mix_safetensors_count(r->file) && good; i++)
    if (!r->used[i])
      MIX_SCOPE { good = check_used(r, mix_safetensors_at(r->file, i)); }
  return good;
}

static bool read_weights(reader *r, mix_list *weights, const char **names) {
  for (int pass = 0; pass < 2; pass++) {
    r->assign = pass;
    for (int i = 0; i < mix_list_count(weights) && !mix_failed(); i++)
      MIX_SCOPE { read_weight(r, names[i], mix_list_get(weights, i)); }
    if (mix_failed() || !check_all_used(r)) return false;
  }
  return true;
}

bool mix_load_safetensors(mix_model *model, const mix_load_weights_options *options, const char *call) {
  reader r = {.path = options->path, .call = call};
  if (options->by_name || options->skip_mismatch)
    return mix_fail_value("%s: .by_name and .skip_mismatch are for files of Keras, not for safetensors: %s",
                          call, options->path);
  r.map = options->weight_map ? mix_weight_map_read(options->weight_map, call) : NULL;
  r.file = mix_failed() ? NULL : mix_safetensors_open(options->path, options->copy_weights);
  mix_list *weights = r.file ? mix_model_weights(model) : NULL;
  const char **names = weights ? mix_weight_names(weights) : NULL;
  const size_t count = r.file ? (size_t)mix_safetensors_count(r.file) : 0;
  r.used = names ? mix_scoped_memory((count + 1) * sizeof *r.used) : NULL;
  if (!r.used) return false;
  memset(r.used, 0, (count + 1) * sizeof *r.used);
  return read_weights(&r, weights, names);
}
