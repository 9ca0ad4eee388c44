/* Operands that are tensors or constants, and the dtype in which they meet. */
#include "nn/layers/operations/operation.h"

#include "base/error.h"
#include "base/json_special.h"

/* ---- one ---- */

static const char operand_expected[] = "a tensor or numbers; lists of numbers are of one length and kind";

static bool is_real(const json_t *value) {
  return json_is_real(value) || mix_json_special(value, &(double){0});
}

/* Numbers of another kind than the dtype's are TensorFlow's error. */
static bool suits(const mix_json_numbers *n, mix_dtype dtype) {
  if (dtype == MIX_BOOL) return !n->integer && !n->real;
  return !n->boolean && (mix_dtype_is_floating(dtype) || !n->real);
}

/* like: NONE for the dtype that TensorFlow gives them, or Keras a number. */
static mix_tensor *constant(const mix_operands *o, const char *name, const json_t *value, mix_dtype like) {
  mix_json_numbers n;
  if (!mix_json_numbers_read(value, &n))
    return mix_operand_refused(o, MIX_TYPE_ERROR, name, operand_expected);
  const mix_dtype real = is_real(value) && !mix_operands_of_tf(o) ? mix_floatx() : MIX_FLOAT32;
  const mix_dtype own = n.boolean ? MIX_BOOL : n.integer && !n.real ? MIX_INT32 : real;
  const mix_dtype dtype = like == MIX_DTYPE_NONE ? own : like;
  if (suits(&n, dtype)) return mix_json_numbers_tensor(&n, dtype);
  if (like == MIX_DTYPE_NONE) return mix_operand_refused(o, MIX_TYPE_ERROR, name, operand_expected);
  return mix_operation_fail(o, MIX_TYPE_ERROR, "%s holds %s; the other operand is %s", name,
                            n.boolean ? "booleans"
                            : n.real  ? "real numbers"
                                      : "integers",
                            mix_dtype_name(dtype));
}

static bool is_tensor(const json_t *value) { return mix_operand_form_number(value) >= 0; }

static mix_tensor *tensor_of(const mix_operands *o, const char *name, const json_t *value, mix_dtype like) {
  const int number = mix_operand_form_number(value), count = mix_list_count(o->tensors);
  if (mix_is_array_form(value)) return mix_array_form_read(value, o->layer->name, name);
  if (number < 0) return constant(o, name, value, like);
  if (number < count) return mix_list_get(o->tensors, number);
  return mix_operation_fail(o, MIX_VALUE_ERROR, "tensor %d of its call is asked for; it has %d", number,
                            count);
}

/* In files of tf_keras a list of one tensor may be that tensor. */
static const json_t *operand_json(const mix_operands *o, const char *name) {
  const json_t *value = mix_operand_json(o, name), *item = json_array_get(value, 0);
  return json_array_size(value) == 1 && is_tensor(item) && mix_operands_of_tf(o) ? item : value;
}

mix_tensor *mix_operand_like(const mix_operands *o, const char *name, const mix_tensor *like) {
  return tensor_of(o, name, operand_json(o, name), mix_tensor_dtype(like));
}

mix_tensor *mix_operand(const mix_operands *o, const char *name) { return mix_operand_like(o, name, NULL); }

mix_tensor *mix_operand_floating(mix_tensor *x) {
  return !x || mix_dtype_is_floating(mix_tensor_dtype(x)) ? x : mix_cast(x, mix_floatx());
}

/* ---- several ---- */

typedef struct operand {
  const char *name;
  const json_t *value;
  mix_tensor *tensor;
} operand;

mix_dtype mix_promoted_dtype(mix_dtype a, mix_dtype b) {
  if (a == b || b == MIX_DTYPE_NONE) return a;
  if (a == MIX_DTYPE_NONE || a == MIX_BOOL) return b;
  if (b == MIX_BOOL) return a;
  const bool float_a = mix_dtype_is_floating(a), float_b = mix_dtype_is_floating(b);
  if (float_a != float_b) return float_a ? a : b;
  const size_t size_a = mix_dtype_size(a), size_b = mix_dtype_size(b);
  if (size_a != size_b) return size_a > size_b ? a : b;
  return float_a ? MIX_FLOAT32 : MIX_INT16; /* uint8 with int8 */
}

/* Numbers, which are no tensors yet, have the kind of what is beside them, except that a float makes integers
 * float. */
static mix_dtype dtype_of_all(const operand *all, int count, mix_operand_rule rule) {
  bool floats = rule == MIX_OPERANDS_FLOATING, integers = rule == MIX_OPERANDS_TYPED;
  mix_dtype dtype = MIX_DTYPE_NONE;
  for (int i = 0; i < count; i++) {
    if (all[i].tensor) dtype = mix_promoted_dtype(dtype, mix_tensor_dtype(all[i].tensor));
    floats |= !all[i].tensor && is_real(all[i].value);
    integers |= !all[i].tensor && json_is_integer(all[i].value);
  }
  if (rule == MIX_OPERANDS_BOOLEAN) return MIX_BOOL;
  if (floats && !mix_dtype_is_floating(dtype)) return mix_floatx();
  return dtype == MIX_DTYPE_NONE || (dtype == MIX_BOOL && integers) ? MIX_INT32 : dtype;
}

static mix_tensor *number_of(const json_t *value, mix_dtype dtype) {
  mix_json_numbers n;
  return mix_json_numbers_read(value, &n) ? mix_json_numbers_tensor(&n, dtype) : NULL;
}

static void promote(const mix_operands *o, operand *all, int count) {
  const mix_operand_rule rule = o->operation->rule;
  for (operand *one = all; one < all + count && !mix_failed(); one++)
    if (!(json_is_number(one->value) || is_real(one->value)) || rule == MIX_OPERANDS_TYPED)
      one->tensor = tensor_of(o, one->name, one->value, MIX_DTYPE_NONE);
  const mix_dtype dtype = mix_failed() ? MIX_DTYPE_NONE : dtype_of_all(all, count, rule);
  for (operand *one = all; one < all + count && !mix_failed(); one++)
    one->tensor = one->tensor ? mix_cast(one->tensor, dtype) : number_of(one->value, dtype);
}

/* All constants have the dtype of the first tensor, or else of the first of them. */
static void make_alike(const mix_operands *o, operand *all, int count) {
  const operand *first = all;
  while (first < all + count && !is_tensor(first->value)) first++;
  if (first == all + count) first = all;
  const mix_dtype like = mix_tensor_dtype(tensor_of(o, first->name, first->value, MIX_DTYPE_NONE));
  for (operand *one = all; one < all + count && !mix_failed(); one++)
    one->tensor = tensor_of(o, one->name, one->value, like);
}

static bool read_all(const mix_operands *o, operand *all, int count) {
  (mix_operands_of_tf(o) ? make_alike : promote)(o, all, count);
  return !mix_failed();
}

bool mix_operands_promoted(const mix_operands *o, int count, const char *const *names, mix_tensor **tensors) {
  enum { MOST = 3 };
  operand all[MOST];
  for (int i = 0; i < count; i++) all[i] = (operand){names[i], operand_json(o, names[i]), NULL};
  const bool read = read_all(o, all, count);
  for (int i = 0; i < count; i++) tensors[i] = all[i].tensor;
  return read;
}

bool mix_operand_pair(const mix_operands *o, mix_tensor **pair) {
  const char *const names[] = {o->first, o->second};
  return mix_operands_promoted(o, 2, names, pair);
}

mix_list *mix_operand_list(const mix_operands *o) { return mix_operand_listed(o, o->first); }

mix_list *mix_operand_listed(const mix_operands *o, const char *name) {
  const json_t *items = mix_operand_json(o, name);
  const int count = (int)json_array_size(items);
  if (!count) return mix_operand_refused(o, MIX_TYPE_ERROR, name, "a list of tensors");
  operand *all = mix_scoped_memory((size_t)count * sizeof *all);
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; all && i < count; i++) {
    const json_t *item = json_array_get(items, (size_t)i), *fixed = json_object_get(item, MIX_OPERAND_VALUE);
    if (!mix_operands_of_tf(o) && !json_is_object(item))
      return mix_operand_refused(o, MIX_TYPE_ERROR, name, "tensors in its list");
    all[i] = (operand){name, fixed ? fixed : item, NULL};
  }
  if (mix_failed() || !read_all(o, all, count)) return NULL;
  for (int i = 0; i < count; i++) mix_list_append(list, all[i].tensor);
  return list;
}
