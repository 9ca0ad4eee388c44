/* In place of onnx/. */
#include "base/features.h"
#include "onnx/onnxruntime.h"
#include <mixtape/export.h>

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
