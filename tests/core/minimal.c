/* The least that trains, and what its process took at most. */
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  mix_scope *scope = mix_scope_begin();
  mix_set_threads(1);
  static float x[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, y[4] = {0, 1, 1, 2};
  mix_model *model = mix_sequential(mix_list_of(mix_dense(1)));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(0.1));
  mix_model_fit(model, mix_tensor_wrap(x, MIX_FLOAT32, MIX_SHAPE(4, 2), NULL),
                mix_tensor_wrap(y, MIX_FLOAT32, MIX_SHAPE(4, 1), NULL), .epochs = 50, .verbose = MIX_SILENT);
  const int code = MIX_EXIT_CODE();
  mix_scope_end(scope);
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (!strncmp(line, "VmHWM:", 6)) fputs(line, stdout);
  if (status) fclose(status);
  return code;
}
