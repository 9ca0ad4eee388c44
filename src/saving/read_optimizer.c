/* The state of optimizers from files of Keras. */
#include "saving/read_weights.h"

#include "base/error.h"
#include "optim/optimizer.h"
#include "saving/weight_tree.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* Where the values are. */
typedef struct state {
  const char *group;
  mix_texts names; /* of legacy files; else the numbers from 0 */
  int count;
  bool scaled; /* of a loss-scale optimizer, whose inner one has a state of its own */
} state;

static const char *path_at(const state *s, int index) {
  char number[16];
  snprintf(number, sizeof number, "%d", index);
  return mix_join_path(s->group, s->names.items ? s->names.items[index] : number);
}

/* ---- which variables the file has ---- */

/* TensorFlow 2.11 to 2.15 saved the learning rate too, behind the counter. */
static mix_list *with_learning_rate(mix_optimizer *optimizer) {
  mix_list *saved = mix_optimizer_saved_variables(optimizer), *list = mix_list_new(0, NULL);
  mix_optimizer *plain = mix_optimizer_plain(optimizer);
  if (!saved || !plain->built || !plain->learning_rate || plain->rules->learning_rate_saved) return NULL;
  for (int i = 0; i < mix_list_count(saved); i++) {
    mix_list_append(list, mix_list_items(saved)[i]);
    if (i == 0) mix_list_append(list, plain->learning_rate);
  }
  return list;
}

/* The variables that so many values are of: with or without the learning rate, and without loss scaling where
 * the file had none. NULL: none. */
static mix_list *variables_of(mix_optimizer *optimizer, const state *s) {
  mix_list *plain =
      !s->scaled && optimizer->inner ? mix_optimizer_variables_of_file(optimizer->inner, false) : NULL;
  /* an archive says that it has no loss scaling; in a legacy file the number of values decides */
  mix_list *const candidates[] = {s->names.items ? NULL : plain, mix_optimizer_saved_variables(optimizer),
                                  with_learning_rate(optimizer), plain,
                                  mix_optimizer_variables_of_file(optimizer, s->scaled)};
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates && !mix_failed(); i++)
    if (candidates[i] && mix_list_count(candidates[i]) == s->count) return candidates[i];
  return NULL;
}

/* ---- accumulators of float8 layers ---- */

/* Appends the accumulators of one layer's weights from `first` on, those of replaced weights last. Returns
 * the first of the next layer. */
static int append_layer(const mix_optimizer *plain, int first, mix_list *list) {
  int end = first + 1;
  while (end < plain->count && mix_have_one_layer(plain->trainable[first], plain->trainable[end])) end++;
  for (int replaced = 0; replaced < 2; replaced++)
    for (int i = first; i < end; i++)
      if (mix_optimizer_overwrites(plain, plain->trainable[i]) == replaced)
        mix_list_append(list, plain->accumulators[i]);
  return end;
}

/* The state in the order of a model that was quantized before its optimizer was made: a layer's scales come
 * behind its kernel, and not before it as in a model of a file. */
static mix_list *in_quantized_order(const mix_optimizer *plain, mix_list *variables) {
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_items(variables)[i];
    int at = 0;
    while (at < plain->count && plain->accumulators[at] != variable) at++;
    if (at == plain->count)
      mix_list_append(list, variable);
    else if (at == 0)
      for (int next = 0; next < plain->count;) next = append_layer(plain, next, list);
  }
  return mix_failed() ? NULL : list;
}

static bool shapes_fit(const mix_weights_reader *reader, const state *s, mix_list *variables) {
  for (int i = 0; i < s->count; i++) {
    mix_dtype dtype;
    mix_shape shape;
    const char *path = path_at(s, i);
    if (!path || !mix_hdf5_describe(&reader->file->hdf5, path, &dtype, &shape)) return false;
    if (!mix_shape_equal(shape, ((mix_variable *)mix_list_items(variables)[i])->shape)) return false;
  }
  return true;
}

/* The variables in the order of the file; as they are where no order fits. */
static mix_list *in_file_order(const mix_weights_reader *reader, mix_optimizer *optimizer, const state *s,
                               mix_list *variables) {
  const mix_optimizer *plain = mix_optimizer_plain(optimizer);
  if (!plain->accumulators || shapes_fit(reader, s, variables) || mix_failed()) return variables;
  mix_list *other = in_quantized_order(plain, variables);
  return other && shapes_fit(reader, s, other) ? other : variables;
}

/* ---- reading ---- */

static bool counts_differ(const mix_weights_reader *reader, mix_optimizer *optimizer, int count) {
  mix_list *ours = mix_optimizer_saved_variables(optimizer);
  if (ours && reader->assign)
    mix_log_message(MIX_LOG_WARNING,
                    "%s: %s: the state of the optimizer '%s' is not read: it has %d variables here and %d in "
                    "the file%s",
                    reader->call, reader->file->name, optimizer->name, mix_list_count(ours), count,
                    mix_optimizer_plain(optimizer)->built ? "" : "; it is not built yet");
  return !mix_failed();
}

/* Has the file no state that training made? An optimizer that was never built has a counter at 0, its
 * learning rate and the loss scale: scalars, of which the integers are 0. */
static bool is_unused(const mix_weights_reader *reader, const state *s) {
  enum { MAX_SCALARS = 8 };
  for (int i = 0; i < s->count; i++) {
    mix_dtype dtype;
    mix_shape shape;
    const char *path = i < MAX_SCALARS ? path_at(s, i) : NULL;
    mix_hdf5 *hdf5 = path ? mix_keras_file_with(reader->file, path) : NULL;
    if (!hdf5 || !mix_hdf5_describe(hdf5, path, &dtype, &shape) || shape.rank) return false;
    if (mix_dtype_is_integer(dtype) && mix_tensor_item(mix_hdf5_tensor(hdf5, path)) != 0) return false;
  }
  return true;
}

static bool read_state(mix_weights_reader *reader, mix_optimizer *optimizer, const state *s) {
  mix_list *variables = variables_of(optimizer, s);
  if (!variables && !mix_failed() && is_unused(reader, s)) return true;
  if (!variables) return !mix_failed() && counts_differ(reader, optimizer, s->count);
  variables = in_file_order(reader, optimizer, s, variables);
  for (int i = 0; i < s->count; i++) {
    const char *path = path_at(s, i);
    if (!path || !mix_read_variable(reader, path, mix_list_items(variables)[i])) return false;
  }
  return true;
}

/* ---- where the file has them ---- */

/* A file of a loss-scale optimizer has the inner one's state at a path of its own. */
static bool find_by_path(const mix_weights_reader *reader, const mix_optimizer *optimizer, state *s) {
  static const char inner[] = "optimizer/inner_optimizer/vars";
  s->scaled = reader->file->shards ? mix_count_links(reader->file, inner) > 0
                                   : mix_hdf5_has(&reader->file->hdf5, inner);
  s->group = s->scaled && !optimizer->inner ? inner : "optimizer/vars";
  s->count = mix_count_links(reader->file, s->group);
  return s->count >= 0;
}

static bool find_legacy(const mix_weights_reader *reader, state *s) {
  s->group = "optimizer_weights";
  if (!*reader->file->root || !mix_hdf5_has(&reader->file->hdf5, s->group)) return false;
  if (!mix_read_texts(reader->file, s->group, "weight_names", &s->names)) return false;
  s->count = s->names.count;
  return true;
}

/* Keras forgives every mismatch of an optimizer in a legacy file. */
static bool forgive(mix_weights_reader *reader) {
  char message[1024];
  if (reader->file->by_path || mix_error() != MIX_VALUE_ERROR) return false;
  reader->no_optimizer = true;
  mix_error_take(message, sizeof message);
  mix_log_message(MIX_LOG_WARNING, "%s; the optimizer keeps its state", message);
  return true;
}

bool mix_read_optimizer(mix_weights_reader *reader) {
  state s = {0};
  mix_optimizer *optimizer = reader->model->state ? reader->model->state->optimizer : NULL;
  if (!optimizer || reader->no_optimizer) return true;
  if (reader->file->by_path && !mix_optimizer_plain(optimizer)->rules->optimizer_in_weights_file) return true;
  if (!(reader->file->by_path ? find_by_path(reader, optimizer, &s) : find_legacy(reader, &s)))
    return !mix_failed();
  const bool good = read_state(reader, optimizer, &s) || forgive(reader);
  mix_texts_free(&s.names);
  return good && !mix_failed();
}
