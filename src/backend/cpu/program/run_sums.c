/* Programs that end in several sums, or in sums of columns. Rows are added in the order of cpu/reduce.c,
 * columns in that of cpu/column_order.h: elements of a chain follow each other in the space, so a thread runs
 * whole chains, whose sums meet in the workspace. If all rows are one chain, threads share the columns. */
#include "backend/cpu/column_order.h"
#include "backend/cpu/program/run_state.h"
#include "base/alloc.h"
#include "base/machine.h"
#include "tensor/convert.h"

typedef mix_tile_chains chains;
typedef mix_tile_chain chain;

static int64_t columns_of(const mix_program *program) {
  for (int i = 0; i < program->sum_count; i++)
    if (program->sums[i].column) return program->sums[i].column;
  return 0;
}

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Whole lines of a block of so many rows, as chains; the rows that are left make chains of their own. */
static int64_t whole_chains(const chains *c, int64_t rows) { return divide_up(rows / c->group, c->lines); }
static int64_t rest_chains(const chains *c, int64_t rows) { return divide_up(rows % c->group, c->lines); }

static int64_t chains_of_block(const chains *c, int64_t rows) {
  return whole_chains(c, rows) + rest_chains(c, rows);
}
static int64_t sums_of_block(const chains *c, int64_t rows) {
  return (whole_chains(c, rows) * c->group + rest_chains(c, rows)) * c->columns;
}
static int64_t rows_of_block(const chains *c, int64_t block) {
  const int64_t left = c->rows - block * c->block;
  return left < c->block ? left : c->block;
}
static int64_t chain_count(const chains *c) {
  const int64_t last = (c->rows - 1) / c->block;
  return last * chains_of_block(c, c->block) + chains_of_block(c, rows_of_block(c, last));
}
static int64_t sum_count(const chains *c) {
  const int64_t last = (c->rows - 1) / c->block;
  return last * sums_of_block(c, c->block) + sums_of_block(c, rows_of_block(c, last));
}

/* Chain `index` of a block. */
static chain chain_of_block(const chains *c, int64_t block, int64_t index) {
  const int64_t rows = rows_of_block(c, block), whole = whole_chains(c, rows), lines = rows / c->group,
                first = block * c->block * c->columns, at = block * sums_of_block(c, c->block);
  const bool rest = index >= whole;
  const int64_t width = rest ? c->columns : c->group * c->columns,
                begin = first + (rest ? lines * c->group * c->columns + (index - whole) * c->lines * width
                                      : index * c->lines * width),
                limit = first + (rest ? rows : lines * c->group) * c->columns, end = begin + c->lines * width;
  return (chain){.begin = begin,
                 .end = end < limit ? end : limit,
                 .width = width,
                 .at = at + (rest ? whole * c->group * c->columns + (index - whole) * width : index * width)};
}

static chain chain_by_number(const chains *c, int64_t number) {
  const int64_t each = chains_of_block(c, c->block), last = (c->rows - 1) / c->block,
                block = number / each < last ? number / each : last;
  return chain_of_block(c, block, number - block * each);
}

/* The chain that element `flat` belongs to. */
static chain chain_at(const chains *c, int64_t flat) {
  const int64_t block = flat / (c->block * c->columns), rows = rows_of_block(c, block),
                lines = rows / c->group * c->group * c->columns, at = flat - block * c->block * c->columns;
  return chain_of_block(c, block,
                        at < lines ? at / (c->lines * c->group * c->columns)
                                   : whole_chains(c, rows) + (at - lines) / (c->lines * c->columns));
}

/* ---- the sums in the workspace ---- */

static size_t bytes_of_sum(const mix_program *program, const mix_program_sum *sum, const chains *c) {
  const mix_tile_class class = mix_tile_class_of(mix_program_register_dtype(program, sum->reg));
  if (!sum->column) return 0;
  return mix_buffer_aligned((size_t)sum_count(c) * mix_tile_class_size(class));
}

void mix_tile_find_chains(mix_tile_program *p) {
  const mix_program *program = p->program;
  chains *c = &p->chains;
  *c = (chains){.columns = columns_of(program)};
  if (c->columns) {
    c->rows = p->count / c->columns;
    c->group = mix_column_group(c->rows, c->columns);
    c->block = mix_column_block(c->rows, c->columns);
    c->lines = c->rows <= MIX_ONE_CHAIN ? c->rows : MIX_COLUMN_CHAIN;
  }
  for (int i = 0; i < program->sum_count; i++)
    c->at[i + 1] = c->at[i] + bytes_of_sum(program, &program->sums[i], c);
}

size_t mix_tile_sums_bytes(const mix_tile_program *p) { return p->chains.at[p->program->sum_count]; }

/* to[i] = from[i] or to[i] + from[i]. Vector functions take whole groups of 16. */
static void add_line(const mix_vector *vector, mix_tile_class class, char *to, const char *from, int64_t n,
                     bool first) {
  static const int steps[3] = {1, 1, 1};
  const int64_t held = (int64_t)mix_tile_class_size(class), whole = n - n % 16;
  if (first) {
    memcpy(to, from, (size_t)(n * held));
    return;
  }
  const void *operands[3] = {to, from};
  if (whole) mix_tile_instruction_of(vector, MIX_OPCODE_ADD, class)(to, operands, steps, whole, 0);
  for (int64_t i = whole; i < n; i++)
    if (class == MIX_TILE_FLOAT)
      ((float *)(void *)to)[i] += ((const float *)(const void *)from)[i];
    else
      ((double *)(void *)to)[i] += ((const double *)(const void *)from)[i];
}

/* Adds n elements from element i of a tile to sums `at`, of each sum of columns. */
static void add_lines(const mix_tile_state *r, int64_t i, int64_t n, int64_t at, bool first) {
  const mix_tile_program *p = r->p;
  for (int s = 0; s < p->program->sum_count; s++) {
    const mix_program_sum *sum = &p->program->sums[s];
    const mix_tile_class class = mix_tile_class_of(mix_program_register_dtype(p->program, sum->reg));
    const int64_t held = (int64_t)mix_tile_class_size(class);
    if (sum->column)
      add_line(p->vector, class, (char *)r->args->workspace + p->chains.at[s] + at * held,
               (const char *)r->at[p->summed[s]] + i * held, n, first);
  }
}

static void add_columns(mix_tile_state *r, const mix_tile_span *t) {
  for (int64_t i = 0; i < t->n;) {
    if (t->flat + i < r->chain.begin || t->flat + i >= r->chain.end)
      r->chain = chain_at(&r->p->chains, t->flat + i);
    const chain in = r->chain;
    for (const int64_t end = in.end - t->flat < t->n ? in.end - t->flat : t->n; i < end;) {
      const int64_t done = t->flat + i - in.begin, at = done % in.width,
                    n = in.width - at < end - i ? in.width - at : end - i;
      add_lines(r, i, n, in.at + at, done < in.width);
      i += n;
    }
  }
}

static void add_to_sums(mix_tile_state *r, const mix_tile_span *t) {
  const mix_program *program = r->p->program;
  for (int i = 0; i < program->sum_count; i++)
    if (program->sums[i].row)
      mix_tile_add_rows(r, &r->row_adders[i], &program->sums[i], r->at[r->p->summed[i]], t);
  if (r->p->chains.columns) add_columns(r, t);
}

/* ---- the ends of columns ---- */

typedef struct column_sums {
  const char *sums;
  mix_tile_class class;
} column_sums;

static double sum_at(const column_sums *s, int64_t at) {
  return s->class == MIX_TILE_FLOAT ? ((const float *)(const void *)s->sums)[at]
                                    : ((const double *)(const void *)s->sums)[at];
}

/* Adds the same sum of `count` chains. */
static double add_chains(const column_sums *s, int64_t at, int64_t width, int64_t count) {
  double sum = sum_at(s, at);
  for (int64_t i = 1; i < count; i++) sum += sum_at(s, at + i * width);
  return sum;
}

static double column_of_block(const chains *c, const column_sums *s, int64_t block, int64_t column) {
  const int64_t rows = rows_of_block(c, block), whole = whole_chains(c, rows), rest = rest_chains(c, rows),
                width = c->group * c->columns, at = block * sums_of_block(c, c->block) + column;
  double sum = 0;
  for (int64_t i = 0; i < c->group && whole; i++) {
    const double one = add_chains(s, at + i * c->columns, width, whole);
    sum = i ? sum + one : one;
  }
  if (!rest) return sum;
  const double tail = add_chains(s, at + whole * width, c->columns, rest);
  return whole ? sum + tail : tail;
}

static void store_columns(const mix_tile_program *p, const mix_kernel_args *args, const chains *c,
                          const mix_program_sum *sum, const char *sums, const mix_team *team) {
  const mix_dtype dtype = mix_program_register_dtype(p->program, sum->reg);
  const column_sums s = {sums, mix_tile_class_of(dtype)};
  const int64_t blocks = divide_up(c->rows, c->block);
  void *output = args->outputs[sum->output];
  int64_t begin, end;
  mix_team_share(team, c->columns, 64, &begin, &end);
  for (int64_t j = begin; j < end; j++) {
    double value = column_of_block(c, &s, 0, j);
    for (int64_t b = 1; b < blocks; b++) value += column_of_block(c, &s, b, j);
    if (sum->kind == MIX_REDUCE_TO_MEAN) value /= (double)c->rows;
    if (dtype == MIX_FLOAT32)
      ((float *)output)[j] = (float)value;
    else
      mix_store_double(output, dtype, j, value);
  }
}

/* ---- the thread's share ---- */

static void run_share(mix_tile_state *r, const chains *c, const mix_team *team) {
  int64_t begin, end, longest = 1;
  if (c->columns && chain_count(c) > 1) {
    mix_team_share(team, chain_count(c), 1, &begin, &end);
    if (begin < end) mix_tile_run_range(r, chain_by_number(c, begin).begin, chain_by_number(c, end - 1).end);
    return;
  }
  if (c->columns && team->size > 1) {
    mix_team_share(team, c->columns, 16, &begin, &end);
    for (int64_t row = 0; row < c->rows && begin < end; row++)
      mix_tile_run_range(r, row * c->columns + begin, row * c->columns + end);
    return;
  }
  for (int i = 0; i < r->p->program->sum_count; i++)
    if (r->p->program->sums[i].row > longest) longest = r->p->program->sums[i].row;
  const int64_t grain = longest < MIX_TILE_ELEMENTS ? MIX_TILE_ELEMENTS / longest : 1;
  mix_team_share(team, r->p->count / longest, grain, &begin, &end);
  mix_tile_run_range(r, begin * longest, end * longest);
}

static void begin_sums(mix_tile_state *r, mix_tile_adder *adders) {
  for (int i = 0; i < r->p->program->sum_count; i++) {
    memset(adders[i].lanes, 0, sizeof adders[i].lanes);
    adders[i].summed = 0;
    adders[i].total = 0;
    adders[i].pieces = NULL;
  }
  r->chain = (chain){.end = 0};
  r->row_adders = adders;
  r->add_to_sums = add_to_sums;
}

static void end_columns(const mix_tile_program *p, const mix_kernel_args *args, const chains *c,
                        const mix_team *team) {
  if (team->size > 1) mix_team_barrier(team);
  for (int i = 0; i < p->program->sum_count; i++)
    if (p->program->sums[i].column)
      store_columns(p, args, c, &p->program->sums[i], (const char *)args->workspace + c->at[i], team);
}

void mix_tile_run_sums(const mix_tile_program *p, const mix_kernel_args *args, const mix_team *team) {
  _Alignas(64) char memory[MIX_TILE_MEMORY];
  const chains *c = &p->chains;
  mix_tile_adder adders[MIX_PROGRAM_SUMS];
  mix_tile_state r;
  mix_tile_start(&r, p, args, memory);
  begin_sums(&r, adders);
  run_share(&r, c, team);
  if (r.streamed) mix_end_streams();
  if (c->columns) end_columns(p, args, c, team);
}

/* ---- bands ---- */

enum { CHAINS_OF_THREAD = 4 }; /* at least, on average: all steps of a band are shared as its sums are */

bool mix_tile_sums_by_bands(const mix_tile_program *p, int threads, int64_t rows) {
  const chains *c = &p->chains;
  for (int i = 0; i < p->program->sum_count; i++)
    if (p->program->sums[i].row && p->count / rows % p->program->sums[i].row) return false;
  return !c->columns || (c->rows == rows && (threads < 2 || chain_count(c) >= CHAINS_OF_THREAD * threads));
}

void mix_tile_run_sums_range(mix_tile_state *r, int64_t begin, int64_t end) {
  mix_tile_adder adders[MIX_PROGRAM_SUMS];
  begin_sums(r, adders);
  mix_tile_run_range(r, begin, end);
}

bool mix_tile_band_share(const mix_tile_program *p, const mix_team *team, int64_t *begin, int64_t *end) {
  const chains *c = &p->chains;
  if (!c->columns) return false;
  mix_team_share(team, chain_count(c), 1, begin, end);
  const bool none = *begin >= *end;
  *end = none ? 0 : chain_by_number(c, *end - 1).end / c->columns;
  *begin = none ? 0 : chain_by_number(c, *begin).begin / c->columns;
  return true;
}

void mix_tile_end_bands(const mix_tile_program *p, const mix_kernel_args *args, const mix_team *team) {
  end_columns(p, args, &p->chains, team);
}
