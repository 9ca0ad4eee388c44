/* Whole files of text: graphs and logs of them. */
#include "base/alloc.h"
#include "base/error.h"
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

enum { FILE_MAX = 1 << 28, PIECE = 1 << 16 };

char *cli_read_text(const char *path, size_t *size) {
  FILE *file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
  if (!file) return mix_fail_io("cannot open %s: %s", path, strerror(errno));
  char *text = NULL;
  int used = 0, capacity = 0;
  for (size_t got = PIECE; got == PIECE && used <= FILE_MAX; used += (int)got) {
    if (!mix_reserve(&text, &capacity, used + PIECE + 1, 1)) break;
    got = fread(text + used, 1, PIECE, file);
  }
  if (!mix_failed() && ferror(file)) mix_fail_io("cannot read %s: %s", path, strerror(errno));
  if (!mix_failed() && used > FILE_MAX) /* an endless device */
    mix_fail_format("%s is longer than 256 MiB, more than any log of graphs", path);
  if (file != stdin) fclose(file);
  if (mix_failed()) return mix_free(text), NULL;
  for (int i = 0; i < used; i++)
    if (!text[i]) text[i] = '\1';
  text[used] = 0;
  *size = (size_t)used;
  return text;
}
