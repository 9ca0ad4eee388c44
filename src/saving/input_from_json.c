/* Inputs of models from JSON. */
#include "saving/model_json.h"

#include "base/error.h"
#include <string.h>

/* batch_shape (keras3), batch_input_shape (tf_keras). */
static bool read_batch_shape(const json_t *config, mix_shape *shape) {
  const char *key = json_object_get(config, "batch_shape") ? "batch_shape" : "batch_input_shape";
  const mix_field_row row = {key, 0, &mix_field_shape};
  const json_t *value = json_object_get(config, key);
  if (json_array_size(value) < 1)
    return mix_fail_value("model_from_json: an InputLayer lacks its batch_shape");
  return mix_field_shape.read(&(mix_field){.row = &row, .name = key, .value = shape}, value);
}

mix_tensor *mix_reader_input(mix_json_reader *reader, const json_t *object) {
  const json_t *config = json_object_get(object, "config");
  mix_shape shape = {.rank = 0};
  if (!json_is_object(config)) return mix_fail_value("model_from_json: an InputLayer has no config");
  if (!read_batch_shape(config, &shape)) return NULL;
  mix_input_options options = {.size = sizeof options,
                               .name = mix_json_string_or(config, "name", NULL),
                               .dtype = mix_json_string_or(config, "dtype", NULL),
                               .semantics = reader->semantics};
  if (mix_json_boolean_or(config, "sparse", false) || mix_json_boolean_or(config, "ragged", false))
    return mix_fail_unsupported("model_from_json: input '%s' is sparse or ragged; only dense inputs are "
                                "supported",
                                options.name ? options.name : "");
  options.batch_size = shape.dims[0] == MIX_UNKNOWN ? 0 : shape.dims[0];
  options.shape.rank = shape.rank - 1;
  memcpy(options.shape.dims, shape.dims + 1, (size_t)options.shape.rank * sizeof *shape.dims);
  return mix_failed() ? NULL : mix_input_with(&options);
}
