/* In place of model/hub/ and nn/layers/hub/: no class of KerasHub is known. */
#include "base/features.h"
#include "model/hub/hub.h"
#include <string.h>

const mix_hub_family *mix_hub_family_of(const char *class_name, const char *registered_name) {
  const bool asked = registered_name && !strncmp(registered_name, "keras_hub>", strlen("keras_hub>"));
  return asked ? mix_fail_absent("model_from_json: a model of KerasHub", "hub") : NULL;
}
mix_model *mix_hub_make(const mix_hub_family *family, const json_t *config, const mix_semantics *semantics) {
  return mix_fail_absent("model_from_json: a model of KerasHub", "hub");
}
