/* Data adapter: batches of arrays or data sets for fit, evaluate and predict. */
#include "train/data_adapter.h"

#include "base/clock.h"
#include "base/error.h"
#include "compile/trace.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/iterator_position.h"
#include "distribute/distribute.h"
#include <string.h>

/* Waits that are told: seconds of an epoch, and their share of it. */
#define MIN_WAITED 1.0
#define MIN_SHARE 0.1

/* ---- arrays ---- */

static bool is_nested(void *given) {
  if (!mix_is(given, &mix_list_class)) return false;
  bool nested = mix_list_is_dict(given);
  for (int i = 0; i < mix_list_count(given); i++) {
    const void *item = mix_list_get(given, i);
    nested |= !item || mix_is(item, &mix_list_class);
  }
  return nested;
}

/* Appends the leaves of arrays, nested or not. Labels and weights may be NULL. */
static bool add_leaves(mix_list *leaves, void *given, bool may_lack, const char *call, const char *what,
                       mix_component *component) {
  mix_list *own = is_nested(given) ? mix_list_flatten(given, call) : mix_tensors_given(given, call, what);
  char text[256];
  *component = (mix_component){mix_list_structure(own), mix_list_count(leaves), mix_list_count(own)};
  for (int i = 0; own && i < mix_list_count(own) && !mix_failed(); i++) {
    void *leaf = mix_list_get(own, i);
    if (leaf ? !mix_is(leaf, &mix_tensor_class) : !may_lack)
      mix_fail_type("%s: %s of %s is not a tensor", call,
                    mix_leaf_text(mix_list_structure(own), i, text, sizeof text), what);
    mix_list_append(leaves, leaf);
  }
  return own && !mix_failed();
}

/* NULL where nothing reads labels: none. */
static bool add_labels(mix_list *leaves, void *given, const mix_model *model, const char *call,
                       mix_component *component) {
  if (given || mix_model_wants_labels(model)) return add_leaves(leaves, given, true, call, "y", component);
  *component = (mix_component){.first = mix_list_count(leaves)};
  return true;
}

bool mix_data_given(void *given, const char *call, const char *what) {
  mix_component component;
  mix_list *leaves = mix_list_new(0, NULL);
  return leaves && add_leaves(leaves, given, !strchr(what, 'x'), call, what, &component);
}

mix_list *mix_data_adapter_arrays(mix_model *model, const mix_data_adapter_data *data,
                                  mix_data_adapter_use use, const char *call, mix_step_arguments *arguments) {
  mix_list *leaves = mix_list_new(0, NULL);
  mix_component x, y, weights;
  struct mix_arrangement arrangement;
  bool labelled = use != MIX_ADAPTER_PREDICT, weighted = labelled && data->sample_weight;
  if (!leaves || !add_leaves(leaves, data->x, false, call, "x", &x) ||
      (labelled && !add_labels(leaves, data->y, model, call, &y)) ||
      (weighted && !add_leaves(leaves, data->sample_weight, true, call, "sample_weight", &weights)))
    return NULL;
  *arguments = (mix_step_arguments){0};
  if (!labelled && !x.structure) return mix_model_arrays(leaves, false, call); /* the model counts them */
  if (!mix_arrange(model, leaves, &x, labelled ? &y : NULL, weighted ? &weights : NULL, call, &arrangement,
                   arguments))
    return NULL;
  return mix_model_arrays(mix_arranged(&arrangement, leaves), data->may_be_empty, call);
}

bool mix_data_adapter_open_arrays(mix_data_adapter *adapter, mix_list *arrays, int64_t rows,
                                  int64_t batch_size, int64_t epochs) {
  mix_tensor *list[3 * MIX_MODEL_MAX];
  int count = arrays ? mix_list_count(arrays) : 0;
  if (!arrays) return false;
  if (count > 3 * MIX_MODEL_MAX) return mix_fail_value("%s: too many arrays", adapter->call);
  for (int i = 0; i < count; i++) list[i] = mix_list_get(arrays, i);
  if (rows < 0) rows = mix_tensor_shape(list[0]).dims[0];
  if (!batch_size)
    batch_size = adapter->steps ? rows / adapter->steps + (rows % adapter->steps != 0) : MIX_DEFAULT_BATCH;
  adapter->batches = mix_batches_new(count, list, 0, rows, batch_size, adapter->call);
  if (!adapter->batches) return false;
  if (adapter->use != MIX_ADAPTER_PREDICT && adapter->rows == MIX_SHARED) mix_batches_share(adapter->batches);
  if (adapter->use != MIX_ADAPTER_PREDICT)
    adapter->digest = mix_rank_data_digest(arrays, adapter->rows, true);
  mix_data_adapter_set_target(adapter);
  /* tf_keras repeats arrays once per epoch, as one continuous pass. */
  adapter->passes = adapter->model->semantics->arrays_repeat ? -1 : epochs;
  /* One pass over the rows would copy no less. */
  if (adapter->kept)
    adapter->resident = mix_resident_keep(adapter->kept, arrays);
  else if (adapter->use == MIX_ADAPTER_TRAIN && epochs > 1)
    adapter->resident = mix_resident_new(arrays);
  return !mix_failed();
}

static bool open_dataset(mix_data_adapter *adapter, const mix_data_adapter_data *data) {
  adapter->dataset = data->x;
  if (data->y || data->sample_weight)
    mix_fail_value("%s: %s given beside a data set, whose elements hold it: (x, y) or (x, y, sample_weight)",
                   adapter->call, data->y ? "y" : "sample_weight");
  if (data->batch_size)
    mix_fail_value(
        "%s: batch_size is %lld with a data set; its elements are the batches: use mix_dataset_batch",
        adapter->call, (long long)data->batch_size);
  int64_t cardinality = mix_dataset_cardinality(adapter->dataset);
  if (mix_failed()) return false;
  if (cardinality == MIX_INFINITE && !adapter->steps)
    mix_fail_value("%s: the data set never ends; give the steps to take", adapter->call);
  adapter->target = adapter->steps ? adapter->steps : cardinality >= 0 ? cardinality : -1;
  adapter->continues = adapter->use == MIX_ADAPTER_TRAIN && adapter->steps && adapter->steps != cardinality;
  return !mix_failed();
}

bool mix_data_adapter_may_read(const char *call) {
  if (!mix_capture_current()) return true;
  return mix_fail_runtime(
      "%s: called in a function that is being captured, where tensors have no values yet; use "
      "mix_model_call there, or call %s outside",
      call, call);
}

bool mix_data_adapter_open(mix_data_adapter *adapter, mix_model *model, const mix_data_adapter_data *data,
                           mix_data_adapter_use use, const char *call) {
  *adapter = (mix_data_adapter){
      .model = model, .call = call, .use = use, .steps = data->steps, .rows = data->rows, .kept = data->kept};
  if (!mix_data_adapter_may_read(call) || !mix_rank_rows_check(data->rows, call)) return false;
  if (mix_is_dataset(data->x)) return open_dataset(adapter, data);
  mix_list *arrays = mix_data_adapter_arrays(model, data, use, call, &adapter->arguments);
  return mix_data_adapter_open_arrays(adapter, arrays, -1, data->batch_size, 1);
}

static void close_iterator(mix_data_adapter *adapter) {
  mix_release(adapter->iterator);
  adapter->iterator = NULL;
}

static bool open_iterator(mix_data_adapter *adapter) {
  close_iterator(adapter);
  MIX_SCOPE { adapter->iterator = mix_retain(mix_dataset_iterate_ahead(adapter->dataset)); }
  return adapter->iterator != NULL;
}

void mix_data_adapter_close(mix_data_adapter *adapter) {
  if (adapter->batches) mix_batches_stop(adapter->batches);
  close_iterator(adapter);
  if (!adapter->kept) mix_resident_free(adapter->resident);
  adapter->resident = NULL;
  mix_release(adapter->no_rows);
  adapter->no_rows = NULL;
}

static bool begin_pass(mix_data_adapter *adapter) {
  return mix_batches_begin(adapter->batches, adapter->order, adapter->seed, (uint64_t)adapter->pass);
}

static bool begin_arrays(mix_data_adapter *adapter, mix_batch_order order, uint64_t seed, int64_t epoch) {
  if (adapter->continues && adapter->begun) return true;
  adapter->order = order, adapter->seed = seed;
  if (!adapter->continues || !adapter->resumed) adapter->pass = epoch, adapter->next = 0;
  adapter->begun = true;
  return begin_pass(adapter);
}

static void begin_clock(mix_data_adapter *adapter) {
  adapter->waited = 0;
  adapter->began = mix_clock(CLOCK_MONOTONIC);
}

bool mix_data_adapter_begin(mix_data_adapter *adapter, mix_batch_order order, uint64_t seed, uint64_t epoch) {
  adapter->position = 0;
  begin_clock(adapter);
  if (adapter->batches) return begin_arrays(adapter, order, seed, (int64_t)epoch);
  if ((adapter->iterator || adapter->waits) && adapter->continues) return true;
  adapter->waits = false;
  return open_iterator(adapter);
}

/* ---- elements of data sets ---- */

static bool holds_batches(const mix_data_adapter *adapter, mix_list *element) {
  char what[256];
  for (int i = 0; i < mix_list_count(element); i++)
    if (mix_tensor_shape(mix_list_get(element, i)).rank < 1)
      return mix_fail_value("%s: %s of the data set's elements is a scalar; expected batches (rows, ...): "
                            "use mix_dataset_batch",
                            adapter->call, mix_leaf_text(mix_list_structure(element), i, what, sizeof what));
  return true;
}

/* Elements of inputs alone, where nothing reads labels. */
static bool lacks_labels(const mix_data_adapter *adapter, int count, int inputs) {
  return adapter->use != MIX_ADAPTER_PREDICT && count == inputs && !mix_model_wants_labels(adapter->model);
}

/* The number of tensors after the labels in a data set's element; -1 with the error recorded if the element
 * does not fit the model. */
static int weights_of_element(const mix_data_adapter *adapter, mix_list *element) {
  int count = mix_list_count(element), inputs = mix_model_input_count(adapter->model),
      outputs = mix_model_output_count(adapter->model);
  int weights = count - inputs - outputs;
  if (lacks_labels(adapter, count, inputs)) return 0;
  if (adapter->use == MIX_ADAPTER_PREDICT ? count >= inputs
                                          : weights == 0 || weights == 1 || weights == outputs)
    return weights;
  mix_fail_value("%s: the data set's elements have %d tensors; the model wants %d inputs%s", adapter->call,
                 count, inputs,
                 adapter->use == MIX_ADAPTER_PREDICT ? "" : ", its labels, and perhaps sample weights");
  return -1;
}

/* The components x, y and sample_weight of nested elements. A dict is x alone. */
static int components_of(const mix_structure *structure, mix_component *components) {
  if (structure->names) {
    components[0] = (mix_component){structure, 0, structure->leaves};
    return 1;
  }
  for (int i = 0, first = 0; i < structure->count && i < 3; i++) {
    const mix_structure *item = structure->items[i];
    components[i] = (mix_component){item, first, item ? item->leaves : 1};
    first += components[i].leaves;
  }
  return structure->count;
}

static bool arrange_element(mix_data_adapter *adapter, mix_list *element) {
  const mix_structure *structure = mix_list_structure(element);
  if (structure == adapter->arranged) return true;
  mix_component components[3];
  char text[512];
  int count = components_of(structure, components);
  bool labelled = adapter->use != MIX_ADAPTER_PREDICT;
  if (labelled && count == 1 && !mix_model_wants_labels(adapter->model))
    components[count++] = (mix_component){.first = mix_list_count(element)};
  if (count < 1 || count > 3 || (labelled && count == 1))
    mix_fail_value("%s: the data set's elements are %s; expected %s", adapter->call,
                   mix_structure_text(element, NULL, NULL, text, sizeof text),
                   labelled ? "(x, y) or (x, y, sample_weight)" : "x, (x,), (x, y) or (x, y, sample_weight)");
  if (mix_failed() || !mix_arrange(adapter->model, element, &components[0], labelled ? &components[1] : NULL,
                                   labelled && count == 3 ? &components[2] : NULL, adapter->call,
                                   &adapter->arrangement, &adapter->arguments))
    return false;
  adapter->arranged = structure;
  return true;
}

static mix_list *take(mix_data_adapter *adapter) {
  mix_list *element = adapter->iterator ? mix_iterator_next_leaves(adapter->iterator) : NULL;
  if (!element || !holds_batches(adapter, element)) element = NULL, close_iterator(adapter);
  if (adapter->rows == MIX_SHARED || !mix_is_distributed()) return element;
  return mix_data_adapter_element_of_ranks(adapter, element);
}

static mix_list *draw(mix_data_adapter *adapter) {
  mix_list *element = take(adapter);
  /* Keras 3 starts a new pass if the last epoch happened to end with the data. */
  if (element || mix_failed() || !adapter->continues || adapter->position ||
      !adapter->model->semantics->epoch_restarts_data)
    return element;
  open_iterator(adapter);
  return take(adapter);
}

/* A step takes something in place of each label. */
static mix_list *without_labels(mix_data_adapter *adapter, mix_list *inputs) {
  const int outputs = mix_model_output_count(adapter->model);
  mix_list *arguments = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(inputs); i++) mix_list_append(arguments, mix_list_get(inputs, i));
  for (int i = 0; i < outputs; i++) mix_list_append(arguments, mix_list_get(inputs, 0));
  adapter->arguments.missing_labels = (1u << outputs) - 1;
  return mix_failed() ? NULL : arguments;
}

static mix_list *next_element(mix_data_adapter *adapter) {
  mix_list *element = draw(adapter);
  if (!element) return NULL;
  if (adapter->use != MIX_ADAPTER_PREDICT) {
    adapter->digest = mix_rank_data_digest(element, adapter->rows, false); /* steps may augment at random */
    if (!(element = mix_rank_data_share(element, adapter->rows))) return NULL;
  }
  if (mix_list_structure(element))
    return arrange_element(adapter, element) ? mix_arranged(&adapter->arrangement, element) : NULL;
  adapter->arranged = NULL;
  adapter->arguments = (mix_step_arguments){.weights = weights_of_element(adapter, element)};
  if (mix_failed()) return NULL;
  int inputs = mix_model_input_count(adapter->model);
  if (lacks_labels(adapter, mix_list_count(element), inputs)) return without_labels(adapter, element);
  if (adapter->use != MIX_ADAPTER_PREDICT || mix_list_count(element) == inputs) return element;
  mix_list *inputs_only = mix_list_new(0, NULL);
  for (int i = 0; i < inputs; i++) mix_list_append(inputs_only, mix_list_get(element, i));
  return inputs_only;
}

/* NULL at the end of the data, or with the error recorded. */
static mix_list *next_batch(mix_data_adapter *adapter) {
  if (adapter->next == mix_batches_count(adapter->batches)) {
    const bool exhausted = adapter->passes < 0 ? adapter->position > 0 : adapter->pass + 1 >= adapter->passes;
    if (!adapter->continues || exhausted) return NULL;
    adapter->pass++, adapter->next = 0;
    if (!begin_pass(adapter)) return NULL;
  }
  const int64_t index = adapter->next++;
  return adapter->resident ? mix_resident_batch(adapter->resident, adapter->batches, index)
                           : mix_batches_get(adapter->batches, index);
}

static mix_list *wait_for_batch(mix_data_adapter *adapter) {
  const double begin = mix_clock(CLOCK_MONOTONIC);
  const int64_t traced = mix_trace_begin_input();
  mix_list *batch = adapter->batches ? next_batch(adapter) : next_element(adapter);
  mix_trace_end_input("input", traced);
  adapter->waited += mix_clock(CLOCK_MONOTONIC) - begin;
  return batch;
}

double mix_data_adapter_waited_share(const mix_data_adapter *adapter) {
  const double share = adapter->waited / (mix_clock(CLOCK_MONOTONIC) - adapter->began);
  return adapter->waited >= MIN_WAITED && share >= MIN_SHARE ? share : 0;
}

mix_list *mix_data_adapter_next(mix_data_adapter *adapter) {
  if (adapter->steps && adapter->position == adapter->steps) return NULL;
  mix_list *batch = wait_for_batch(adapter);
  if (!batch) return NULL;
  if (adapter->use != MIX_ADAPTER_PREDICT) {
    mix_model_set_step_arguments(adapter->model, &adapter->arguments);
    if (!mix_model_tell_ranks(adapter->model, adapter->digest, batch)) return NULL;
  }
  if (adapter->use == MIX_ADAPTER_TRAIN && adapter->arguments.weights &&
      adapter->model->state->class_weights && adapter->model->semantics->class_weights_alone)
    return mix_fail_value("%s: class weights and sample weights together; keras3 takes one of them",
                          adapter->call);
  adapter->position++;
  return batch;
}

/* ---- checkpoints ---- */

bool mix_data_adapter_put_position(const mix_data_adapter *adapter, mix_archive *archive, bool at_epoch_end) {
  if (!adapter->dataset)
    return !adapter->continues ||
           mix_archive_put_integers(archive, "fit/pass", 2, (const int64_t[]){adapter->pass, adapter->next});
  return mix_iterator_position_put(archive, "fit/data", adapter->dataset,
                                   at_epoch_end && !adapter->continues ? NULL : adapter->iterator);
}

static bool get_pass(mix_data_adapter *adapter, mix_archive *archive) {
  int64_t position[2];
  if (!mix_archive_get_integers(archive, "fit/pass", 2, position)) return false;
  adapter->pass = position[0], adapter->next = position[1];
  adapter->resumed = true;
  if (adapter->pass >= 0 && adapter->next >= 0 && adapter->next <= mix_batches_count(adapter->batches))
    return true;
  return mix_fail_format("%s: 'fit/pass' is no place in the data", mix_archive_path(archive));
}

bool mix_data_adapter_get_position(mix_data_adapter *adapter, mix_archive *archive) {
  int64_t drawn;
  if (mix_failed()) return false;
  if (!adapter->dataset) return !adapter->continues || get_pass(adapter, archive);
  if (!mix_iterator_position_get(archive, "fit/data", adapter->dataset, &drawn)) return false;
  if (!drawn) return true;
  MIX_SCOPE { adapter->iterator = mix_retain(mix_dataset_iterate_ahead(adapter->dataset)); }
  return adapter->iterator && mix_iterator_pass_over(adapter->iterator, drawn);
}

bool mix_data_adapter_resume(mix_data_adapter *adapter, mix_batch_order order, uint64_t seed, uint64_t epoch,
                             int64_t position) {
  if (adapter->batches && !mix_data_adapter_begin(adapter, order, seed, epoch)) return false;
  begin_clock(adapter);
  adapter->position = position;
  if (!adapter->continues) adapter->next = position;
  return !mix_failed();
}
