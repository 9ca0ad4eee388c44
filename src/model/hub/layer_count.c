/* How many layers a config asks for: a number that is read before there are weights to compare with. */
#include "model/hub/hub.h"

static bool read_layer_count(const mix_field *field, const json_t *value) {
  return mix_field_read_integer(field, value, 1, MIX_HUB_MAX_LAYERS, field->value);
}
static bool resolve_layer_count(const mix_field *field) { return mix_field_integer.resolve(field); }
static json_t *write_layer_count(const mix_field *field) { return mix_field_integer.write(field); }
const mix_value_kind mix_field_layer_count = {"a number of layers",
                                              sizeof(int64_t),
                                              resolve_layer_count,
                                              NULL,
                                              write_layer_count,
                                              read_layer_count,
                                              NULL};
