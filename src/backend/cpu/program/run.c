/* Runs prepared programs. A tile covers pieces (parts of rows) of the iteration space: one piece if rows are
 * long or all loads are contiguous, several whole rows if rows are short. A load fills its tile or points
 * into memory. Every instruction is one vectorised loop. Stores follow at the end of the tile; the step that
 * computes a value writes it directly if no later step loads the same memory. */
#include "backend/cpu/program/run_state.h"
#include "base/machine.h"
#include <math.h>
#include <string.h>

/* Is n a multiple of the group? Then instructions may access memory in place, without padding. */
static inline bool is_whole(const mix_tile_span *t) { return t->n % 16 == 0; }

/* Copies the first element over all n. */
static void fill_with(void *tile, size_t held, int64_t n) {
  if (held == 4) {
    typedef uint32_t four __attribute__((vector_size(16)));
    uint32_t *r = tile, value = r[0];
    const four values = {value, value, value, value};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
      memcpy(r + i, &values, sizeof values), memcpy(r + i + 4, &values, sizeof values);
    for (; i < n; i++) r[i] = value;
  } else {
    uint64_t *r = tile, value = r[0];
    for (int64_t i = 1; i < n; i++) r[i] = value;
  }
}

/* Where the load begins in its operand. */
static const char *operand_of(const mix_tile_load *load, const mix_kernel_args *args) {
  return (const char *)args->inputs[load->input] + load->offset;
}

/* Loads n elements with a stride. */
static void load_strided(const mix_tile_load *load, char *slot, const char *source, int64_t stride,
                         int64_t n) {
  if (stride == 1) {
    load->load(slot, source, n);
  } else if (stride == 0) {
    load->load(slot, source, 1);
    fill_with(slot, load->held, n);
  } else {
    uint64_t part[64]; /* gathered, at most 8 bytes each */
    const size_t element = load->element;
    for (int64_t i = 0; i < n; i += 64) {
      const int64_t m = n - i < 64 ? n - i : 64;
      for (int64_t j = 0; j < m; j++)
        memcpy((char *)part + (size_t)j * element, source + (i + j) * stride * (int64_t)element, element);
      load->load(slot + (size_t)i * load->held, part, m);
    }
  }
}

/* The element of the operand at position `flat` of the space. */
static int64_t offset_of(const mix_tile_program *p, const mix_tile_load *load, int64_t flat) {
  int64_t at = 0;
  for (int d = p->rank - 1; d > 0; d--) {
    const int64_t next = flat / p->dims[d];
    at += (flat - next * p->dims[d]) * load->strides[d];
    flat = next;
  }
  return at + flat * load->strides[0];
}

/* Goes on to the next row of the space: `row` are the indices of all dimensions but the last, `at` the
 * element of the operand. */
static int64_t next_row(const mix_tile_program *p, const mix_tile_load *load, int64_t *row, int64_t at) {
  for (int d = p->rank - 2; d >= 0; d--) {
    at += load->strides[d];
    if (++row[d] < p->dims[d]) break;
    at -= row[d] * load->strides[d];
    row[d] = 0;
  }
  return at;
}

static void load_general(const mix_tile_state *r, const mix_tile_load *load, char *slot, const char *source,
                         const mix_tile_span *t) {
  const mix_tile_program *p = r->p;
  const int64_t stride = load->strides[p->rank - 1];
  const bool rows = t->pieces > 1 && r->pitch == p->inner; /* pieces begin in consecutive rows */
  int64_t row[MIX_MAX_RANK], rest = t->row, at = offset_of(p, load, t->flat);
  for (int d = p->rank - 2; rows && d >= 0; rest /= p->dims[d--]) row[d] = rest % p->dims[d];
  for (int64_t i = 0; i < t->pieces; i++) {
    if (i) at = rows ? next_row(p, load, row, at) : offset_of(p, load, t->flat + i * r->pitch);
    load_strided(load, slot + (size_t)(i * t->length) * load->held, source + at * (int64_t)load->element,
                 stride, t->length);
  }
}

/* Instructions also compute the elements after the last one of a tile, in its group; the results are unused.
 * Zeros keep them cheap. */
static inline void pad(char *slot, size_t held, int64_t n) {
  const int64_t rest = n % 16;
  if (rest)
    memset(slot + (size_t)n * held, 0,
           (size_t)(16 - rest) * held < MIX_TILE_PADDING ? (size_t)(16 - rest) * held : MIX_TILE_PADDING);
}

/* Is the load used in place, in this tile and in the next one? */
static inline bool in_place(const mix_tile_program *p, const mix_tile_load *load, const mix_tile_span *t) {
  return p->streams && load->access == MIX_TILE_CONTIGUOUS && load->direct && t->dense && is_whole(t);
}

/* Adds the part of an operand or result that the next tile accesses. */
static void add_prefetch(mix_tile_state *r, const mix_tile_span *t, const void *memory, size_t element) {
  if (r->prefetch_count == MIX_TILE_PREFETCH) return;
  r->prefetch[r->prefetch_count].from = (const char *)memory + (t->flat + t->next) * (int64_t)element;
  r->prefetch[r->prefetch_count++].lines = (t->n * (int64_t)element + 63) / 64;
}

/* Sets up the prefetches to issue during tile `t`. */
static void plan_prefetch(mix_tile_state *r, const mix_tile_span *t) {
  const mix_tile_program *p = r->p;
  r->prefetch_count = r->prefetch_at = 0;
  r->prefetch_lines = 0;
  if (!t->next || !t->dense || !p->body_count) return;
  for (int l = 0; l < p->load_count; l++) {
    const mix_tile_load *load = &p->loads[l];
    if (load->used && load->access == MIX_TILE_CONTIGUOUS && !(load->fetched && in_place(p, load, t)))
      add_prefetch(r, t, operand_of(load, r->args), load->element);
  }
  for (int i = 0; i < p->store_count; i++)
    if (r->prefetch_store[i]) add_prefetch(r, t, r->args->outputs[p->stores[i].output], p->stores[i].element);
  int64_t lines = 0;
  for (int i = 0; i < r->prefetch_count; i++) lines += r->prefetch[i].lines;
  r->prefetch_lines = (lines + p->body_count - 1) / p->body_count;
}

/* Issues the prefetches of one step. */
static inline void issue_prefetch(mix_tile_state *r) {
  for (int64_t left = r->prefetch_lines; left > 0 && r->prefetch_at < r->prefetch_count;) {
    const int64_t lines = r->prefetch[r->prefetch_at].lines, n = lines < left ? lines : left;
    const char *from = r->prefetch[r->prefetch_at].from;
    for (int64_t i = 0; i < n; i++) __builtin_prefetch(from + 64 * i, 0, 3);
    r->prefetch[r->prefetch_at].from += 64 * n;
    r->prefetch[r->prefetch_at].lines -= n;
    r->prefetch_at += n == lines;
    left -= n;
  }
}

static void load_tile(mix_tile_state *r, const mix_tile_load *load, const mix_tile_span *t) {
  const mix_tile_program *p = r->p;
  char *slot = r->memory + p->home[load->reg];
  const char *source;
  int64_t pitch; /* of the pieces in memory */
  switch (load->access) {
  case MIX_TILE_ACCUMULATOR:
    source =
        r->accumulator + ((t->row - r->first_row) * r->accumulator_stride + t->column - r->first_column) *
                             (int64_t)load->element;
    pitch = r->accumulator_stride;
    break;
  case MIX_TILE_CONTIGUOUS:
    source = operand_of(load, r->args) + t->flat * (int64_t)load->element;
    pitch = r->pitch;
    break;
  case MIX_TILE_PERIODIC:
    if (r->expanded) return;
    source = operand_of(load, r->args);
    pitch = 0;
    if (t->pieces == 1 && load->strides[p->rank - 1] == 1 && r->pitch == p->inner) {
      source += t->column * (int64_t)load->element;
      break;
    }
    load_general(r, load, slot, source, t);
    pad(slot, load->held, t->n);
    return;
  default:
    load_general(r, load, slot, operand_of(load, r->args), t);
    pad(slot, load->held, t->n);
    return;
  }
  const bool dense = t->pieces == 1 || pitch == t->length;
  if (dense && load->direct && is_whole(t) && !(load->stored && r->overwrites)) {
    r->at[load->reg] = (void *)(uintptr_t)source;
    return;
  }
  r->at[load->reg] = slot;
  if (load->round && t->length % 16 == 0) { /* whole groups: rounds directly from memory */
    for (int64_t i = 0; i < (dense ? 1 : t->pieces); i++) {
      const void *operands[3] = {source + i * pitch * (int64_t)load->element};
      load->round(slot + (size_t)(i * t->length) * load->held, operands, (const int[3]){1},
                  dense ? t->n : t->length, 0);
    }
    return;
  }
  if (dense)
    load->load(slot, source, t->n);
  else
    for (int64_t i = 0; i < t->pieces; i++)
      load->load(slot + (size_t)(i * t->length) * load->held, source + i * pitch * (int64_t)load->element,
                 t->length);
  pad(slot, load->held, t->n);
  if (load->round) {
    const void *operands[3] = {slot};
    load->round(slot, operands, (const int[3]){1}, t->n, 0);
  }
}

static inline void run_step(mix_tile_state *r, const mix_tile_step *step, int64_t n) {
  const void *operands[3] = {r->at[step->operands[0]], r->at[step->operands[1]], r->at[step->operands[2]]};
  step->function(r->at[step->result], operands, step->steps, n,
                 step->by_packets ? r->packets : step->immediate);
}

/* Piece by piece, as far as their elements are not neighbours in the space. */
static void run_draws(mix_tile_state *r, const mix_tile_step *step, const mix_tile_span *t) {
  const int64_t pieces = t->dense ? 1 : t->pieces, length = t->dense ? t->n : t->length;
  float *const result = r->at[step->result];
  const float *const x = r->at[step->operands[0]];
  for (int64_t i = 0; i < pieces; i++) {
    const int64_t place = t->flat + i * r->pitch;
    const void *operands[] = {x + (step->steps[0] ? i * length : 0), r->at[step->operands[1]],
                              r->at[step->operands[2]], &place};
    step->function(result + i * length, operands, step->steps, length, step->immediate);
  }
}

/* The chain prefetches, for the next tile, the operands that it reads in place. */
static void run_chain(mix_tile_state *r, const mix_tile_step *step, const mix_tile_span *t) {
  const mix_fused_chain *chain = step->chain;
  const void *operands[MIX_CHAIN_OPERANDS];
  void *results[MIX_CHAIN_RESULTS];
  int64_t prefetch[MIX_CHAIN_OPERANDS] = {0};
  for (int k = 0; k < step->operand_count; k++) {
    const int reg = step->operands[k];
    operands[k] = r->at[reg];
    if (k < chain->vectors && reg < r->p->load_count && in_place(r->p, &r->p->loads[reg], t))
      prefetch[k] = t->next * (int64_t)sizeof(float);
  }
  for (int k = 0; k < chain->result_count; k++)
    results[k] = r->at[k < chain->result_count - 1 ? step->others[k] : step->result];
  chain->function(results, operands, prefetch, t->n, r->packets);
}

/* The number of elements of the tile that belong to whole SIMD packets of eight of the space (or more, if all
 * do). It depends on the place of the elements in the space, not on the tile size. */
static double whole_packets(const mix_tile_state *r, const mix_tile_span *t) {
  const int64_t left = r->p->count - r->p->count % 8 - t->flat, last = (t->pieces - 1) * r->pitch;
  if (t->dense || left >= last + t->length) return (double)left;
  const int64_t pieces = left > 0 ? left / r->pitch : 0, rest = left > 0 ? left % r->pitch : 0;
  return (double)(pieces * t->length + (rest < t->length ? rest : t->length));
}

static void run_tile(mix_tile_state *r, const mix_tile_span *t) {
  const mix_tile_program *p = r->p;
  const bool at_once = is_whole(t) && t->dense;
  if (p->streams) plan_prefetch(r, t);
  r->packets = whole_packets(r, t);
  for (int i = 0; i < p->store_count; i++) {
    const mix_tile_store *store = &p->stores[i];
    char *result = (char *)r->args->outputs[store->output] + t->flat * (int64_t)store->element;
    if (!r->direct_store[i]) continue;
    r->at[store->reg] = at_once ? result : r->memory + p->home[store->reg];
  }
  for (int i = 0; i < p->body_count; i++) {
    const mix_tile_step *step = &p->body[i];
    if (step->draws)
      run_draws(r, step, t);
    else if (step->function)
      run_step(r, step, t->n);
    else if (step->chain)
      run_chain(r, step, t);
    else
      load_tile(r, &p->loads[step->load], t);
    if (p->streams) issue_prefetch(r);
  }
  if (p->reduced >= 0) mix_tile_reduce(r, t);
  if (r->add_to_sums) r->add_to_sums(r, t);
  for (int i = 0; i < p->store_count; i++) {
    const mix_tile_store *store = &p->stores[i];
    if (r->direct_store[i] && at_once) continue;
    char *result = (char *)r->args->outputs[store->output] + t->flat * (int64_t)store->element;
    const char *value = r->at[store->reg];
    if (result == value) continue;
    const bool reread = store->output < 64 && r->reread >> store->output & 1;
    if (store->stream && at_once && !reread && !((uintptr_t)result % 64) && t->n % MIX_TILE_STREAMED == 0)
      store->stream(result, value, t->n), r->streamed = true;
    else if (t->dense)
      store->store(result, value, t->n);
    else
      for (int64_t j = 0; j < t->pieces; j++)
        store->store(result + j * r->pitch * (int64_t)store->element,
                     value + (size_t)(j * t->length) * store->held, t->length);
  }
}

static bool loads_what_is_stored(const mix_tile_load *load, const mix_tile_store *store,
                                 const mix_kernel_args *args) {
  return load->used && load->input != MIX_FROM_ACCUMULATOR &&
         args->inputs[load->input] == args->outputs[store->output];
}

/* A uniform value fills its group of MIX_TILE_PADDING bytes, for every vector width. */
void mix_tile_start(mix_tile_state *r, const mix_tile_program *p, const mix_kernel_args *args, char *memory) {
  r->p = p;
  r->args = args;
  r->memory = memory;
  r->pitch = p->inner;
  r->end_row = -1;
  r->streamed = false;
  r->reread = 0;
  r->expanded = false;
  r->overwrites = false;
  r->packets = 0;
  r->finite = true;
  r->tested = NULL;
  r->integer_sum = 0;
  r->adder.summed = 0;
  r->adder.total = 0;
  r->adder.pieces = NULL;
  r->add_to_sums = NULL;
  if (mix_tile_sums(p->program)) memset(r->adder.lanes, 0, sizeof r->adder.lanes);
  for (int i = 0; i < p->register_count; i++) r->at[i] = p->home[i] < 0 ? NULL : memory + p->home[i];
  for (int i = 0; i < p->preamble_count; i++) {
    const mix_tile_step *step = &p->preamble[i];
    if (step->function)
      run_step(r, step, 1);
    else
      p->loads[step->load].load(r->at[step->result], operand_of(&p->loads[step->load], args), 1);
    fill_with(r->at[step->result], (size_t)step->held, MIX_TILE_PADDING / step->held);
  }
  for (int i = 0; i < p->store_count; i++) {
    const mix_tile_store *store = &p->stores[i];
    r->direct_store[i] = store->defined_by >= 0;
    r->prefetch_store[i] = p->streams && !store->stream;
    for (int l = 0; l < p->load_count; l++) {
      if (!loads_what_is_stored(&p->loads[l], store, args)) continue;
      r->prefetch_store[i] = false; /* the load is prefetched */
      if (p->loads[l].last_use > store->defined_by) r->direct_store[i] = false;
      if (p->loads[l].stored && store->reg != l) r->overwrites = true;
    }
  }
}

/* If the factor cannot make a finite number infinite, the finite test reads the 16-bit numbers as stored. */
static void test_stored(mix_tile_state *r) {
  const mix_tile_program *p = r->p;
  if (p->tested < 0) return;
  const mix_dtype dtype = p->program->loads[p->tested].dtype;
  if (p->factor >= 0 && !mix_tile_factor_keeps(dtype, *(const float *)r->at[p->factor])) return;
  r->tested = (const uint16_t *)operand_of(&p->loads[p->tested], r->args);
  r->infinity = dtype == MIX_FLOAT16 ? 0x7c00 : 0x7f80;
}

/* Runs columns [column, column + columns) of one row. */
static void run_row(mix_tile_state *r, int64_t row, int64_t column, int64_t columns) {
  const int64_t tile_elements = r->p->tile;
  if (r->tested) {
    r->finite = r->finite &&
                r->p->vector->all_finite_stored(r->tested + row * r->pitch + column, columns, r->infinity);
    return;
  }
  for (int64_t c = 0; c < columns; c += tile_elements) {
    const int64_t n = columns - c < tile_elements ? columns - c : tile_elements;
    const mix_tile_span t = {.row = row,
                             .column = column + c,
                             .flat = row * r->pitch + column + c,
                             .pieces = 1,
                             .length = n,
                             .n = n,
                             .next = r->end_row < 0         ? n
                                     : row + 1 < r->end_row ? r->pitch
                                                            : 0,
                             .dense = true};
    run_tile(r, &t);
  }
}

/* Runs columns [column, column + columns) of rows [row, row + rows), several rows to a tile. */
static void run_rows(mix_tile_state *r, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const mix_tile_program *p = r->p;
  const int64_t max = p->tile / columns < rows ? p->tile / columns : rows;
  for (int l = 0; l < p->load_count; l++) {
    const mix_tile_load *load = &p->loads[l];
    if (!load->used || load->access != MIX_TILE_PERIODIC) continue;
    char *slot = r->memory + p->home[load->reg];
    const mix_tile_span t = {.row = row,
                             .column = column,
                             .flat = row * r->pitch + column,
                             .pieces = 1,
                             .length = columns,
                             .n = columns};
    load_general(r, load, slot, operand_of(load, r->args), &t);
    for (int64_t i = 1; i < max; i++)
      memcpy(slot + (size_t)(i * columns) * load->held, slot, (size_t)columns * load->held);
    pad(slot, load->held, max * columns);
  }
  r->expanded = true;
  for (int64_t i = 0; i < rows; i += max) {
    const int64_t pieces = rows - i < max ? rows - i : max;
    const mix_tile_span t = {.row = row + i,
                             .column = column,
                             .flat = (row + i) * r->pitch + column,
                             .pieces = pieces,
                             .length = columns,
                             .n = pieces * columns,
                             .next = pieces * r->pitch,
                             .dense = pieces == 1 || r->pitch == columns};
    run_tile(r, &t);
  }
  r->expanded = false;
}

void mix_tile_run_range(mix_tile_state *r, int64_t begin, int64_t end) {
  const mix_tile_program *p = r->p;
  while (begin < end) {
    const int64_t row = begin / p->inner, column = begin % p->inner;
    int64_t n = p->inner - column < end - begin ? p->inner - column : end - begin;
    if (n == p->inner && n <= p->tile && p->rows > 1) {
      n = (end - begin) / p->inner * p->inner;
      run_rows(r, row, n / p->inner, 0, p->inner);
    } else {
      run_row(r, row, column, n);
    }
    begin += n;
  }
}

/* ---- the whole space ---- */

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

/* The grain of the threads' shares if rows are at most a tile: rows that make about a tile. */
static int64_t rows_of_grain(const mix_tile_program *p) {
  if (p->program->row) { /* whole sums, about a tile */
    const int64_t rows = p->program->row / common_divisor(p->inner, p->program->row),
                  tile = MIX_TILE_ELEMENTS / (rows * p->inner);
    return tile > 1 ? rows * tile : rows;
  }
  if (mix_tile_sums(p->program))
    return MIX_SUM_PIECE / common_divisor(p->inner, MIX_SUM_PIECE); /* whole pieces */
  return MIX_TILE_ELEMENTS / p->inner;
}
/* The grain in tiles if rows are longer than a tile; a row has `tiles`. */
static int64_t tiles_of_grain(const mix_tile_program *p, int64_t tiles) {
  if (p->program->row && p->rows == 1)
    return p->program->row / common_divisor(MIX_TILE_ELEMENTS, p->program->row);
  if (p->program->row) return rows_of_grain(p) * tiles;
  if (!mix_tile_sums(p->program)) return 1;
  if (p->rows == 1 || p->inner % MIX_SUM_PIECE == 0) return MIX_SUM_PIECE / MIX_TILE_ELEMENTS;
  return rows_of_grain(p) * tiles;
}

bool mix_tile_share(const mix_tile_program *p, int64_t *count, int64_t *grain) {
  *count = p->count;
  if (p->count == 0 || p->program->sum_count) return false;
  if (p->rows > 1 && p->inner <= MIX_TILE_ELEMENTS) {
    *grain = rows_of_grain(p) * p->inner;
    return true;
  }
  if (p->program->row) {
    *grain = tiles_of_grain(p, 1) * MIX_TILE_ELEMENTS;
    return p->rows == 1;
  }
  *grain = mix_tile_sums(p->program) ? MIX_SUM_PIECE : MIX_TILE_ELEMENTS;
  return p->rows == 1 || p->inner % *grain == 0;
}

void mix_tile_run(const mix_tile_program *p, const mix_kernel_args *args, const mix_team *team) {
  _Alignas(64) char memory[MIX_TILE_MEMORY];
  mix_tile_state r;
  mix_tile_start(&r, p, args, memory);
  if (team->size > 1 && mix_tile_sums(p->program) && !p->program->row) r.adder.pieces = args->workspace;
  test_stored(&r);
  int64_t begin, end;
  if (p->count == 0) {
    ;
  } else if (p->rows > 1 && p->inner <= MIX_TILE_ELEMENTS) {
    mix_team_share(team, p->rows, rows_of_grain(p), &begin, &end);
    if (begin < end && p->inner <= p->tile)
      run_rows(&r, begin, end - begin, 0, p->inner);
    else
      for (int64_t row = begin; row < end; row++) run_row(&r, row, 0, p->inner);
  } else {
    const int64_t tiles = (p->inner + MIX_TILE_ELEMENTS - 1) / MIX_TILE_ELEMENTS;
    mix_team_share(team, p->rows * tiles, tiles_of_grain(p, tiles), &begin, &end);
    for (int64_t i = begin; i < end;) {
      const int64_t row = i / tiles, first = i % tiles,
                    last = row < (end - 1) / tiles ? tiles : (end - 1) % tiles + 1;
      const int64_t column = first * MIX_TILE_ELEMENTS,
                    stop = last * MIX_TILE_ELEMENTS < p->inner ? last * MIX_TILE_ELEMENTS : p->inner;
      run_row(&r, row, column, stop - column);
      i = row * tiles + last;
    }
  }
  if (r.streamed) mix_end_streams();
  mix_tile_finish_reduction(&r, team);
}

/* ---- a block of a product's result ---- */

mix_tile_bias mix_tile_find_bias(const mix_tile_program *p, const mix_kernel_args *args) {
  if (p->bias < 0) return (mix_tile_bias){NULL};
  return (mix_tile_bias){args->inputs[p->program->loads[p->bias].input], args->outputs[p->stores[0].output],
                         p->relu};
}

static void store_biased(const mix_tile_program *p, const mix_kernel_args *args, const float *sums,
                         int64_t stride, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const mix_dtype dtype = p->program->loads[p->bias].dtype;
  const int64_t size = (int64_t)mix_dtype_size(dtype), pitch = p->program->dims[1];
  const mix_tile_bias with = mix_tile_find_bias(p, args);
  p->vector->biased_rows[dtype]((char *)with.result + (row * pitch + column) * size, pitch, sums, stride,
                                rows, columns, (const char *)with.bias + column * size, with.relu);
}

bool mix_tile_run_block(const mix_tile_program *p, const mix_kernel_args *args, const void *accumulator,
                        int64_t stride, int64_t row, int64_t rows, int64_t column, int64_t columns,
                        bool more) {
  _Alignas(64) char memory[MIX_TILE_MEMORY];
  if (rows <= 0 || columns <= 0) return true;
  if (p->bias >= 0) {
    store_biased(p, args, accumulator, stride, row, rows, column, columns);
    return true;
  }
  if (p->normalization.mean >= 0) {
    mix_tile_store_normalized(p, args, accumulator, stride, row, rows, column, columns);
    return true;
  }
  mix_tile_state r;
  mix_tile_start(&r, p, args, memory);
  r.accumulator = accumulator;
  r.accumulator_stride = stride;
  r.first_row = row;
  r.first_column = column;
  r.pitch = p->program->dims[1]; /* kernels accept only epilogues over matrices */
  r.end_row = row + rows + more;
  /* Long pieces are read and written in place; several short ones are gathered in a tile. */
  if (rows > 1 && 2 * columns <= p->tile)
    run_rows(&r, row, rows, column, columns);
  else
    for (int64_t i = 0; i < rows; i++) run_row(&r, row + i, column, columns);
  if (r.streamed) mix_end_streams();
  return r.finite;
}
