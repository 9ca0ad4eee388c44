/* In place of onnx/. */
#include "base/features.h"
#include <mixtape/export.h>

mix_status mix_model_export_with(mix_model *model, const mix_export_options *options) {
  mix_fail_absent("mix_model_export", "onnx");
  return mix_error();
}
