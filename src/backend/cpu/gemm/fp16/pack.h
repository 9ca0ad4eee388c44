/* Template: packs operands as scaled float16 panels (fp16.h). Each step of a panel is read twice: first for
 * its largest magnitude, which gives the scale, then from a cache. A step of a single panel is copied in
 * between, since rows of an operand often share a few sets of a cache.
 *
 * The including file has included a vectors_*.h and scaling.h, and defines
 *   convert(x, s, kind)                            words as scaled float16
 *   convert_to_columns(raw, count, s, to, kind)    transposes columns of B, up to a whole LINE of them
 *   convert_to_rows(raw, s, to, kind)              the same of FP16_ROW_SLOTS rows of A
 *   convert_rows(p, from, panels, starts, depth, s, packed, panel_elements, kind)
 *                                                  rows of A where k goes from row to row */
enum { VECTORS = FP16_NR / WORDS };

/* ---- k along memory: one panel at a time, transposed ---- */

/* Copies `count` rows of `depth` numbers; returns their largest magnitude. */
SIMD_INLINE unsigned copy_rows(const mix_fp16_packing *p, const uint16_t *from, int count, int depth,
                               raw_step *raw) {
  const words unused = w_zero();
  const int whole = (depth - 1) / WORDS * WORDS; /* all words but the last vector's */
  const w_part last = w_first(depth - whole);
  words so_far = w_zero(), so_far_last = so_far;
  uint16_t *to = raw->memory;
  raw->words = whole + WORDS;
  for (int i = 0; i < count; i++, from += p->stride, to += raw->words) {
    for (int k = 0; k < whole; k += WORDS) {
      const words x = w_load_any(from + k);
      so_far = larger(so_far, x, false, unused);
      w_store(to + k, x);
    }
    const words x = w_load_part(from + whole, last);
    so_far_last = larger(so_far_last, x, false, unused);
    w_store(to + whole, x);
    for (int k = 0; k <= whole; k += LINE)
      __builtin_prefetch(from + p->step + k, 0, 2); /* the next step of this row */
  }
  return w_largest(w_max(so_far, so_far_last));
}

/* Rows of A that stay rows. */
SIMD_INLINE void convert_as_rows(const raw_step *raw, int count, const scaling *s, uint16_t *to,
                                 const enum kind kind) {
  const uint16_t *from = raw->memory;
  for (int i = 0; i < count; i++, to += FP16_MAX_STEP)
    for (int k = 0; k < raw->words; k += WORDS, from += WORDS)
      w_store(to + k, convert(w_load(from), s, kind));
}

/* `slots` 0: as rows. */
SIMD_INLINE void convert_along(const raw_step *raw, int count, int slots, const scaling *s, uint16_t *to,
                               const enum kind kind) {
  if (!slots)
    convert_as_rows(raw, count, s, to, kind);
  else if (slots == FP16_ROW_SLOTS)
    convert_to_rows(raw, s, to, kind);
  else
    convert_to_columns(raw, count, s, to, kind);
}

#define CONVERT_ALONG(name, kind)                                                                            \
  static void convert_along_##name(const raw_step *raw, int count, int slots, const scaling *s,              \
                                   uint16_t *to) {                                                           \
    convert_along(raw, count, slots, s, to, kind);                                                           \
  }
CONVERT_ALONG(f16, FROM_F16)
CONVERT_ALONG(f16_careful, FROM_F16_CAREFUL)
CONVERT_ALONG(bf16, FROM_BF16)
CONVERT_ALONG(bf16_careful, FROM_BF16_CAREFUL)

static void pack_along(const mix_fp16_packing *p, int64_t start, int count, int64_t first, int64_t depth,
                       uint16_t *packed, float *scales) {
  static void (*const converts[])(const raw_step *, int, int, const scaling *, uint16_t *) = {
      convert_along_f16, convert_along_f16_careful, convert_along_bf16, convert_along_bf16_careful};
  const uint16_t *from = p->source + start * p->stride + first;
  const int padded = p->slots == FP16_ROW_SLOTS ? FP16_ROW_SLOTS : (count + LINE - 1) / LINE * LINE;
  raw_step raw;
  for (int64_t k = 0; k < depth; k += p->step, from += p->step) {
    const int some = depth - k < p->step ? (int)(depth - k) : p->step;
    scaling s;
    const enum kind kind =
        choose_scaling(p, copy_rows(p, from, count, some, &raw), &raw, count, &s, scales++);
    if (!p->as_rows)
      memset(raw.memory + count * raw.words, 0, (size_t)((padded - count) * raw.words) * sizeof *raw.memory);
    uint16_t *to = packed + k * p->slots;
    if (p->as_rows) to -= k % FP16_MAX_STEP * (p->slots - 1);
    converts[kind](&raw, count, p->as_rows ? 0 : p->slots, &s, to);
  }
}

/* ---- k from row to row, columns of B: one panel at a time ---- */

/* Copies `depth` rows of a panel's `count` columns; returns their largest magnitude. */
SIMD_INLINE unsigned copy_columns(const mix_fp16_packing *p, const uint16_t *from, int count, int depth,
                                  raw_step *raw) {
  const words unused = w_zero();
  words so_far[VECTORS];
  w_part parts[VECTORS];
  SIMD_UNROLL
  for (int v = 0; v < VECTORS; v++) so_far[v] = w_zero(), parts[v] = w_first(count - v * WORDS);
  raw->words = FP16_NR;
  uint16_t *to = raw->memory;
  for (int k = 0; k < depth; k++, from += p->stride, to += FP16_NR) {
    SIMD_UNROLL
    for (int v = 0; v < VECTORS; v++) {
      const words x = w_load_part(from + v * WORDS, parts[v]);
      so_far[v] = larger(so_far[v], x, false, unused);
      w_store(to + v * WORDS, x);
    }
  }
  words all = so_far[0];
  for (int v = 1; v < VECTORS; v++) all = w_max(all, so_far[v]);
  return w_largest(all);
}

/* Scales the rows of a step. */
SIMD_INLINE void scale(const raw_step *raw, int depth, const scaling *s, uint16_t *to, const enum kind kind) {
  for (int k = 0; k < depth * FP16_NR; k += WORDS) w_store(to + k, convert(w_load(raw->memory + k), s, kind));
}

#define SCALE(name, kind)                                                                                    \
  static void scale_##name(const raw_step *raw, int depth, const scaling *s, uint16_t *to) {                 \
    scale(raw, depth, s, to, kind);                                                                          \
  }
SCALE(f16, FROM_F16)
SCALE(f16_careful, FROM_F16_CAREFUL)
SCALE(bf16, FROM_BF16)
SCALE(bf16_careful, FROM_BF16_CAREFUL)

/* Prefetches all columns of some rows: memory is faster with whole rows than with a panel's part of each. */
SIMD_INLINE void prefetch_rows(const mix_fp16_packing *p, const uint16_t *from, int64_t first, int64_t end,
                               int64_t columns) {
  for (from += first * p->stride; first < end; first++, from += p->stride)
    for (int64_t j = 0; j < columns; j += LINE) __builtin_prefetch(from + j, 0, 2);
}

static void pack_columns_across(const mix_fp16_packing *p, int panels, const int64_t *starts, int64_t first,
                                int64_t depth, uint16_t *packed, int64_t panel_elements, float *scales,
                                int64_t panel_scales) {
  static void (*const scale_as[])(const raw_step *, int, const scaling *, uint16_t *) = {
      scale_f16, scale_f16_careful, scale_bf16, scale_bf16_careful};
  const uint16_t *from = p->source + first * p->stride + starts[0];
  const int64_t columns = starts[panels] - starts[0];
  raw_step raw;
  for (int64_t k = 0; k < depth; k += p->step, scales++) {
    const int some = depth - k < p->step ? (int)(depth - k) : p->step;
    const uint16_t *next = from + p->step * p->stride;
    const int64_t left = depth - k - some, more = left < p->step ? left : p->step;
    for (int i = 0; i < panels; i++) {
      prefetch_rows(p, next, more * i / panels, more * (i + 1) / panels, columns);
      const int count = (int)(starts[i + 1] - starts[i]);
      scaling s;
      const unsigned magnitude = copy_columns(p, from + starts[i] - starts[0], count, some, &raw);
      const enum kind kind = choose_scaling(p, magnitude, &raw, some, &s, scales + i * panel_scales);
      scale_as[kind](&raw, some, &s, packed + i * panel_elements + k * FP16_NR);
    }
    from = next;
  }
  for (int i = 0; i < panels; i++)
    for (int64_t k = depth * FP16_NR; k % (ROUND * FP16_NR); k += WORDS)
      w_store(packed + i * panel_elements + k, w_zero());
}

/* ---- k from row to row, rows of A: several panels at a time, so that whole rows of memory are read ---- */

/* The largest magnitude of each panel, by way of the largest of each lane. */
SIMD_INLINE void largest_across(const mix_fp16_packing *p, const uint16_t *from, int panels,
                                const int64_t *starts, int depth, unsigned *magnitudes, const bool careful) {
  const words not_finite = w_set((int)first_not_finite(p->dtype));
  const int64_t width = starts[panels] - starts[0], vectors = (width + WORDS - 1) / WORDS,
                last = (vectors - 1) * WORDS;
  words so_far[FP16_MAX_PANELS * VECTORS];
  uint16_t lanes[FP16_MAX_PANELS * FP16_NR];
  for (int64_t v = 0; v < vectors; v++) so_far[v] = w_zero();
  from += starts[0];
  for (int k = 0; k < depth; k++, from += p->stride) {
    for (int64_t v = 0; v < vectors - 1; v++)
      so_far[v] = larger(so_far[v], w_load_any(from + v * WORDS), careful, not_finite);
    so_far[vectors - 1] =
        larger(so_far[vectors - 1], w_load_part(from + last, w_first(width - last)), careful, not_finite);
  }
  memcpy(lanes, so_far, (size_t)vectors * sizeof *so_far);
  for (int i = 0; i < panels; i++) {
    const int64_t own = starts[i + 1] - starts[i];
    const uint16_t *first = lanes + starts[i] - starts[0];
    words all = w_load_part(first, w_first(own));
    for (int v = 1; v < VECTORS; v++)
      all = w_max(all, w_load_part(first + v * WORDS, w_first(own - v * WORDS)));
    magnitudes[i] = w_largest(all);
  }
}

#define CONVERT_ROWS(name, kind)                                                                             \
  static void convert_rows_##name(const mix_fp16_packing *p, const uint16_t *from, int panels,               \
                                  const int64_t *starts, int depth, const scaling *s, uint16_t *packed,      \
                                  int64_t panel_elements) {                                                  \
    convert_rows(p, from, panels, starts, depth, s, packed, panel_elements, kind);                           \
  }
CONVERT_ROWS(f16, FROM_F16)
CONVERT_ROWS(f16_careful, FROM_F16_CAREFUL)
CONVERT_ROWS(bf16, FROM_BF16)
CONVERT_ROWS(bf16_careful, FROM_BF16_CAREFUL)

static void pack_rows_across(const mix_fp16_packing *p, int panels, const int64_t *starts, int64_t first,
                             int64_t depth, uint16_t *packed, int64_t panel_elements, float *scales,
                             int64_t panel_scales) {
  static void (*const converts[])(const mix_fp16_packing *, const uint16_t *, int, const int64_t *, int,
                                  const scaling *, uint16_t *, int64_t) = {
      convert_rows_f16, convert_rows_f16_careful, convert_rows_bf16, convert_rows_bf16_careful};
  const uint16_t *from = p->source + first * p->stride;
  for (int64_t k = 0; k < depth; k += p->step, from += p->step * p->stride, scales++) {
    const int some = depth - k < p->step ? (int)(depth - k) : p->step;
    unsigned magnitudes[FP16_MAX_PANELS];
    scaling s[FP16_MAX_PANELS];
    bool finite = true, any_down = false;
    largest_across(p, from, panels, starts, some, magnitudes, false);
    for (int i = 0; i < panels; i++) finite &= magnitudes[i] < first_not_finite(p->dtype);
    if (!finite) largest_across(p, from, panels, starts, some, magnitudes, true);
    for (int i = 0; i < panels; i++) {
      bool down;
      scales[i * panel_scales] = make_scaling(p, magnitudes[i], &s[i], &down);
      any_down |= down;
    }
    /* The careful conversion gives the same numbers for panels that do not need it. */
    const enum kind kind = p->dtype == MIX_FLOAT16 ? (any_down ? FROM_F16_CAREFUL : FROM_F16)
                           : finite                ? FROM_BF16
                                                   : FROM_BF16_CAREFUL;
    converts[kind](p, from, panels, starts, some, s, packed + k * p->slots, panel_elements);
  }
  for (int64_t k = depth; k % ROUND; k++)
    for (int i = 0; i < panels; i++)
      memset(packed + i * panel_elements + k * FP16_ROW_SLOTS, 0, FP16_ROW_SLOTS * sizeof *packed);
}

void mix_fp16_pack(const mix_fp16_packing *packing, int panels, const int64_t *starts, int64_t first,
                   int64_t depth, uint16_t *packed, int64_t panel_elements, float *scales,
                   int64_t panel_scales) {
  if (packing->across) {
    (packing->slots == FP16_NR ? pack_columns_across : pack_rows_across)(
        packing, panels, starts, first, depth, packed, panel_elements, scales, panel_scales);
    return;
  }
  for (int i = 0; i < panels; i++)
    pack_along(packing, starts[i], (int)(starts[i + 1] - starts[i]), first, depth,
               packed + i * panel_elements, scales + i * panel_scales);
}
