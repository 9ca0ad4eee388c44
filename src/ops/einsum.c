/* Einstein sums. The op multiplies two operands of which no dimension is repeated, and sums over dimensions
 * that both have. mix_einsum makes the rest of other operations: diagonals, sums over dimensions of one
 * operand, more operands. */
#include "ops/rules.h"
#include <mixtape/einsum.h>
#include <string.h>

/* ---- the op ---- */

static const mix_einsum_attributes *labels_of(const mix_node *node) { return node->attributes; }

int mix_einsum_find(const mix_shape *labels, int64_t label) {
  for (int i = 0; i < labels->rank; i++)
    if (labels->dims[i] == label) return i;
  return -1;
}

/* Is each label in two of the three lists, and in none of them twice? */
static bool labels_are_sound(const mix_einsum_attributes *labels) {
  const mix_shape *lists[] = {&labels->a, &labels->b, &labels->result};
  for (int l = 0; l < 3; l++)
    for (int i = 0; i < lists[l]->rank; i++) {
      const int64_t label = lists[l]->dims[i];
      if (mix_einsum_find(lists[l], label) != i) return false;
      if (mix_einsum_find(lists[(l + 1) % 3], label) < 0 && mix_einsum_find(lists[(l + 2) % 3], label) < 0)
        return false;
    }
  return true;
}

static bool einsum_infer(mix_node *node) {
  const mix_einsum_attributes *labels = labels_of(node);
  const mix_shape *a = &mix_input_value(node, 0)->shape, *b = &mix_input_value(node, 1)->shape;
  mix_shape result = {.rank = labels->result.rank};
  if (labels->a.rank != a->rank || labels->b.rank != b->rank)
    return mix_rule_fail(node, "%d and %d labels; expected one for each dimension", labels->a.rank,
                         labels->b.rank);
  if (!labels_are_sound(labels))
    return mix_rule_fail(node, "each label must be in two of the operands and the result, once in each");
  for (int i = 0; i < a->rank; i++) {
    const int in_b = mix_einsum_find(&labels->b, labels->a.dims[i]);
    int64_t merged;
    if (in_b >= 0 && !mix_dimension_merge(a->dims[i], b->dims[in_b], &merged))
      return mix_rule_fail(node, "dimension %d of the first operand and %d of the second differ", i, in_b);
  }
  for (int i = 0; i < result.rank; i++) {
    const int in_a = mix_einsum_find(&labels->a, labels->result.dims[i]),
              in_b = mix_einsum_find(&labels->b, labels->result.dims[i]);
    result.dims[i] = in_a >= 0 ? a->dims[in_a] : b->dims[in_b];
    if (in_a >= 0 && in_b >= 0) mix_dimension_merge(a->dims[in_a], b->dims[in_b], &result.dims[i]);
  }
  return mix_rule_output(node, 0, result);
}

static mix_tensor *apply(mix_tensor *a, mix_shape labels_a, mix_tensor *b, mix_shape labels_b,
                         mix_shape result) {
  return mix_apply(&mix_op_einsum, &(mix_einsum_attributes){labels_a, labels_b, result}, 2,
                   (mix_tensor *[]){a, b});
}

/* Of the three lists of labels, any one is the result of the other two. */
static void einsum_gradient(mix_node *node, mix_tensor *const *output_gradients,
                            mix_tensor **input_gradients) {
  const mix_einsum_attributes *labels = labels_of(node);
  mix_tensor *a = mix_node_input(node, 0), *b = mix_node_input(node, 1), *dy = output_gradients[0];
  input_gradients[0] = apply(dy, labels->result, b, labels->b, labels->a);
  input_gradients[1] = apply(a, labels->a, dy, labels->result, labels->b);
}

/* The batch is the first dimension of the result and of each operand that has the label. */
static bool einsum_rows(const mix_row_query *query) {
  const mix_einsum_attributes *labels = query->attributes;
  const mix_shape *lists[] = {&labels->a, &labels->b};
  if (!labels->result.rank) return false;
  for (int i = 0; i < 2; i++) {
    const int at = mix_einsum_find(lists[i], labels->result.dims[0]);
    if (query->batched[i] ? at != 0 : at >= 0) return false;
  }
  return true;
}

static const mix_attribute_row einsum_fields[] = {
    {"a", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_einsum_attributes, a)},
    {"b", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_einsum_attributes, b)},
    {"result", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_einsum_attributes, result)},
    {NULL}};

const mix_op mix_op_einsum = {.name = "einsum",
                              .tf_name = "Einsum",
                              .signature = "T,T->T",
                              .types = "float int32",
                              .flags = MIX_OP_EINSUM,
                              .attributes_size = sizeof(mix_einsum_attributes),
                              .infer = einsum_infer,
                              .row_independent = einsum_rows,
                              .gradient = einsum_gradient,
                              .fields = einsum_fields,
                              .accumulator = MIX_FLOAT32};

/* ---- equations ---- */

enum {
  TERMS = 16,
  LETTERS = 52,
  ELLIPSIS = LETTERS
}; /* dimension i of "...", from the right: ELLIPSIS + i */

/* The dimensions of an operand or of the result, by name. */
typedef struct term {
  mix_shape labels;
  int ellipsis; /* before which label "..." stands; -1: it does not */
  mix_tensor *tensor;
} term;

typedef struct equation {
  const char *text;
  int count, open; /* operands; dimensions of "..." */
  term operands[TERMS], result;
} equation;

static bool refuse(const equation *e, const char *problem) {
  return mix_fail_value("einsum: '%.100s': %s", e->text, problem);
}

static int label_of(char c) {
  return c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}

/* One term, up to ',', '-' or the end; sets the end. */
static bool read_term(const equation *e, const char **at, term *t) {
  t->ellipsis = -1;
  for (; **at && **at != ',' && **at != '-'; ++*at) {
    if (**at == ' ') continue;
    if (!strncmp(*at, "...", 3)) {
      if (t->ellipsis >= 0) return refuse(e, "'...' is twice in one term");
      t->ellipsis = t->labels.rank;
      *at += 2;
      continue;
    }
    if (label_of(**at) < 0) return refuse(e, "expected letters, '...', ',' and one '->'");
    if (t->labels.rank == MIX_MAX_RANK)
      return refuse(e, "a term has more letters than a tensor has dimensions");
    t->labels.dims[t->labels.rank++] = label_of(**at);
  }
  return true;
}

/* Puts the dimensions of "..." in its place. */
static bool open_ellipsis(const equation *e, term *t, int count) {
  if (t->ellipsis < 0) return true;
  if (t->labels.rank + count > MIX_MAX_RANK) return refuse(e, "the result has too many dimensions");
  for (int i = t->labels.rank - 1; i >= t->ellipsis; i--) t->labels.dims[i + count] = t->labels.dims[i];
  for (int i = 0; i < count; i++) t->labels.dims[t->ellipsis + i] = ELLIPSIS + count - 1 - i;
  t->labels.rank += count;
  return true;
}

/* The result without "->": "..." and the letters that occur once. */
static void imply_result(equation *e) {
  int seen[LETTERS] = {0};
  e->result.ellipsis = e->open ? 0 : -1;
  for (int k = 0; k < e->count; k++)
    for (int i = 0; i < e->operands[k].labels.rank; i++)
      if (e->operands[k].labels.dims[i] < LETTERS) seen[e->operands[k].labels.dims[i]]++;
  for (int label = 0; label < LETTERS; label++)
    if (seen[label] == 1 && e->result.labels.rank < MIX_MAX_RANK)
      e->result.labels.dims[e->result.labels.rank++] = label;
}

static bool open_operands(equation *e) {
  for (int k = 0; k < e->count; k++) {
    term *t = &e->operands[k];
    const mix_shape shape = mix_tensor_shape(t->tensor);
    const int open = shape.rank - t->labels.rank;
    if (open < 0 || (open > 0 && t->ellipsis < 0))
      return mix_fail_value("einsum: '%.100s': term %d has %d letters, but the operand has shape %s", e->text,
                            k + 1, t->labels.rank, MIX_SHAPE_TEXT(shape));
    if (!open_ellipsis(e, t, open)) return false;
    if (open > e->open) e->open = open;
  }
  return true;
}

static bool read_equation(equation *e) {
  const char *at = e->text;
  int terms = 0;
  for (bool more = true; more; more = *at == ',' && *at++) {
    if (terms == e->count) return refuse(e, "it has more terms than there are operands");
    if (!read_term(e, &at, &e->operands[terms++])) return false;
  }
  if (terms != e->count) return refuse(e, "it has fewer terms than there are operands");
  if (!open_operands(e)) return false;
  if (!*at) {
    imply_result(e);
  } else {
    if (at[1] != '>') return refuse(e, "expected letters, '...', ',' and one '->'");
    at += 2;
    if (!read_term(e, &at, &e->result)) return false;
    if (*at) return refuse(e, "the result is not the last term");
  }
  if (e->open && e->result.ellipsis < 0) return refuse(e, "operands have '...', but the result has not");
  return open_ellipsis(e, &e->result, e->open);
}

/* Does the result name known dimensions, each once? */
static bool check_result(const equation *e) {
  const mix_shape *labels = &e->result.labels;
  for (int i = 0; i < labels->rank; i++) {
    bool found = false;
    if (mix_einsum_find(labels, labels->dims[i]) != i) return refuse(e, "a letter is twice in the result");
    for (int k = 0; k < e->count; k++) found |= mix_einsum_find(&e->operands[k].labels, labels->dims[i]) >= 0;
    if (!found) return refuse(e, "the result has a letter that no operand has");
  }
  return true;
}

static bool check_sizes(const equation *e) {
  for (int label = 0; label < LETTERS + MIX_MAX_RANK; label++) {
    int64_t size = MIX_UNKNOWN;
    for (int k = 0; k < e->count; k++) {
      const mix_shape shape = mix_tensor_shape(e->operands[k].tensor);
      for (int i = 0; i < shape.rank; i++) {
        if (e->operands[k].labels.dims[i] != label || (label >= ELLIPSIS && shape.dims[i] == 1)) continue;
        if (mix_dimension_merge(size, shape.dims[i], &size)) continue;
        return mix_fail_value("einsum: '%.100s': one dimension has the sizes %lld and %lld", e->text,
                              (long long)size, (long long)shape.dims[i]);
      }
    }
  }
  return true;
}

/* ---- one operand ---- */

static void remove_label(mix_shape *labels, int at) {
  labels->rank--;
  for (int i = at; i < labels->rank; i++) labels->dims[i] = labels->dims[i + 1];
}

static mix_tensor *to_order(mix_tensor *x, const mix_shape *labels, const mix_shape *order) {
  mix_axes permutation = {.count = labels->rank};
  for (int i = 0; i < labels->rank; i++) permutation.axis[i] = mix_einsum_find(labels, order->dims[i]);
  return labels->rank ? mix_transpose(x, permutation) : x;
}

/* x (..., n, n) -> (..., n): of n rows of n, and one element of padding each, the first column. */
static mix_tensor *diagonal(mix_tensor *x) {
  mix_shape shape = mix_tensor_shape(x), flat = shape, padding = {.rank = shape.rank - 1}, none = padding;
  const int last = shape.rank - 2;
  const int64_t n = shape.dims[last];
  flat.rank = shape.rank - 1;
  flat.dims[last] = n * n;
  padding.dims[last] = n;
  x = mix_pad(mix_reshape(x, flat), none, padding, 0);
  shape.dims[last + 1] = n + 1;
  x = mix_reshape(x, shape);
  shape.dims[last + 1] = 1;
  return mix_squeeze(mix_slice(x, (mix_shape){.rank = shape.rank}, shape), MIX_AXES(-1));
}

/* Takes diagonals until no label is repeated. */
static bool take_diagonals(const equation *e, term *t) {
  for (int i = 0; i < t->labels.rank && !mix_failed(); i++) {
    const int first = mix_einsum_find(&t->labels, t->labels.dims[i]);
    if (first == i) continue;
    if (mix_tensor_shape(t->tensor).dims[i] == MIX_UNKNOWN)
      return refuse(e, "a diagonal of a dimension that is not known");
    const int64_t label = t->labels.dims[i];
    mix_axes last = {.count = t->labels.rank};
    for (int axis = 0, at = 0; axis < t->labels.rank; axis++)
      if (axis != first && axis != i) last.axis[at++] = axis;
    last.axis[last.count - 2] = first;
    last.axis[last.count - 1] = i;
    t->tensor = diagonal(mix_transpose(t->tensor, last));
    remove_label(&t->labels, i);
    remove_label(&t->labels, first);
    t->labels.dims[t->labels.rank++] = label;
    i = -1;
  }
  return !mix_failed();
}

/* ---- several operands ---- */

/* Do the result or the operands from `next` on have the label? */
static bool is_needed(const equation *e, int next, int64_t label) {
  for (int k = next; k < e->count; k++)
    if (mix_einsum_find(&e->operands[k].labels, label) >= 0) return true;
  return mix_einsum_find(&e->result.labels, label) >= 0;
}

/* Sums over the dimensions that only this operand has, and drops those of 1 that broadcast. `other` may be
 * NULL. */
static bool reduce_own(const equation *e, int next, term *t, const term *other) {
  mix_axes summed = {.count = 0}, dropped = {.count = 0};
  const mix_shape shape = mix_tensor_shape(t->tensor);
  for (int i = 0; i < t->labels.rank; i++) {
    const int64_t label = t->labels.dims[i];
    const int in_other = other ? mix_einsum_find(&other->labels, label) : -1;
    if (in_other < 0 && !is_needed(e, next, label))
      summed.axis[summed.count++] = i;
    else if (in_other >= 0 && label >= ELLIPSIS && shape.dims[i] == 1)
      dropped.axis[dropped.count++] = i;
  }
  if (summed.count) t->tensor = mix_reduce_sum(t->tensor, summed, true);
  for (int i = 0; i < summed.count; i++) dropped.axis[dropped.count++] = summed.axis[i];
  if (!dropped.count) return !mix_failed();
  t->tensor = mix_squeeze(t->tensor, dropped);
  mix_shape kept = {.rank = 0};
  for (int i = 0; i < t->labels.rank; i++) {
    bool drop = false;
    for (int d = 0; d < dropped.count; d++) drop |= dropped.axis[d] == i;
    if (!drop) kept.dims[kept.rank++] = t->labels.dims[i];
  }
  t->labels = kept;
  return !mix_failed();
}

/* The product with the next operand. The last one gives the result's order. */
static bool multiply(const equation *e, int next, term *total) {
  term factor = e->operands[next - 1];
  mix_shape result = {.rank = 0};
  if (!reduce_own(e, next, total, &factor) || !reduce_own(e, next, &factor, total)) return false;
  const mix_shape *lists[] = {&total->labels, &factor.labels};
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < lists[l]->rank; i++) {
      const int64_t label = lists[l]->dims[i];
      if (!is_needed(e, next, label) || mix_einsum_find(&result, label) >= 0) continue;
      if (result.rank == MIX_MAX_RANK) return refuse(e, "a product has too many dimensions");
      result.dims[result.rank++] = label;
    }
  if (next == e->count) result = e->result.labels;
  total->tensor = apply(total->tensor, total->labels, factor.tensor, factor.labels, result);
  total->labels = result;
  return !mix_failed();
}

mix_tensor *mix_einsum(const char *text, int count, mix_tensor *const *operands) {
  if (mix_failed()) return NULL;
  if (!mix_given(text, NULL, "einsum", "an equation") ||
      !mix_given(operands, NULL, "einsum", "an array of tensors"))
    return NULL;
  if (count < 1 || count > TERMS)
    return mix_fail_value("einsum: got %d operands; expected 1 to %d", count, TERMS);
  equation e = {.text = text, .count = count};
  for (int k = 0; k < count; k++)
    if (mix_operand_ready("einsum", operands[k]))
      e.operands[k].tensor = operands[k];
    else
      return NULL;
  if (!read_equation(&e) || !check_result(&e) || !check_sizes(&e)) return NULL;
  for (int k = 0; k < count; k++)
    if (!take_diagonals(&e, &e.operands[k])) return NULL;
  term total = e.operands[0];
  for (int next = 2; next <= count; next++)
    if (!multiply(&e, next, &total)) return NULL;
  if (count == 1 && !reduce_own(&e, 1, &total, NULL)) return NULL;
  return to_order(total.tensor, &total.labels, &e.result.labels);
}
