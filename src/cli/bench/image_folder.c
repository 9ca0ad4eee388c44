/* Folders of images that the table pipeline reads. */
#include "base/alloc.h"
#include "base/error.h"
#include "cli/bench/pipeline.h"
#include <errno.h>
#include <jpeglib.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUALITY = 90, CHANNELS = 3 };

/* Two waves a colour and a little noise: JPEG makes about 2 bytes of a pixel's 3 out of noise alone, and of
 * flat colours almost none. */
static void paint(unsigned char *pixels, int side, int number) {
  uint32_t noise = 2654435761u * (uint32_t)(number + 1);
  for (int y = 0; y < side; y++)
    for (int x = 0; x < side; x++)
      for (int c = 0; c < CHANNELS; c++) {
        const int wave =
            abs((x * (number % 5 + 1) + 17 * c) % 64 - 32) + abs((y * (c + 1) + number) % 48 - 24);
        noise = noise * 1664525u + 1013904223u;
        *pixels++ = (unsigned char)(4 * wave + (int)(noise >> 28));
      }
}

static bool put_png(FILE *file, int side, const unsigned char *pixels) {
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)side,
                     .height = (png_uint_32)side,
                     .format = PNG_FORMAT_RGB};
  return png_image_write_to_stdio(&image, file, 0, pixels, 0, NULL);
}

/* libjpeg ends the program itself if it is out of memory. */
static bool put_jpeg(FILE *file, int side, const unsigned char *pixels) {
  struct jpeg_compress_struct info;
  struct jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  jpeg_stdio_dest(&info, file);
  info.image_width = info.image_height = (JDIMENSION)side;
  info.input_components = CHANNELS;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, QUALITY, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)info.next_scanline * (size_t)(side * CHANNELS));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

static void name_class(const bench_folder *folder, int number, char *path, size_t size) {
  snprintf(path, size, "%s/%d", folder->path, number);
}
static void name_file(const bench_folder *folder, int number, char *path, size_t size) {
  snprintf(path, size, "%s/%d/%05d.%s", folder->path, number % folder->classes, number, folder->extension);
}

static bool make_file(const bench_folder *folder, int side, int number, unsigned char *pixels) {
  char path[sizeof folder->path + 32];
  name_file(folder, number, path, sizeof path);
  FILE *file = fopen(path, "wb");
  if (!file) return mix_fail_io("bench: cannot write %s: %s", path, strerror(errno));
  paint(pixels, side, number);
  bool good = (strcmp(folder->extension, "png") ? put_jpeg : put_png)(file, side, pixels);
  good = !ferror(file) && good;
  if (fclose(file) || !good) return mix_fail_io("bench: cannot write %s", path);
  return true;
}

bool bench_image_folder_make(bench_folder *folder, const char *extension, int side, int count, int classes) {
  const char *parent = getenv("TMPDIR");
  char path[sizeof folder->path + 32];
  *folder = (bench_folder){.extension = extension, .count = count, .classes = classes};
  if (!parent || strlen(parent) > 200) parent = "/tmp";
  snprintf(folder->path, sizeof folder->path, "%s/mixtape-bench-XXXXXX", parent);
  if (!mkdtemp(folder->path)) {
    folder->path[0] = 0;
    return mix_fail_io("bench: cannot make a folder in %s: %s; TMPDIR chooses another place", parent,
                       strerror(errno));
  }
  for (int i = 0; i < classes; i++) {
    name_class(folder, i, path, sizeof path);
    if (mkdir(path, 0777)) return mix_fail_io("bench: cannot make %s: %s", path, strerror(errno));
  }
  unsigned char *pixels = mix_alloc((size_t)(side * side * CHANNELS));
  bool good = pixels != NULL;
  for (int i = 0; i < count && good; i++) good = make_file(folder, side, i, pixels);
  mix_free(pixels);
  return good;
}

void bench_folder_remove(bench_folder *folder) {
  char path[sizeof folder->path + 32];
  if (!folder->path[0]) return;
  for (int i = 0; i < folder->count; i++) {
    name_file(folder, i, path, sizeof path);
    unlink(path);
  }
  for (int i = 0; i < folder->classes; i++) {
    name_class(folder, i, path, sizeof path);
    rmdir(path);
  }
  rmdir(folder->path);
  folder->path[0] = 0;
}
