/* In place of onnx/. */
#include "base/features.h"
#include "onnx/load.h"
#include "onnx/onnxruntime.h"
#include <mixtape/export.h>
#include <string.h>

mix_status mix_model_export_with(mix_model *model, const mix_export_options *options) {
  mix_fail_absent("mix_model_export", "onnx");
  return mix_error();
}

const char *mix_onnxruntime_version(void) { return NULL; }
mix_onnxruntime *mix_onnxruntime_open(const char *path) { return mix_fail_absent(path, "onnx"); }
void mix_onnxruntime_close(mix_onnxruntime *session) {}
mix_list *mix_onnxruntime_run(mix_onnxruntime *session, int input_count, const char *const *input_names,
                              mix_tensor *const *inputs, int output_count, const char *const *output_names) {
  return mix_fail_absent("verify", "onnx");
}

bool mix_is_onnx(const char *path) {
  const size_t length = strlen(path);
  return length > 5 && !strcmp(path + length - 5, ".onnx");
}
mix_model *mix_onnx_load(const char *path, const mix_semantics *semantics, bool copies) {
  return mix_fail_absent(path, "onnx");
}
