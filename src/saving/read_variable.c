/* A variable from a data set of a file of Keras, and what the readers of weights and of optimizers share. */
#include "base/alloc.h"
#include "graph/divided_variable.h"
#include "base/error.h"
#include "saving/read_weights.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

const char *mix_join_path(const char *folder, const char *name) {
  const size_t size = strlen(folder) + strlen(name) + 2;
  char *text = mix_scoped_memory(size);
  if (text) snprintf(text, size, "%s%s%s", folder, *folder ? "/" : "", name);
  return text;
}

bool mix_have_one_layer(const mix_variable *a, const mix_variable *b) {
  const char *end = strrchr(a->name, '/');
  const size_t length = end ? (size_t)(end - a->name) + 1 : 0;
  return !strncmp(a->name, b->name, length) && !strchr(b->name + length, '/');
}

static bool count_link(void *context, const char *name, bool is_group) {
  ++*(int *)context;
  return true;
}

int mix_count_links(mix_keras_file *file, const char *path) {
  int count = 0, at = 0;
  mix_hdf5 *hdf5 = file->shards ? mix_weight_shards_next(file->shards, path, &at) : &file->hdf5;
  while (hdf5 && !mix_failed()) {
    if (mix_hdf5_has(hdf5, path)) mix_hdf5_list(hdf5, path, count_link, &count);
    hdf5 = file->shards ? mix_weight_shards_next(file->shards, path, &at) : NULL;
  }
  return mix_failed() ? -1 : count;
}

bool mix_skip_mismatch(const mix_weights_reader *reader) {
  char message[1024];
  if (!reader->skip_mismatch || mix_error() != MIX_VALUE_ERROR) return false;
  mix_error_take(message, sizeof message);
  if (reader->assign) mix_log_message(MIX_LOG_WARNING, "%s; skipped", message);
  return true;
}

/* What follows the last slash. */
static const char *short_name(const mix_variable *variable) {
  const char *slash = strrchr(variable->name, '/');
  return slash ? slash + 1 : variable->name;
}

const char *mix_variables_text(mix_list *variables, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < mix_list_count(variables) && used + 1 < size; i++) {
    const mix_variable *variable = mix_list_items(variables)[i];
    used += (size_t)snprintf(text + used, size - used, "%s%s %s", i ? ", " : "", short_name(variable),
                             MIX_SHAPE_TEXT(variable->shape));
  }
  return text;
}

/* The new value. Elements of the variable's dtype are copied from the file's own bytes. */
static mix_tensor *value_for(mix_hdf5 *hdf5, const char *path, mix_dtype stored,
                             const mix_variable *variable) {
  if (stored == variable->dtype) return mix_hdf5_borrow(hdf5, path);
  mix_tensor *value = mix_hdf5_tensor(hdf5, path);
  return value ? mix_cast(value, variable->dtype) : NULL;
}

/* The variable's storage becomes the part of the file's mapping that has the value. False: it cannot, or an
 * error is recorded. */
static bool borrow(mix_hdf5 *hdf5, const char *path, mix_dtype stored, mix_variable *variable) {
  mix_memory *memory = stored == variable->dtype ? mix_hdf5_share(hdf5, path) : NULL;
  const bool good = memory && mix_variable_borrow(variable, memory) &&
                    (!variable->share || mix_variable_update_part(variable));
  mix_release(memory);
  return good;
}

/* Has the file the value that the variable has from its making? */
static bool check_fixed(mix_weights_reader *reader, mix_hdf5 *hdf5, const char *path,
                        mix_variable *variable) {
  bool same = false;
  MIX_SCOPE {
    const mix_dtype dtype = variable->dtype;
    const size_t bytes = (size_t)mix_value_bytes(dtype, variable->shape);
    mix_tensor *own = mix_variable_true_value(variable), *value = mix_hdf5_tensor(hdf5, path);
    const void *expected = own ? mix_tensor_data(own) : NULL,
               *found = value ? mix_tensor_data(mix_cast(value, dtype)) : NULL;
    same = expected && found && !memcmp(expected, found, bytes);
  }
  if (mix_failed() || same) return same;
  return mix_fail_value(
      "%s: %s: '%s' has other groups than '%s', which are of neighbours; expected 0, 0, ..., "
      "1, 1, ... by the block size of the policy",
      reader->call, reader->file->name, path, variable->name);
}

bool mix_read_variable(mix_weights_reader *reader, const char *path, mix_variable *variable) {
  mix_dtype dtype;
  mix_shape shape;
  mix_hdf5 *hdf5 =
      reader->file->shards ? mix_weight_shards_with(reader->file->shards, path) : &reader->file->hdf5;
  if (!hdf5 && !mix_failed()) mix_fail_format("%s: '%s' is in none of its shards", reader->file->name, path);
  if (!hdf5 || !mix_hdf5_describe(hdf5, path, &dtype, &shape)) return false;
  if (!mix_shape_equal(shape, variable->shape))
    return mix_fail_value("%s: %s: '%s' has shape %s, but '%s' in the file has %s", reader->call,
                          reader->file->name, variable->name, MIX_SHAPE_TEXT(variable->shape), path,
                          MIX_SHAPE_TEXT(shape));
  if (variable->fixed) return check_fixed(reader, hdf5, path, variable);
  if (reader->assign && !borrow(hdf5, path, dtype, variable))
    MIX_SCOPE {
      mix_tensor *value = value_for(hdf5, path, dtype, variable);
      if (value) mix_variable_assign(variable, value);
    }
  return !mix_failed();
}
