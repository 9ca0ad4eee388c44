/* Template: sums of products of rows, for convolutions channel by channel. Included after
 * biased_rows.inc.h. */

/* Blocks of four vectors: as many sums are under way as the multiply-adds need to overlap. */
#define SUM_PRODUCTS(name, type_a, element_a, type_b, element_b)                                             \
  static void name(float *sums, const void *a, const void *b, const mix_row_products *p, int64_t n) {        \
    enum { VECTORS = 4 };                                                                                    \
    const element_a *x = a;                                                                                  \
    const element_b *y = b;                                                                                  \
    int64_t i = 0;                                                                                           \
    for (; i + VECTORS * LANES <= n; i += VECTORS * LANES) {                                                 \
      vf c[VECTORS] = {v_set(0), v_set(0), v_set(0), v_set(0)};                                              \
      for (int64_t o = 0; o < p->outer; o++)                                                                 \
        for (int64_t t = 0; t < p->inner; t++) {                                                             \
          const element_a *from = x + o * p->a_outer + t * p->a_inner + i;                                   \
          const element_b *with = y + o * p->b_outer + t * p->b_inner + i;                                   \
          for (int j = 0; j < VECTORS; j++)                                                                  \
            V_ACCUMULATE(c[j], v_load_##type_a(from + j * LANES), v_load_##type_b(with + j * LANES));        \
        }                                                                                                    \
      for (int j = 0; j < VECTORS; j++) v_store(sums + i + j * LANES, c[j]);                                 \
    }                                                                                                        \
    for (; i + LANES <= n; i += LANES) {                                                                     \
      vf c = v_set(0);                                                                                       \
      for (int64_t o = 0; o < p->outer; o++)                                                                 \
        for (int64_t t = 0; t < p->inner; t++)                                                               \
          V_ACCUMULATE(c, v_load_##type_a(x + o * p->a_outer + t * p->a_inner + i),                          \
                       v_load_##type_b(y + o * p->b_outer + t * p->b_inner + i));                            \
      v_store(sums + i, c);                                                                                  \
    }                                                                                                        \
    if (i == n) return;                                                                                      \
    const v_part part = v_first(n - i);                                                                      \
    vf c = v_set(0);                                                                                         \
    for (int64_t o = 0; o < p->outer; o++)                                                                   \
      for (int64_t t = 0; t < p->inner; t++)                                                                 \
        V_ACCUMULATE(c, v_load_##type_a##_part(x + o * p->a_outer + t * p->a_inner + i, part),               \
                     v_load_##type_b##_part(y + o * p->b_outer + t * p->b_inner + i, part));                 \
    v_store_part(sums + i, c, part);                                                                         \
  }
SUM_PRODUCTS(sum_products_f32, f32, float, f32, float)
SUM_PRODUCTS(sum_products_f16, f16, uint16_t, f16, uint16_t)
SUM_PRODUCTS(sum_products_bf16, bf16, uint16_t, bf16, uint16_t)
SUM_PRODUCTS(sum_weighted_f16, f16, uint16_t, f32, float)
SUM_PRODUCTS(sum_weighted_bf16, bf16, uint16_t, f32, float)

/* Where the elements of a for `i` and the vectors behind it lie: a vector of a row, never past the row's end,
 * of which v_permute takes the lanes. Two vectors of b need no more than one of a. */
typedef struct repeat_place {
  int64_t from;
  vi lanes[2];
} repeat_place;
SIMD_INLINE repeat_place place_repeated(const mix_repeat *repeat, int64_t element, int64_t rest) {
  const int64_t last = repeat->count - LANES;
  repeat_place place = {.from = element < last ? element : last > 0 ? last : 0};
  for (int j = 0; j < 2; j++) {
    memcpy(&place.lanes[j], repeat->quotients + rest + j * LANES, sizeof place.lanes[j]);
    place.lanes[j] += v_set_integer((int32_t)(element - place.from));
  }
  return place;
}

/* As above. `narrow`: rows of a shorter than a vector. */
#define SUM_REPEATED(name, type_a, element_a, type_b, element_b)                                             \
  SIMD_INLINE vf name##_load(const element_a *from, const mix_repeat *repeat, bool narrow) {                 \
    return narrow ? v_load_##type_a##_part(from, v_first(repeat->count)) : v_load_##type_a(from);            \
  }                                                                                                          \
  SIMD_INLINE void name##_rows(float *sums, const element_a *x, const element_b *y,                          \
                               const mix_row_products *p, const mix_repeat *repeat, int64_t n,               \
                               bool narrow) {                                                                \
    enum { PAIRS = 2, STEP = 2 * LANES };                                                                    \
    const int64_t times = repeat->times;                                                                     \
    int64_t i = 0, element = repeat->first, rest = 0;                                                        \
    for (; i + PAIRS * STEP <= n; i += PAIRS * STEP) {                                                       \
      repeat_place at[PAIRS];                                                                                \
      for (int h = 0; h < PAIRS; h++) {                                                                      \
        at[h] = place_repeated(repeat, element, rest);                                                       \
        const int64_t whole = repeat->quotients[rest + STEP];                                                \
        element += whole, rest += STEP - whole * times;                                                      \
      }                                                                                                      \
      vf c[2 * PAIRS] = {v_set(0), v_set(0), v_set(0), v_set(0)};                                            \
      for (int64_t o = 0; o < p->outer; o++)                                                                 \
        for (int64_t t = 0; t < p->inner; t++) {                                                             \
          const element_a *from = x + o * p->a_outer + t * p->a_inner;                                       \
          const element_b *with = y + o * p->b_outer + t * p->b_inner + i;                                   \
          for (int h = 0; h < PAIRS; h++) {                                                                  \
            const vf elements = name##_load(from + at[h].from, repeat, narrow);                              \
            for (int j = 0; j < 2; j++)                                                                      \
              V_ACCUMULATE(c[2 * h + j], v_permute(elements, at[h].lanes[j]),                                \
                           v_load_##type_b(with + (2 * h + j) * LANES));                                     \
          }                                                                                                  \
        }                                                                                                    \
      for (int j = 0; j < 2 * PAIRS; j++) v_store(sums + i + j * LANES, c[j]);                               \
    }                                                                                                        \
    for (; i < n; i += LANES) {                                                                              \
      const repeat_place at = place_repeated(repeat, element, rest);                                         \
      const int64_t whole = repeat->quotients[rest + LANES];                                                 \
      element += whole, rest += LANES - whole * times;                                                       \
      const bool full = i + LANES <= n;                                                                      \
      const v_part part = v_first(full ? LANES : n - i);                                                     \
      vf c = v_set(0);                                                                                       \
      for (int64_t o = 0; o < p->outer; o++)                                                                 \
        for (int64_t t = 0; t < p->inner; t++) {                                                             \
          const element_a *from = x + o * p->a_outer + t * p->a_inner;                                       \
          const element_b *with = y + o * p->b_outer + t * p->b_inner + i;                                   \
          V_ACCUMULATE(c, v_permute(name##_load(from + at.from, repeat, narrow), at.lanes[0]),               \
                       full ? v_load_##type_b(with) : v_load_##type_b##_part(with, part));                   \
        }                                                                                                    \
      if (full)                                                                                              \
        v_store(sums + i, c);                                                                                \
      else                                                                                                   \
        v_store_part(sums + i, c, part);                                                                     \
    }                                                                                                        \
  }                                                                                                          \
  static void name(float *sums, const void *a, const void *b, const mix_row_products *p,                     \
                   const mix_repeat *repeat, int64_t n) {                                                    \
    if (repeat->count < LANES)                                                                               \
      name##_rows(sums, a, b, p, repeat, n, true);                                                           \
    else                                                                                                     \
      name##_rows(sums, a, b, p, repeat, n, false);                                                          \
  }
SUM_REPEATED(sum_repeated_f32, f32, float, f32, float)
SUM_REPEATED(sum_repeated_f16, f16, uint16_t, f16, uint16_t)
SUM_REPEATED(sum_repeated_bf16, bf16, uint16_t, bf16, uint16_t)
SUM_REPEATED(sum_repeated_weighted_f16, f16, uint16_t, f32, float)
SUM_REPEATED(sum_repeated_weighted_bf16, bf16, uint16_t, f32, float)

SIMD_INLINE void sum_each(float *sums, const float *x, int64_t times, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    float sum = x[i * times];
    for (int64_t j = 1; j < times; j++) sum += x[i * times + j];
    sums[i] = sum;
  }
}
/* A compiler makes vectors of the sums where it knows how many numbers one has. */
static void sum_neighbours(float *restrict sums, const float *restrict x, int64_t times, int64_t n) {
  switch (times) {
  case 2: sum_each(sums, x, 2, n); break;
  case 3: sum_each(sums, x, 3, n); break;
  case 4: sum_each(sums, x, 4, n); break;
  default: sum_each(sums, x, times, n); break;
  }
}

/* Cells of a line lie side by side, of which the first and the last two columns may be outside. */
#define OUTSIDE(p, j) ((j < 2 || j >= MIX_CELLS) && ((p)->column + j < 0 || (p)->column + j >= (p)->columns))

/* Each vector of the image is read, and widened, once for all cells that see it, whose sums stay in
 * registers. Columns come in the order of the kernel's, and so do the terms of each sum. The next cells' part
 * of the last row is fetched ahead: lines of several columns by turns are no pattern that the processor
 * foresees. Sums that are stored get their bias while they are in registers: a pass of its own over them
 * took a third of the time. */
#define SUM_CELLS(name, type, element, load, store)                                                          \
  SIMD_INLINE void name##_columns(void *results, const element *a, const float *b,                           \
                                  const mix_cell_products *p, int64_t n, bool backwards) {                   \
    enum { WIDTH = 3, COLUMNS = MIX_CELLS + WIDTH - 1, LINE = 64 };                                          \
    const uintptr_t next =                                                                                   \
        (uintptr_t)(a + (p->rows - 1) * p->a_row) + (uintptr_t)((p->column + COLUMNS) * n) * sizeof *a;      \
    for (int64_t at = 0; at < n; at += LANES) {                                                              \
      const int64_t i = at + LANES <= n ? at : n - LANES;                                                    \
      for (uintptr_t l = 0; l < MIX_CELLS * LANES * sizeof *a; l += LINE)                                    \
        __builtin_prefetch((const void *)(next + (uintptr_t)(i * MIX_CELLS) * sizeof *a + l));               \
      vf c[MIX_CELLS];                                                                                       \
      for (int t = 0; t < MIX_CELLS; t++) c[t] = v_set(0);                                                   \
      for (int64_t row = 0; row < p->rows; row++) {                                                          \
        const int64_t from = row * p->a_row + p->column * n + i;                                             \
        vf w[WIDTH];                                                                                         \
        for (int k = 0; k < WIDTH; k++) w[k] = v_load(b + row * p->b_row + k * n + i);                       \
        _Pragma("GCC unroll 9") for (int step = 0; step < COLUMNS; step++) {                                 \
          const int j = backwards ? COLUMNS - 1 - step : step;                                               \
          if (OUTSIDE(p, j)) continue;                                                                       \
          const vf x = load(a + (from + j * n));                                                             \
          _Pragma("GCC unroll 3") for (int k = 0; k < WIDTH; k++) {                                          \
            const int t = backwards ? j + k - (WIDTH - 1) : j - k;                                           \
            if (t >= 0 && t < MIX_CELLS) V_ACCUMULATE(c[t], x, w[k]);                                        \
          }                                                                                                  \
        }                                                                                                    \
      }                                                                                                      \
      if (p->bias) {                                                                                         \
        const vf bias = load((const element *)p->bias + i);                                                  \
        for (int t = 0; t < MIX_CELLS; t++) c[t] = biased_##type(c[t], bias, p->relu);                       \
      }                                                                                                      \
      for (int t = 0; t < MIX_CELLS; t++)                                                                    \
        if (p->stores)                                                                                       \
          store((element *)results + t * n + i, c[t]);                                                       \
        else                                                                                                 \
          v_store((float *)results + t * n + i, c[t]);                                                       \
    }                                                                                                        \
  }                                                                                                          \
  static void name(void *results, const void *a, const float *b, const mix_cell_products *p, int64_t n) {    \
    if (p->backwards)                                                                                        \
      name##_columns(results, a, b, p, n, true);                                                             \
    else                                                                                                     \
      name##_columns(results, a, b, p, n, false);                                                            \
  }
#if SIMD_MASKS /* where sums are narrower, this loses where images come from memory */
SUM_CELLS(sum_cells_f32, f32, float, v_load_numbers, v_store_numbers)
#else
#define sum_cells_f32 NULL
#endif
SUM_CELLS(sum_cells_f16, f16, uint16_t, v_load_f16, v_store_f16)
SUM_CELLS(sum_cells_bf16, bf16, uint16_t, v_load_bf16, v_store_bf16)

/* The same for two lines at once, under a kernel of three lines: the image's lines between them are read once
 * for both. p->rows is 4, those of the image; `second` are those of the line that sees the last one. */
#define SUM_TWO_LINES(name, type, element)                                                                   \
  SIMD_INLINE void name##_columns(void *first, void *second, const element *a, const float *b,               \
                                  const mix_cell_products *p, int64_t n, bool backwards) {                   \
    enum { WIDTH = 3, ROWS = 3, COLUMNS = MIX_CELLS + WIDTH - 1, LINE = 64 };                                \
    const uintptr_t next =                                                                                   \
        (uintptr_t)(a + ROWS * p->a_row) + (uintptr_t)((p->column + COLUMNS) * n) * sizeof *a;               \
    for (int64_t at = 0; at < n; at += LANES) {                                                              \
      const int64_t i = at + LANES <= n ? at : n - LANES;                                                    \
      for (uintptr_t l = 0; l < MIX_CELLS * LANES * sizeof *a; l += LINE) {                                  \
        const uintptr_t line = next + (uintptr_t)(i * MIX_CELLS) * sizeof *a + l;                            \
        __builtin_prefetch((const void *)line);                                                              \
        __builtin_prefetch((const void *)(line - (uintptr_t)p->a_row * sizeof *a));                          \
      }                                                                                                      \
      vf c[2][MIX_CELLS], w[2][WIDTH];                                                                       \
      for (int t = 0; t < MIX_CELLS; t++) c[0][t] = c[1][t] = v_set(0);                                      \
      _Pragma("GCC unroll 4") for (int row = 0; row <= ROWS; row++) {                                        \
        const int64_t from = row * p->a_row + p->column * n + i;                                             \
        for (int k = 0; k < WIDTH; k++) {                                                                    \
          w[1][k] = w[0][k];                                                                                 \
          if (row < ROWS) w[0][k] = v_load(b + row * p->b_row + k * n + i);                                  \
        }                                                                                                    \
        _Pragma("GCC unroll 9") for (int step = 0; step < COLUMNS; step++) {                                 \
          const int j = backwards ? COLUMNS - 1 - step : step;                                               \
          if (OUTSIDE(p, j)) continue;                                                                       \
          const vf x = v_load_##type(a + (from + j * n));                                                    \
          _Pragma("GCC unroll 3") for (int k = 0; k < WIDTH; k++) {                                          \
            const int t = backwards ? j + k - (WIDTH - 1) : j - k;                                           \
            if (t < 0 || t >= MIX_CELLS) continue;                                                           \
            if (row < ROWS) V_ACCUMULATE(c[0][t], x, w[0][k]);                                               \
            if (row > 0) V_ACCUMULATE(c[1][t], x, w[1][k]);                                                  \
          }                                                                                                  \
        }                                                                                                    \
      }                                                                                                      \
      if (p->bias) {                                                                                         \
        const vf bias = v_load_##type((const element *)p->bias + i);                                         \
        for (int t = 0; t < MIX_CELLS; t++) {                                                                \
          v_round_##type##_both(&c[0][t], &c[1][t]);                                                         \
          c[0][t] += bias, c[1][t] += bias;                                                                  \
        }                                                                                                    \
        for (int t = 0; t < MIX_CELLS && p->relu; t++)                                                       \
          for (int l = 0; l < 2; l++) c[l][t] = zero_if(v_lt(c[l][t], v_set(0)), c[l][t]);                   \
      }                                                                                                      \
      for (int t = 0; t < MIX_CELLS; t++) {                                                                  \
        const int64_t cell = t * n + i;                                                                      \
        if (p->stores)                                                                                       \
          v_store_##type##_both((element *)first + cell, (element *)second + cell, c[0][t], c[1][t]);        \
        else                                                                                                 \
          v_store((float *)first + cell, c[0][t]), v_store((float *)second + cell, c[1][t]);                 \
      }                                                                                                      \
    }                                                                                                        \
  }                                                                                                          \
  static void name(void *first, void *second, const void *a, const float *b, const mix_cell_products *p,     \
                   int64_t n) {                                                                              \
    if (p->backwards)                                                                                        \
      name##_columns(first, second, a, b, p, n, true);                                                       \
    else                                                                                                     \
      name##_columns(first, second, a, b, p, n, false);                                                      \
  }
#if SIMD_REGISTERS == 32 && SIMD_MASKS /* 21 vectors at once */
SIMD_INLINE void v_round_f32_both(vf *x, vf *y) { (void)x, (void)y; }
SIMD_INLINE void v_store_f32_both(float *p, float *q, vf x, vf y) { v_store(p, x), v_store(q, y); }
SUM_TWO_LINES(sum_two_lines_f32, f32, float)
SUM_TWO_LINES(sum_two_lines_bf16, bf16, uint16_t)
#else
#define sum_two_lines_f32 NULL
#define sum_two_lines_bf16 NULL
#endif

/* Sums of all cells of up to three lines of a kernel three cells wide stay in registers over a line of cells;
 * where neighbours see the same columns of the image, these do too. `part`: of the vector's numbers. */
#define SUM_TAPS(name, type, element)                                                                        \
  SIMD_INLINE vf name##_load(const element *from, bool whole, v_part part) {                                 \
    return whole ? v_load_##type(from) : v_load_##type##_part(from, part);                                   \
  }                                                                                                          \
  SIMD_INLINE void name##_vector(const int rows, const bool whole, const bool shares, float *sums,           \
                                 const element *x, const element *dy, const mix_tap_products *p,             \
                                 v_part part) {                                                              \
    enum { WIDTH = 3 };                                                                                      \
    vf c[3][WIDTH];                                                                                          \
    SIMD_UNROLL                                                                                              \
    for (int r = 0; r < rows; r++) SIMD_UNROLL                                                               \
    for (int k = 0; k < WIDTH; k++) c[r][k] = v_load(sums + (r * WIDTH + k) * p->sums_step);                 \
    for (int64_t t = 0; t < p->cells;) {                                                                     \
      if (t == p->first && t < p->end) {                                                                     \
        const element *at = x + (p->x_first + t * p->x_cell);                                                \
        vf seen[3][WIDTH];                                                                                   \
        SIMD_UNROLL                                                                                          \
        for (int r = 0; r < rows && shares; r++) SIMD_UNROLL                                                 \
        for (int k = 0; k + 1 < WIDTH; k++)                                                                  \
          seen[r][k + 1] = name##_load(at + r * p->x_row + k * p->x_tap, whole, part);                       \
        for (; t < p->end; t++, at += p->x_cell) {                                                           \
          const vf y = name##_load(dy + t * p->dy_cell, whole, part);                                        \
          SIMD_UNROLL                                                                                        \
          for (int r = 0; r < rows; r++) SIMD_UNROLL                                                         \
          for (int k = 0; k < WIDTH; k++) {                                                                  \
            if (shares && k + 1 < WIDTH)                                                                     \
              seen[r][k] = seen[r][k + 1];                                                                   \
            else                                                                                             \
              seen[r][k] = name##_load(at + r * p->x_row + k * p->x_tap, whole, part);                       \
            V_ACCUMULATE(c[r][k], seen[r][k], y);                                                            \
          }                                                                                                  \
        }                                                                                                    \
        continue;                                                                                            \
      }                                                                                                      \
      const vf y = name##_load(dy + t * p->dy_cell, whole, part);                                            \
      SIMD_UNROLL                                                                                            \
      for (int k = 0; k < WIDTH; k++) {                                                                      \
        const int64_t column = p->column + t * p->column_cell + k * p->column_tap;                           \
        if (column < 0 || column >= p->columns) continue;                                                    \
        const element *from = x + (p->x_first + t * p->x_cell + k * p->x_tap);                               \
        SIMD_UNROLL                                                                                          \
        for (int r = 0; r < rows; r++)                                                                       \
          V_ACCUMULATE(c[r][k], name##_load(from + r * p->x_row, whole, part), y);                           \
      }                                                                                                      \
      t++;                                                                                                   \
    }                                                                                                        \
    SIMD_UNROLL                                                                                              \
    for (int r = 0; r < rows; r++) SIMD_UNROLL                                                               \
    for (int k = 0; k < WIDTH; k++) v_store(sums + (r * WIDTH + k) * p->sums_step, c[r][k]);                 \
  }                                                                                                          \
  static void name(float *sums, const void *image, const void *gradient, const mix_tap_products *p,          \
                   int64_t n) {                                                                              \
    const element *x = image, *dy = gradient;                                                                \
    int64_t i = 0;                                                                                           \
    for (; i + LANES <= n; i += LANES)                                                                       \
      if (p->rows < 3)                                                                                       \
        for (int64_t r = 0; r < p->rows; r++)                                                                \
          name##_vector(1, true, false, sums + r * 3 * p->sums_step + i, x + r * p->x_row + i, dy + i, p,    \
                        v_first(LANES));                                                                     \
      else if (p->x_cell == p->x_tap)                                                                        \
        name##_vector(3, true, true, sums + i, x + i, dy + i, p, v_first(LANES));                            \
      else                                                                                                   \
        name##_vector(3, true, false, sums + i, x + i, dy + i, p, v_first(LANES));                           \
    for (int64_t r = 0; i < n && r < p->rows; r++)                                                           \
      name##_vector(1, false, false, sums + r * 3 * p->sums_step + i, x + r * p->x_row + i, dy + i, p,       \
                    v_first(n - i));                                                                         \
  }
#if SIMD_REGISTERS == 32 || SIMD_BYTES > 16
SUM_TAPS(sum_taps_f32, f32, float)
SUM_TAPS(sum_taps_f16, f16, uint16_t)
SUM_TAPS(sum_taps_bf16, bf16, uint16_t)
#else
#define sum_taps_f32 NULL
#define sum_taps_f16 NULL
#define sum_taps_bf16 NULL
#endif
