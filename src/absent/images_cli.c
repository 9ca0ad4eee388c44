/* In place of cli/bench/image_folder.c. */
#include "base/features.h"
#include "cli/bench/pipeline.h"

bool bench_image_folder_make(bench_folder *folder, const char *extension, int side, int count, int classes) {
  return mix_fail_absent("bench: the table pipeline", "images");
}
void bench_folder_remove(bench_folder *folder) {}
