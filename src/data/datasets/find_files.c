#include "data/datasets/find_files.h"
#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A string buffer that truncates when full. */
typedef struct text {
  char characters[3000];
  size_t length;
} text;

static void append(text *t, const char *format, ...) MIX_PRINTF(2, 3);
static void append(text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(t->characters + t->length, sizeof t->characters - t->length, format, arguments);
  va_end(arguments);
  t->length += length < 0 ? 0 : (size_t)length;
  if (t->length >= sizeof t->characters) t->length = sizeof t->characters - 1;
}

/* Searches a folder, then the data set's folder in it. */
static bool search_both(const mix_data_files *files, const char *folder, text *tried, void *context) {
  append(tried, "%s%s", tried->length ? ", " : "", folder);
  if (files->search(folder, context) || mix_failed()) return true;
  char *inner = mix_path_join(folder, files->folder);
  const bool found = !inner || files->search(inner, context) || mix_failed();
  mix_free(inner);
  return found;
}

/* Saves the download for the next run. A failure is only logged: this run has the data. */
static void keep(const mix_data_files *files, const char *folder, const void *data, size_t size) {
  char message[512], *path = mix_folder_make(folder) ? mix_path_join(folder, files->kept_as) : NULL;
  if (path && mix_file_replace(path, &(const mix_bytes){data, size}, 1, files->call))
    mix_log_message(MIX_LOG_INFO, "kept as %s", path);
  mix_free(path);
  if (mix_error_take(message, sizeof message) != MIX_OK)
    mix_log_message(MIX_LOG_WARNING, "the download is not kept: %s", message);
}

static void download(const mix_data_files *files, const char *folder, const text *tried, void *context) {
  const char *offline = getenv("MIXTAPE_OFFLINE");
  if (offline && *offline && strcmp(offline, "0") != 0) {
    mix_fail_io("%s: %s in %s; not downloaded because MIXTAPE_OFFLINE is set. %s", files->call,
                files->missing, tried->length ? tried->characters : "any folder (none is known)",
                files->remedy);
    return;
  }
  mix_log_message(MIX_LOG_INFO, "%s: %s in %s; downloading %s, which is then kept in %s", files->call,
                  files->missing, tried->length ? tried->characters : "any folder", files->request.url,
                  folder ? folder : "no folder");
  char reason[400];
  size_t size;
  void *data = mix_download(&files->request, &size, reason, sizeof reason);
  if (!data) {
    if (!mix_failed())
      mix_fail_io("%s: %s in %s; the download of %s failed: %s. %s", files->call, files->missing,
                  tried->length ? tried->characters : "any folder (none is known)", files->request.url,
                  reason, files->remedy);
    return;
  }
  if (folder) keep(files, folder, data, size);
  files->take(data, size, context);
  mix_free(data);
}

bool mix_data_files_find(const mix_data_files *files, const char *directory, bool optional, void *context) {
  text tried = {.length = 0};
  if (directory) {
    if (search_both(files, directory, &tried, context)) return !mix_failed();
    if (optional) return false;
    return mix_fail_io("%s: %s in %s", files->call, files->missing_there, directory);
  }
  const char *data_dir = getenv("MIXTAPE_DATA_DIR"), *keras_home = getenv("KERAS_HOME"),
             *home = getenv("HOME");
  char *folders[3] = {
      data_dir && *data_dir ? mix_strdup(data_dir) : NULL,
      keras_home && *keras_home ? mix_path_join(keras_home, "datasets") : NULL,
      home && *home ? mix_path_join(home, ".keras/datasets") : NULL,
  };
  bool found = mix_failed();
  const char *first = NULL;
  for (int i = 0; i < 3 && !found; i++) {
    if (!folders[i]) continue;
    if (!first) first = folders[i];
    found = search_both(files, folders[i], &tried, context);
  }
  if (!found && !optional) download(files, first, &tried, context);
  for (int i = 0; i < 3; i++) mix_free(folders[i]);
  return (found || !optional) && !mix_failed();
}
