/* libFuzzer target: any bytes as a table, with several delimiters, and as the file of its columns. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "formats/csv.h"
#include <mixtape/csv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* No field is a text without its end, and none has a zero byte or is too long. */
static void read_records(const uint8_t *data, size_t size, char delimiter) {
  mix_csv_reader reader;
  size_t used = 0;
  if (mix_csv_open_memory(&reader, "input", data, size, delimiter))
    while (mix_csv_next(&reader))
      for (int i = 0; i < reader.count; i++) used += strlen(reader.fields[i].text);
  mix_csv_close(&reader);
  if (used > size) abort();
  mix_error_clear();
}

static void check(const mix_csv_table *table, bool failed) {
  if (failed != (table->columns == NULL) || failed != (table->rows == 0)) abort();
}

static void read_table(const char *path) {
  static const char *const missing[] = {"error", "drop", "mean", "0"};
  for (int i = 0; i < 4; i++)
    MIX_SCOPE {
      mix_csv_table table = mix_csv_load(path, .label = i % 2 ? "y" : NULL, .missing = missing[i]);
      check(&table, mix_error() != MIX_OK);
      mix_error_clear();
      if (table.columns) {
        mix_csv_table again = mix_csv_dataset(path, .columns = table.columns, .shuffle_buffer = i);
        if (!again.dataset || again.rows != table.rows) abort(); /* its own columns have all words */
      }
      mix_error_clear();
    }
  MIX_SCOPE { mix_csv_columns_load(path); }
  mix_error_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  read_records(data, size, ',');
  read_records(data, size, '\t');
  const int file = memfd_create("table", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  read_table(path);
  close(file);
  return 0;
}
