/* Reads a recorded graph from a file, as `mixtape amp` does. */
#ifndef MIX_TESTS_REWRITE_FILE_H
#define MIX_TESTS_REWRITE_FILE_H

#include "base/alloc.h"
#include "cli/amp/graph_json.h"
#include "cli/cli.h"

/* NULL with the error recorded. */
static inline cli_rewrite_case *read_rewrite_file(const char *path) {
  size_t size = 0;
  char *text = cli_read_text(path, &size);
  cli_rewrite_case *item = text ? cli_rewrite_read(path, text, size, NULL) : NULL;
  mix_free(text);
  return item;
}

#endif
