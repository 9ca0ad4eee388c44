/* Runs a file of ONNX by onnxruntime, where its shared library is there. */
#pragma once

#include <mixtape/tensor.h>

/* Its version, "1.22.0"; NULL without an error: it cannot be loaded. The variable MIXTAPE_ONNXRUNTIME names
 * the library, else the loader finds libonnxruntime.so. */
const char *mix_onnxruntime_version(void);

typedef struct mix_onnxruntime mix_onnxruntime;
/* A file to be run; NULL with the error recorded. */
mix_onnxruntime *mix_onnxruntime_open(const char *path);
void mix_onnxruntime_close(mix_onnxruntime *session);
/* The values of the outputs of these names for inputs of these names. NULL with the error recorded. */
mix_list *mix_onnxruntime_run(mix_onnxruntime *session, int input_count, const char *const *input_names,
                              mix_tensor *const *inputs, int output_count, const char *const *output_names);
