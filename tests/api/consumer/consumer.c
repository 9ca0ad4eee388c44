/* A user's program, built against an installed copy. */
#include <mixtape/tensor.h>
#include <stdio.h>

int main(void) {
  const double value = mix_tensor_item(mix_scalar(3.0, MIX_FLOAT16));
  printf("%s %g\n", mix_version(), value);
  mix_shutdown();
  return value == 3.0 ? 0 : 1;
}
