/* The rewrite of a loop and its gradient's, which reads values of its steps: steps = chunks * every + rest.
 * The loop becomes one over chunks, whose body is a loop over the steps of a chunk. It keeps the carry before
 * each chunk. The gradient's becomes one over chunks the other way round; its body runs the steps of a chunk
 * again, and then those of the gradient. The steps that are run last (the first of the gradient) are the
 * rest: loops of their own, in which nothing is repeated. */
#include "passes/checkpoint_loops.h"

#include "passes/chunk_loops.h"
#include "passes/passes.h"
#include <string.h>

typedef struct rewriting {
  mix_ir *ir;
  int64_t every, chunks, rest;
  int at[2];           /* forward, backward: the nodes */
  mix_ir_node loop[2]; /* as they were */
  const bool *kept;    /* by result of the forward loop: the gradient does not repeat it */
  const bool *late;    /* by result: it is read after the gradient */
  int chunked[2];      /* the loops over chunks; -1: not there yet */
  int tail[2];         /* the loops over the rest; -1: there is none */
  int *repeated;       /* by result of the forward loop: the result of the gradient's loop that has it; -1 */
} rewriting;

enum { FORWARD, BACKWARD };

static const mix_scan_attributes *attributes_of(const mix_ir_node *loop) { return loop->attributes; }
static mix_type type_of(const mix_ir *ir, int value) { return ir->values[value].type; }

/* One row of a stacked value. */
static mix_type row_type(mix_type stacked) {
  mix_type row = {stacked.dtype, {.rank = stacked.shape.rank - 1}};
  for (int i = 0; i < row.shape.rank; i++) row.shape.dims[i] = stacked.shape.dims[i + 1];
  return row;
}

static mix_type stack(int64_t count, mix_type row) {
  mix_type stacked = {row.dtype, {.rank = row.shape.rank + 1, .dims = {count}}};
  for (int i = 0; i < row.shape.rank; i++) stacked.shape.dims[i + 1] = row.shape.dims[i];
  return stacked;
}

/* Is operand or result `i` one with a row for each step? */
static bool is_stacked(const mix_ir_node *loop, int i, bool result) {
  const mix_scan_attributes *a = attributes_of(loop);
  return i >= a->carries && (result || i < a->carries + a->inputs);
}

/* ---- pieces ---- */

static int add(mix_ir *ir, const mix_op *op, const void *attributes, int count, const int *inputs,
               mix_type type, const mix_ir_node *like) {
  const int node = mix_ir_add(ir, op, attributes, count, inputs, 1, &type);
  if (node < 0) return -1;
  ir->nodes[node].scope = like->scope;
  ir->nodes[node].backward = like->backward;
  return ir->nodes[node].first_output;
}

static int reshape(mix_ir *ir, int value, mix_shape shape, const mix_ir_node *like) {
  mix_shape_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (value < 0 || !attributes) return -1;
  attributes->shape = shape;
  return add(ir, &mix_op_reshape, attributes, 1, &value, (mix_type){type_of(ir, value).dtype, shape}, like);
}

/* Rows [begin, begin + count) of a stacked value. */
static int slice(mix_ir *ir, int value, int64_t begin, int64_t count, const mix_ir_node *like) {
  mix_type type = type_of(ir, value);
  if (type.shape.dims[0] == count) return value;
  mix_slice_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return -1;
  type.shape.dims[0] = count;
  attributes->begin = (mix_shape){.rank = type.shape.rank, .dims = {begin}};
  attributes->size = type.shape;
  return add(ir, &mix_op_slice, attributes, 1, &value, type, like);
}

/* Which rows the rest has: the forward loop runs it last. */
static int64_t rest_begin(const rewriting *r) {
  return attributes_of(&r->loop[FORWARD])->reverse ? 0 : r->chunks * r->every;
}
static int rest_rows(const rewriting *r, int value, const mix_ir_node *like) {
  return slice(r->ir, value, rest_begin(r), r->rest, like);
}
/* The others, as (chunks, every, ...). */
static int chunk_rows(const rewriting *r, int value, const mix_ir_node *like) {
  const int rows = slice(r->ir, value, attributes_of(&r->loop[FORWARD])->reverse ? r->rest : 0,
                         r->chunks * r->every, like);
  if (rows < 0) return -1;
  return reshape(r->ir, rows, stack(r->chunks, stack(r->every, row_type(type_of(r->ir, value)))).shape, like);
}

/* All steps, of (chunks, every, ...) and (rest, ...). */
static int all_rows(const rewriting *r, int chunks, int rest, const mix_ir_node *like) {
  const mix_type row = row_type(row_type(type_of(r->ir, chunks)));
  const mix_type all = stack(r->chunks * r->every + r->rest, row);
  const int rows = reshape(r->ir, chunks, stack(r->chunks * r->every, row).shape, like);
  if (!r->rest || rows < 0) return rows;
  mix_axis_attributes *attributes = mix_ir_alloc(r->ir, sizeof *attributes);
  const bool reverse = attributes_of(&r->loop[FORWARD])->reverse;
  const int parts[] = {reverse ? rest : rows, reverse ? rows : rest};
  return attributes ? add(r->ir, &mix_op_concat, attributes, 2, parts, all, like) : -1;
}

/* A loop like another of other length and operands. Consumes `body`. */
static int add_loop(mix_ir *ir, const mix_ir_node *like, mix_scan_attributes attributes, int count,
                    const int *inputs, int outputs, const mix_type *types, mix_ir *body) {
  mix_scan_attributes *copy = mix_ir_alloc(ir, sizeof *copy);
  int node = -1;
  if (copy) {
    *copy = attributes;
    node = mix_ir_add(ir, like->op, copy, count, inputs, outputs, types);
  }
  if (node < 0) return mix_ir_free(body), -1;
  ir->nodes[node].scope = like->scope;
  ir->nodes[node].keep = like->keep;
  ir->nodes[node].backward = like->backward;
  return mix_ir_set_body(ir, node, body) ? node : -1;
}

/* The loop over `steps` steps, on these operands. */
static int add_steps(mix_ir *ir, const mix_ir *from, const mix_ir_node *loop, int64_t steps,
                     const int *inputs) {
  mix_type *types = mix_ir_array(ir, loop->output_count + 1, sizeof *types);
  mix_ir *body = types ? mix_ir_copy(loop->body) : NULL;
  if (!body) return -1;
  body->replay = true;
  for (int o = 0; o < loop->output_count; o++) {
    types[o] = type_of(from, loop->first_output + o);
    if (is_stacked(loop, o, true)) types[o] = stack(steps, row_type(types[o]));
  }
  mix_scan_attributes attributes = *attributes_of(loop);
  attributes.steps = steps;
  return add_loop(ir, loop, attributes, loop->input_count, inputs, loop->output_count, types, body);
}

/* ---- the body of a loop over chunks ---- */

static mix_ir *new_body(const mix_ir *ir, int results) {
  mix_ir *body = mix_ir_new();
  if (!body) return NULL;
  body->context = ir->context;
  body->evaluate = ir->evaluate;
  body->eager = ir->eager;
  body->excess_precision = ir->excess_precision;
  body->replay = true;
  if ((body->results = mix_ir_ints(body, results + 1))) return body;
  mix_ir_free(body);
  return NULL;
}

static int add_argument(mix_ir *body, mix_type type) {
  const int node = mix_ir_add(body, &mix_op_placeholder, NULL, 0, NULL, 1, &type);
  if (node < 0) return -1;
  body->nodes[node].source = MIX_IR_ARGUMENT;
  body->nodes[node].index = body->argument_count++;
  return body->nodes[node].first_output;
}

/* Operands of a loop over chunks, while its body is being made. */
typedef struct operands {
  mix_ir *ir, *body;
  int *values; /* of ir; by argument of the body */
  int count, stacked_count;
  bool stacked; /* those that follow have a row for each chunk */
  bool failed;
} operands;

/* The value becomes an operand. Returns the argument of the body. */
static int add_operand(operands *x, int value) {
  if (x->failed || value < 0) return x->failed = true, 0;
  const mix_type type = type_of(x->ir, value);
  const int argument = add_argument(x->body, x->stacked ? row_type(type) : type);
  x->values[x->count++] = value;
  x->stacked_count += x->stacked;
  if (argument < 0) x->failed = true;
  return argument < 0 ? 0 : argument;
}

/* The loop over chunks, in whose body all results stand. */
static int finish(const rewriting *r, operands *x, const mix_ir_node *like) {
  mix_ir *body = x->body;
  mix_scan_attributes attributes = *attributes_of(like);
  mix_type *types = mix_ir_array(r->ir, body->result_count + 1, sizeof *types);
  if (x->failed || !types) return mix_ir_free(body), -1;
  for (int i = 0; i < body->result_count; i++) {
    types[i] = type_of(body, body->results[i]);
    if (i >= attributes.carries) types[i] = stack(r->chunks, types[i]);
  }
  attributes.steps = r->chunks;
  attributes.inputs = x->stacked_count;
  return add_loop(r->ir, like, attributes, x->count, x->values, body->result_count, types, body);
}

static bool begin(const rewriting *r, operands *x, int operand_count, int result_count) {
  *x = (operands){.ir = r->ir, .values = mix_ir_ints(r->ir, operand_count + 1)};
  return x->values && (x->body = new_body(r->ir, result_count));
}

/* ---- forward ---- */

/* Operands [first, last) of a loop over steps, for the one over chunks. Their arguments go to `arguments`. */
static void add_operands(const rewriting *r, operands *x, const mix_ir_node *loop, int first, int last,
                         int *arguments) {
  x->stacked = is_stacked(loop, first, false);
  for (int i = first; i < last; i++)
    arguments[i] = add_operand(x, x->stacked ? chunk_rows(r, loop->inputs[i], loop) : loop->inputs[i]);
}

/* Results: the carry, results of steps, the carries before the chunks. */
static bool chunk_forward(rewriting *r) {
  const mix_ir_node *f = &r->loop[FORWARD];
  const mix_scan_attributes a = *attributes_of(f);
  operands x;
  int *arguments = mix_ir_ints(r->ir, f->input_count + 1);
  if (!arguments || !begin(r, &x, f->input_count, f->output_count + a.carries)) return false;
  add_operands(r, &x, f, 0, a.carries, arguments);
  add_operands(r, &x, f, a.carries, a.carries + a.inputs, arguments);
  add_operands(r, &x, f, a.carries + a.inputs, f->input_count, arguments);
  const int steps = x.failed ? -1 : add_steps(x.body, r->ir, f, r->every, arguments);
  x.failed |= steps < 0;
  for (int o = 0; o < f->output_count && !x.failed; o++)
    x.body->results[x.body->result_count++] = x.body->nodes[steps].first_output + o;
  for (int i = 0; i < a.carries && !x.failed; i++) x.body->results[x.body->result_count++] = arguments[i];
  return (r->chunked[FORWARD] = finish(r, &x, f)) >= 0;
}

static int result_of(const rewriting *r, const int loops[2], int which, int o) {
  return r->ir->nodes[loops[which]].first_output + o;
}

/* Result o of the forward loop, as operand i of the gradient's; -1: it is none. */
static int taken(const rewriting *r, int i) {
  const mix_ir_node *f = &r->loop[FORWARD], *b = &r->loop[BACKWARD];
  const int o = b->inputs[i] - f->first_output;
  return is_stacked(b, i, false) && o >= attributes_of(f)->carries && o < f->output_count ? o : -1;
}

/* The loop over the rest. */
static bool add_tail(rewriting *r, int which) {
  const mix_ir_node *loop = &r->loop[which];
  int *inputs = mix_ir_ints(r->ir, loop->input_count + 1);
  if (!inputs) return false;
  for (int i = 0; i < loop->input_count; i++) {
    const int o = which == BACKWARD ? taken(r, i) : -1;
    inputs[i] = o >= 0                       ? result_of(r, r->tail, FORWARD, o)
                : is_stacked(loop, i, false) ? rest_rows(r, loop->inputs[i], loop)
                                             : loop->inputs[i];
    if (which == FORWARD && i < attributes_of(loop)->carries)
      inputs[i] = result_of(r, r->chunked, FORWARD, i);
    if (inputs[i] < 0) return false;
  }
  return (r->tail[which] = add_steps(r->ir, r->ir, loop, r->rest, inputs)) >= 0;
}

/* ---- backward ---- */

/* The steps of a chunk, run again: the loop in the body. */
static int repeat_steps(const rewriting *r, operands *x, const int *arguments) {
  const int node = x->failed ? -1 : add_steps(x->body, r->ir, &r->loop[FORWARD], r->every, arguments);
  if (node >= 0) x->body->nodes[node].repeated = true;
  return node;
}

/* Operands of the gradient's loop over chunks: its carries; rows of chunks of its inputs that are not
 * repeated, of the forward loop's inputs, and the carries before the chunks; what is the same in all steps.
 * `mine` and `its` become the arguments for the operands of the two loops over steps. */
static void add_backward_operands(const rewriting *r, operands *x, int *mine, int *its) {
  const mix_ir_node *f = &r->loop[FORWARD], *b = &r->loop[BACKWARD];
  const mix_scan_attributes *fa = attributes_of(f), *ba = attributes_of(b);
  for (int i = 0; i < ba->carries; i++)
    mine[i] = add_operand(x, r->rest ? result_of(r, r->tail, BACKWARD, i) : b->inputs[i]);
  x->stacked = true;
  for (int i = ba->carries; i < ba->carries + ba->inputs; i++) {
    const int o = taken(r, i);
    if (o >= 0 && !r->kept[o]) continue;
    mine[i] = add_operand(x, o < 0 ? chunk_rows(r, b->inputs[i], b) : result_of(r, r->chunked, FORWARD, o));
  }
  for (int i = 0; i < fa->carries; i++)
    its[i] = add_operand(x, result_of(r, r->chunked, FORWARD, f->output_count + i));
  add_operands(r, x, f, fa->carries, fa->carries + fa->inputs, its);
  add_operands(r, x, f, fa->carries + fa->inputs, f->input_count, its);
  add_operands(r, x, b, ba->carries + ba->inputs, b->input_count, mine);
}

/* Results: those of the gradient's loop, and repeated values that are read later. */
static bool chunk_backward(rewriting *r) {
  const mix_ir_node *f = &r->loop[FORWARD], *b = &r->loop[BACKWARD];
  operands x;
  int *mine = mix_ir_ints(r->ir, b->input_count + 1), *its = mix_ir_ints(r->ir, f->input_count + 1);
  if (!mine || !its || !begin(r, &x, b->input_count + f->input_count, b->output_count + f->output_count))
    return false;
  add_backward_operands(r, &x, mine, its);
  const int again = repeat_steps(r, &x, its);
  x.failed |= again < 0;
  for (int i = 0; i < b->input_count && !x.failed; i++)
    if (taken(r, i) >= 0 && !r->kept[taken(r, i)]) mine[i] = x.body->nodes[again].first_output + taken(r, i);
  const int steps = x.failed ? -1 : add_steps(x.body, r->ir, b, r->every, mine);
  x.failed |= steps < 0;
  for (int o = 0; o < b->output_count && !x.failed; o++)
    x.body->results[x.body->result_count++] = x.body->nodes[steps].first_output + o;
  for (int o = 0; o < f->output_count && !x.failed; o++) {
    if (!r->late[o] || r->kept[o]) continue;
    r->repeated[o] = x.body->result_count;
    x.body->results[x.body->result_count++] = x.body->nodes[again].first_output + o;
  }
  return (r->chunked[BACKWARD] = finish(r, &x, b)) >= 0;
}

/* ---- readers ---- */

/* By node: does it read, over whatever others, results of node n? */
static bool *find_descendants(mix_ir *ir, int n) {
  bool *found = mix_ir_flags(ir, ir->node_count + 1);
  if (!found) return NULL;
  found[n] = true;
  for (int m = n + 1; m < ir->node_count; m++) {
    const mix_ir_node *node = &ir->nodes[m];
    if (node->dead) continue;
    for (int i = 0; i < node->input_count && !found[m]; i++)
      found[m] = found[mix_ir_producer(ir, node->inputs[i])];
    if (node->guard >= 0) found[m] |= found[mix_ir_producer(ir, node->guard)];
  }
  return found;
}

static void mark_producers(const mix_ir *ir, const mix_ir_node *node, bool *marks) {
  for (int i = 0; i < node->input_count; i++) marks[mix_ir_producer(ir, node->inputs[i])] = true;
  if (node->guard >= 0) marks[mix_ir_producer(ir, node->guard)] = true;
}

/* By node: does it come after node n whatever the order? So does a view that such nodes alone read. */
static bool *find_later(mix_ir *ir, int n) {
  bool *later = find_descendants(ir, n), *early = mix_ir_flags(ir, ir->node_count + 1);
  if (!later || !early) return NULL;
  for (int i = 0; i < ir->result_count; i++) early[mix_ir_producer(ir, ir->results[i])] = true;
  for (int i = 0; i < ir->variable_count; i++) early[mix_ir_producer(ir, ir->variables[i].exit)] = true;
  for (int m = ir->node_count - 1; m >= 0; m--) {
    const mix_ir_node *node = &ir->nodes[m];
    if (node->dead || later[m]) continue;
    later[m] = !node->source && node->op->flags & MIX_OP_VIEW && !early[m];
    if (!later[m]) mark_producers(ir, node, early);
  }
  return later;
}

/* Marks the results of node n that nodes other than `after` read: those that come after that, or others. */
static bool *find_read(mix_ir *ir, int n, int after, bool by_later) {
  const bool *later = find_later(ir, after);
  const mix_ir_node *loop = &ir->nodes[n];
  bool *read = mix_ir_flags(ir, loop->output_count + 1);
  if (!later || !read) return NULL;
  for (int m = 0; m < ir->node_count; m++) {
    const mix_ir_node *node = &ir->nodes[m];
    if (node->dead || m == after || later[m] != by_later) continue;
    for (int i = 0; i < node->input_count; i++)
      if (mix_ir_producer(ir, node->inputs[i]) == n) read[node->inputs[i] - loop->first_output] = true;
  }
  return read;
}

/* Results of the graph, exits of variables, and what the gradient's loop reads other than step by step. */
static void mark_whole_reads(const mix_ir *ir, int n, int backward, bool *read) {
  const mix_ir_node *b = &ir->nodes[backward];
  const mix_scan_attributes *a = b->attributes;
  const int first = ir->nodes[n].first_output;
  for (int i = 0; i < ir->result_count; i++)
    if (mix_ir_producer(ir, ir->results[i]) == n) read[ir->results[i] - first] = true;
  for (int i = 0; i < ir->variable_count; i++)
    if (mix_ir_producer(ir, ir->variables[i].exit) == n) read[ir->variables[i].exit - first] = true;
  for (int i = 0; i < b->input_count; i++)
    if ((i < a->carries || i >= a->carries + a->inputs) && mix_ir_producer(ir, b->inputs[i]) == n)
      read[b->inputs[i] - first] = true;
}

bool *mix_loop_kept_outputs(mix_ir *ir, int forward, int backward) {
  bool *kept = find_read(ir, forward, backward, false);
  if (kept) mark_whole_reads(ir, forward, backward, kept);
  return kept;
}

/* Puts node `from` in the place of node `to`, whose number stands for its place in the order. */
static void move_to(mix_ir *ir, int to, int from) {
  ir->nodes[to] = ir->nodes[from];
  for (int o = 0; o < ir->nodes[to].output_count; o++) ir->values[ir->nodes[to].first_output + o].node = to;
  ir->nodes[from].dead = true;
  ir->nodes[from].body = NULL;
  ir->nodes[from].input_count = ir->nodes[from].output_count = 0;
}

/* The readers of the loop's results read those of the new ones. */
static bool replace_results(const rewriting *r, int which) {
  const mix_ir_node *loop = &r->loop[which];
  for (int o = 0; o < loop->output_count; o++) {
    const int carries = attributes_of(loop)->carries;
    int value;
    if (o < carries) {
      const int last =
          which == FORWARD ? (r->rest ? r->tail[FORWARD] : r->chunked[FORWARD]) : r->chunked[BACKWARD];
      value = r->ir->nodes[last].first_output + o;
    } else {
      const int again = which == FORWARD ? r->repeated[o] : -1;
      const int chunks =
          again >= 0 ? result_of(r, r->chunked, BACKWARD, again) : result_of(r, r->chunked, which, o);
      value = all_rows(r, chunks, r->rest ? result_of(r, r->tail, which, o) : -1, loop);
    }
    if (value < 0) return false;
    mix_ir_replace(r->ir, loop->first_output + o, value);
  }
  return true;
}

static bool rewrite(rewriting *r) {
  mix_ir *ir = r->ir;
  const int outputs = r->loop[FORWARD].output_count;
  if (!(r->repeated = mix_ir_ints(ir, outputs + 1))) return false;
  for (int o = 0; o < outputs; o++) r->repeated[o] = -1;
  if (!chunk_forward(r) || (r->rest && !(add_tail(r, FORWARD) && add_tail(r, BACKWARD))) ||
      !chunk_backward(r))
    return false;
  for (int which = 0; which < 2; which++) ir->nodes[r->at[which]].dead = true;
  if (!replace_results(r, FORWARD) || !replace_results(r, BACKWARD)) return false;
  for (int which = 0; which < 2; which++) move_to(ir, r->at[which], r->chunked[which]);
  return mix_ir_sort(ir) && mix_pass_dce(ir);
}

bool mix_ir_keep_every(mix_ir *ir, const mix_loop_pair *pair, int64_t every) {
  rewriting r = {.ir = ir,
                 .every = every,
                 .chunks = pair->steps / every,
                 .rest = pair->steps % every,
                 .at = {pair->forward, pair->backward},
                 .loop = {ir->nodes[pair->forward], ir->nodes[pair->backward]},
                 .kept = mix_loop_kept_outputs(ir, pair->forward, pair->backward),
                 .late = find_read(ir, pair->forward, pair->backward, true),
                 .chunked = {-1, -1},
                 .tail = {-1, -1}};
  return r.kept && r.late && rewrite(&r);
}
