/* Reductions over all but the last dimension: gradients of biases. The rows of a strip of columns are added
 * one by one into a tile. Up to 1024 rows this is one chain in float32, the order of TensorFlow's
 * BiasAddGrad, so that recorded runs of Keras are reproduced bit for bit. Longer columns are added 64 rows at
 * a time in float32, and those sums in double, so the error is that of 64 additions in float32. Long narrow
 * matrices are also cut into blocks of rows, whose sums are added in the order of the rows. Where
 * neighbouring columns have one result (a tail), their sums are added in double. */
#include "backend/cpu/column_order.h"
#include "backend/cpu/reduce.h"

_Static_assert((int)MIX_REDUCE_TAIL <= (int)MIX_COLUMN_STRIP, "a strip holds a tail");

enum { STRIP = MIX_COLUMN_STRIP, ROWS_IN_32 = MIX_COLUMN_CHAIN, ONE_CHAIN = MIX_ONE_CHAIN };

static bool is_narrow(const mix_reduction *r) { return mix_columns_are_narrow(r->length, r->inner); }
static int64_t rows_of_block(const mix_reduction *r) { return mix_column_block(r->length, r->inner); }
static int64_t blocks_of(const mix_reduction *r) {
  const int64_t rows = rows_of_block(r);
  return (r->length + rows - 1) / rows;
}

bool mix_reduce_columns_meets(const mix_reduction *r) { return blocks_of(r) > 1; }
size_t mix_reduce_columns_workspace(const mix_reduction *r) {
  return mix_reduce_columns_meets(r) ? (size_t)(blocks_of(r) * r->outer * r->inner) * sizeof(mix_folded) : 0;
}

typedef struct strip {
  _Alignas(64) char part[STRIP * 8 + MIX_TILE_PADDING]; /* sums of a chain, in the class of the dtype */
  _Alignas(64) char tile[STRIP * 8 + MIX_TILE_PADDING];
  mix_folded total[STRIP];
} strip;

/* Adds the sums of a chain to the totals. */
static void add_chain(const mix_reduction *r, strip *s, int64_t width, bool first) {
  for (int64_t j = 0; j < width; j++) {
    mix_folded value;
    if (r->class == MIX_TILE_FLOAT)
      value.real = ((const float *)s->part)[j];
    else
      memcpy(&value, s->part + 8 * j, 8);
    s->total[j] = first ? value : mix_fold(r, s->total[j], value);
  }
}

/* total[j] = fold over `count` >= 1 lines of `width` <= STRIP elements; `stride` is in elements. */
static void fold_lines(const mix_reduction *r, const mix_vector *vector, strip *s, const char *source,
                       int64_t stride, int64_t count, int64_t width) {
  const mix_tile_load_function load = mix_tile_load_of(vector, r->dtype);
  const mix_tile_function fold = mix_tile_instruction_of(vector, r->fold, r->class);
  const int64_t element = (int64_t)mix_dtype_size(r->dtype);
  const bool direct =
      (r->dtype == MIX_FLOAT32 || r->dtype == MIX_FLOAT64 || r->dtype == MIX_INT64) && width % 16 == 0;
  static const int steps[3] = {1, 1, 1};
  const int64_t chain = r->length <= ONE_CHAIN ? ONE_CHAIN : ROWS_IN_32;
  const int64_t lines_per_load = stride == width && width % 16 == 0 ? STRIP / width : 1,
                tile_element = (int64_t)mix_tile_class_size(r->class);
  for (int64_t i = 0; i < count; i += chain) {
    const int64_t end = count - i < chain ? count : i + chain;
    load(s->part, source + i * stride * element, width);
    for (int64_t line = i + 1; line < end; line++) {
      const char *row = source + line * stride * element;
      const int64_t index = (line - i - 1) % lines_per_load, /* in the tile */
          lines = end - line < lines_per_load ? end - line : lines_per_load;
      if (!direct && index == 0) load(s->tile, row, lines * width);
      const void *operands[3] = {s->part, direct ? row : s->tile + index * width * tile_element};
      fold(s->part, operands, steps, width, 0);
    }
    add_chain(r, s, width, i == 0);
  }
}

/* Stores the results of `columns` columns, whole tails, from the reduction of each. */
static void store_columns(const mix_reduction *r, void *result, int64_t first, const mix_folded *columns,
                          int64_t count) {
  for (int64_t j = 0; j < count; j += r->tail) {
    mix_folded all = columns[j];
    for (int64_t i = 1; i < r->tail; i++) all = mix_fold(r, all, columns[j + i]);
    mix_reduction_store(r, result, (first + j) / r->tail, all);
  }
}

/* Reduces rows [begin, end) of a narrow matrix: groups of rows side by side, then the rows of the group, then
 * the remaining rows. */
static void fold_narrow(const mix_reduction *r, const mix_vector *vector, strip *s, const char *source,
                        int64_t begin, int64_t end, mix_folded *result) {
  const int64_t group = STRIP / r->inner, element = (int64_t)mix_dtype_size(r->dtype), inner = r->inner;
  const int64_t groups = (end - begin) / group, rest = (end - begin) % group;
  const char *first = source + begin * inner * element;
  if (groups) {
    fold_lines(r, vector, s, first, group * inner, groups, group * inner);
    for (int64_t j = 0; j < inner; j++) {
      result[j] = s->total[j];
      for (int64_t i = 1; i < group; i++) result[j] = mix_fold(r, result[j], s->total[i * inner + j]);
    }
  }
  if (rest) {
    fold_lines(r, vector, s, first + groups * group * inner * element, inner, rest, inner);
    for (int64_t j = 0; j < inner; j++)
      result[j] = groups ? mix_fold(r, result[j], s->total[j]) : s->total[j];
  }
}

static void run_narrow(const mix_reduction *r, const mix_vector *vector, const char *source, void *result,
                       mix_folded *partials, const mix_team *team) {
  strip s;
  memset(s.part, 0, sizeof s.part);
  memset(s.tile, 0, sizeof s.tile);
  mix_folded own[MIX_COLUMN_NARROW];
  const int64_t blocks = blocks_of(r), rows = rows_of_block(r),
                matrix = r->length * r->inner * (int64_t)mix_dtype_size(r->dtype);
  int64_t begin, end;
  mix_team_share(team, r->outer * blocks, 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t outer = i / blocks, from = i % blocks * rows,
                  to = from + rows < r->length ? from + rows : r->length;
    mix_folded *sums = blocks > 1 ? partials + i * r->inner : own;
    fold_narrow(r, vector, &s, source + outer * matrix, from, to, sums);
    if (blocks == 1) store_columns(r, result, outer * r->inner, sums, r->inner);
  }
  if (blocks == 1) return;
  if (team->size > 1) mix_team_barrier(team);
  mix_team_share(team, r->outer * r->inner / r->tail, 64, &begin, &end);
  for (int64_t i = begin * r->tail; i < end * r->tail; i += r->tail) {
    const mix_folded *first = partials + i / r->inner * blocks * r->inner + i % r->inner;
    for (int64_t j = 0; j < r->tail; j++) {
      own[j] = first[j];
      for (int64_t b = 1; b < blocks; b++) own[j] = mix_fold(r, own[j], first[b * r->inner + j]);
    }
    store_columns(r, result, i, own, r->tail);
  }
}

void mix_reduce_columns(const mix_reduction *r, const mix_vector *vector, const void *source, void *result,
                        void *workspace, const mix_team *team) {
  if (is_narrow(r)) {
    run_narrow(r, vector, source, result, workspace, team);
    return;
  }
  strip s;
  memset(s.part, 0, sizeof s.part);
  memset(s.tile, 0, sizeof s.tile);
  /* At least one strip for each thread. The sum of a column does not depend on its strip. */
  const int64_t element = (int64_t)mix_dtype_size(r->dtype), even = (r->inner + team->size - 1) / team->size;
  const int64_t whole = even < STRIP ? (even + 63) / 64 * 64 : STRIP,
                width = whole < r->tail ? r->tail : whole / r->tail * r->tail,
                strips = (r->inner + width - 1) / width;
  int64_t begin, end;
  mix_team_share(team, r->outer * strips, 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t outer = i / strips, column = i % strips * width,
                  columns = r->inner - column < width ? r->inner - column : width;
    const char *first = (const char *)source + (outer * r->length * r->inner + column) * element;
    fold_lines(r, vector, &s, first, r->inner, r->length, columns);
    store_columns(r, result, outer * r->inner + column, s.total, columns);
  }
}
