/* Rows of a table, each in float32 and in mixed_bfloat16. */
#include "tables.h"

bool bench_time_by_policy(const bench_settings *settings, const void *rows, size_t size, size_t count,
                          bench_measure_row *measure, json_t *results) {
  static const char *const policies[] = {"float32", "mixed_bfloat16"};
  bool good = true;
  for (size_t i = 0; i < count; i++)
    for (size_t p = 0; p < sizeof policies / sizeof *policies && good; p++) {
      const void *row = (const char *)rows + i * size;
      char name[64];
      snprintf(name, sizeof name, "%s, %s", *(const char *const *)row, policies[p]);
      if (!bench_is_asked(settings, name)) continue;
      MIX_SCOPE { good = measure(settings, row, policies[p], results); }
      fflush(stdout);
    }
  return good;
}
