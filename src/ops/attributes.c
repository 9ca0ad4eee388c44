#include "ops/attributes.h"

#include "base/alloc.h"
#include "tensor/shape.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- writing ---- */

static void put_integers(mix_text *text, int count, const int64_t *wide, const int *narrow) {
  mix_text_put(text, "[");
  for (int i = 0; i < count; i++) mix_text_put(text, "%s%" PRId64, i ? ", " : "", wide ? wide[i] : narrow[i]);
  mix_text_put(text, "]");
}

static void put_field(mix_text *text, mix_attribute_kind kind, const void *value) {
  const mix_shape *shape = value;
  const int *ints = value;
  int count = MIX_MAX_RANK;
  switch (kind) {
  case MIX_ATTRIBUTE_BOOL: break;
  case MIX_ATTRIBUTE_INT: mix_text_put(text, "%d", *ints); break;
  case MIX_ATTRIBUTE_INT64: mix_text_put(text, "%" PRId64, *(const int64_t *)value); break;
  case MIX_ATTRIBUTE_DOUBLE: mix_text_put_number(text, *(const double *)value); break;
  case MIX_ATTRIBUTE_DTYPE: mix_text_put(text, "%s", mix_dtype_name(*(const mix_dtype *)value)); break;
  case MIX_ATTRIBUTE_SHAPE: mix_text_put(text, "%s", MIX_SHAPE_TEXT(*shape)); break;
  case MIX_ATTRIBUTE_NUMBERS: put_integers(text, shape->rank, shape->dims, NULL); break;
  case MIX_ATTRIBUTE_AXES: put_integers(text, ints[0], NULL, ints + 1); break;
  case MIX_ATTRIBUTE_PERMUTATION:
    while (count > 1 && ints[count - 1] == count - 1) count--;
    put_integers(text, count, NULL, ints);
    break;
  case MIX_ATTRIBUTE_TEXT: mix_text_put_quoted(text, *(const char *const *)value); break;
  }
}

static bool is_left_out(mix_attribute_kind kind, const void *value) {
  return kind == MIX_ATTRIBUTE_BOOL ? !*(const bool *)value
                                    : kind == MIX_ATTRIBUTE_TEXT && !*(const char *const *)value;
}

void mix_attributes_put(const mix_op *op, const void *attributes, mix_text *text) {
  bool first = true;
  for (const mix_attribute_row *field = attributes ? op->fields : NULL; field && field->name; field++) {
    const char *value = (const char *)attributes + field->offset;
    if (is_left_out(field->kind, value)) continue;
    mix_text_put(text, "%s%s%s", first ? "" : " ", field->name, field->kind == MIX_ATTRIBUTE_BOOL ? "" : "=");
    put_field(text, field->kind, value);
    first = false;
  }
}

/* ---- comparing ---- */

static bool field_equal(mix_attribute_kind kind, const void *a, const void *b) {
  const int *x = a, *y = b;
  switch (kind) {
  case MIX_ATTRIBUTE_BOOL: return *(const bool *)a == *(const bool *)b;
  case MIX_ATTRIBUTE_INT: return *x == *y;
  case MIX_ATTRIBUTE_INT64: return *(const int64_t *)a == *(const int64_t *)b;
  case MIX_ATTRIBUTE_DOUBLE: return !memcmp(a, b, sizeof(double));
  case MIX_ATTRIBUTE_DTYPE: return *(const mix_dtype *)a == *(const mix_dtype *)b;
  case MIX_ATTRIBUTE_SHAPE:
  case MIX_ATTRIBUTE_NUMBERS: return mix_shape_equal(*(const mix_shape *)a, *(const mix_shape *)b);
  case MIX_ATTRIBUTE_AXES: return x[0] == y[0] && !memcmp(x + 1, y + 1, sizeof(int) * (size_t)x[0]);
  case MIX_ATTRIBUTE_PERMUTATION: return !memcmp(x, y, sizeof(int) * MIX_MAX_RANK);
  case MIX_ATTRIBUTE_TEXT: return *(const char *const *)a == *(const char *const *)b;
  }
  return false;
}

bool mix_attributes_equal(const mix_op *op, const void *a, const void *b) {
  bool equal = true;
  for (const mix_attribute_row *field = op->attributes_size ? op->fields : NULL;
       equal && field && field->name; field++)
    equal = field_equal(field->kind, (const char *)a + field->offset, (const char *)b + field->offset);
  return equal;
}

/* ---- reading ---- */

bool mix_scan_dtype(mix_scan *scan, mix_dtype *dtype) {
  mix_scan next = *scan;
  char name[24];
  if (!mix_scan_name(&next, name, sizeof name)) return false;
  *dtype = mix_dtype_from_name(name);
  if (*dtype == MIX_DTYPE_NONE || !mix_dtype_size(*dtype)) return false;
  *scan = next;
  return true;
}

/* Up to MIX_MAX_RANK integers between two brackets. Returns their number, or -1 if the text does not
 * match. */
static int scan_integers(mix_scan *scan, const char *open, const char *close, int64_t numbers[MIX_MAX_RANK]) {
  int count = 0;
  if (!mix_scan_text(scan, open)) return -1;
  if (mix_scan_text(scan, close)) return 0;
  do {
    if (count == MIX_MAX_RANK || !mix_scan_integer(scan, &numbers[count++])) return -1;
  } while (mix_scan_text(scan, ","));
  return mix_scan_text(scan, close) ? count : -1;
}

bool mix_scan_shape(mix_scan *scan, mix_shape *shape) {
  mix_scan next = *scan;
  *shape = (mix_shape){.rank = 0};
  int rank = scan_integers(&next, "(", ")", shape->dims);
  if (rank < 0) return false;
  shape->rank = rank;
  for (int i = 0; i < rank; i++)
    if (shape->dims[i] < 0) return false;
  *scan = next;
  return true;
}

static bool scan_ints(mix_scan *scan, int *count, int ints[MIX_MAX_RANK]) {
  int64_t numbers[MIX_MAX_RANK];
  *count = scan_integers(scan, "[", "]", numbers);
  for (int i = 0; i < *count; i++) {
    if (numbers[i] < 0 || numbers[i] >= MIX_MAX_RANK) return false;
    ints[i] = (int)numbers[i];
  }
  return *count >= 0;
}

static bool scan_label(mix_scan *scan, const char **label) {
  char word[512];
  return mix_scan_word(scan, word, sizeof word) && (*label = mix_intern(word));
}

static bool scan_field(mix_scan *scan, mix_attribute_kind kind, void *value) {
  mix_shape *shape = value;
  int *ints = value, count;
  int64_t number;
  switch (kind) {
  case MIX_ATTRIBUTE_BOOL: return *(bool *)value = true;
  case MIX_ATTRIBUTE_INT:
    if (!mix_scan_integer(scan, &number) || number < INT_MIN || number > INT_MAX) return false;
    *ints = (int)number;
    return true;
  case MIX_ATTRIBUTE_INT64: return mix_scan_integer(scan, value);
  case MIX_ATTRIBUTE_DOUBLE: return mix_scan_number(scan, value);
  case MIX_ATTRIBUTE_DTYPE: return mix_scan_dtype(scan, value);
  case MIX_ATTRIBUTE_SHAPE: return mix_scan_shape(scan, shape);
  case MIX_ATTRIBUTE_NUMBERS: return (shape->rank = scan_integers(scan, "[", "]", shape->dims)) >= 0;
  case MIX_ATTRIBUTE_AXES: return scan_ints(scan, ints, ints + 1);
  case MIX_ATTRIBUTE_PERMUTATION:
    if (!scan_ints(scan, &count, ints)) return false;
    for (int i = count; i < MIX_MAX_RANK; i++) ints[i] = i;
    return true;
  case MIX_ATTRIBUTE_TEXT: return scan_label(scan, value);
  }
  return false;
}

bool mix_attributes_read(const mix_op *op, void *attributes, mix_scan *scan, char *problem, size_t size) {
  unsigned seen = 0;
  while (!mix_scan_done(scan)) {
    char name[40];
    if (!mix_scan_name(scan, name, sizeof name))
      return snprintf(problem, size, "expected the name of an attribute"), false;
    const mix_attribute_row *field = op->fields;
    while (field && field->name && strcmp(field->name, name) != 0) field++;
    if (!field || !field->name)
      return snprintf(problem, size, "%s has no attribute '%s'", op->name, name), false;
    unsigned bit = 1u << (field - op->fields);
    if (seen & bit) return snprintf(problem, size, "attribute '%s' is there twice", name), false;
    seen |= bit;
    if (field->kind != MIX_ATTRIBUTE_BOOL && !mix_scan_text(scan, "="))
      return snprintf(problem, size, "expected '%s='", name), false;
    if (!scan_field(scan, field->kind, (char *)attributes + field->offset))
      return snprintf(problem, size, "attribute '%s' has no value that it may have", name), false;
  }
  for (const mix_attribute_row *field = op->fields; field && field->name; field++)
    if (field->kind != MIX_ATTRIBUTE_BOOL && field->kind != MIX_ATTRIBUTE_TEXT &&
        !(seen & 1u << (field - op->fields)))
      return snprintf(problem, size, "attribute '%s' is missing", field->name), false;
  return true;
}
