#include "tensor/values_text.h"

#include "base/number.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <stdio.h>

enum { EDGE = 3 }; /* elements at each end of an axis, as tf.print has them */

typedef struct writer {
  const void *data;
  mix_type type;
  char *text;
  size_t size, used;
} writer;

static void put(writer *w, const char *text) {
  for (; *text && w->used + 1 < w->size; text++) w->text[w->used++] = *text;
  w->text[w->used] = 0;
}

static void put_element(writer *w, int64_t index) {
  char number[40];
  const mix_dtype dtype = w->type.dtype;
  if (dtype == MIX_BOOL)
    snprintf(number, sizeof number, "%s", mix_load_integer(w->data, dtype, index) ? "true" : "false");
  else if (mix_dtype_is_integer(dtype))
    snprintf(number, sizeof number, "%lld", (long long)mix_load_integer(w->data, dtype, index));
  else if (dtype == MIX_FLOAT64)
    mix_number_write_shortest(number, sizeof number, mix_load_double(w->data, dtype, index));
  else
    mix_number_write(number, sizeof number, 'g', dtype == MIX_FLOAT32 ? 9 : 5,
                     mix_load_double(w->data, dtype, index));
  put(w, number);
}

/* The elements of axis `axis`, of which one has `size` numbers, from `first` on. */
static void put_axis(writer *w, int axis, int64_t first, int64_t size) {
  if (axis == w->type.shape.rank) {
    put_element(w, first);
    return;
  }
  const int64_t count = w->type.shape.dims[axis], each = count ? size / count : 0;
  put(w, "[");
  for (int64_t i = 0; i < count && w->used + 1 < w->size; i++) {
    if (i) put(w, " ");
    if (count > 2 * EDGE && i == EDGE) {
      put(w, "... ");
      i = count - EDGE;
    }
    put_axis(w, axis + 1, first + i * each, each);
  }
  put(w, "]");
}

void mix_values_text(const void *data, mix_type type, char *text, size_t size) {
  writer w = {.data = data, .type = type, .text = text, .size = size};
  text[0] = 0;
  put(&w, mix_dtype_name(type.dtype));
  put(&w, " ");
  put(&w, MIX_SHAPE_TEXT(type.shape));
  put(&w, " ");
  put_axis(&w, 0, 0, mix_shape_size(type.shape));
}
