/* A user's program, built against an installed copy. */
#include <mixtape/saving.h>
#include <mixtape/tensor.h>
#include <stdio.h>

int main(void) {
  const double value = mix_tensor_item(mix_scalar(3.0, MIX_FLOAT16));
  printf("%s %g\n", mix_version(), value);
  const bool found = mix_model_load("no such file.keras") != NULL;
  const mix_status status = mix_error();
  mix_shutdown();
  return value == 3.0 && !found && status == MIX_IO_ERROR ? 0 : 1;
}
