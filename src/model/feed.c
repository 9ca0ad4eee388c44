#include "model/feed.h"

#include "base/error.h"
#include "data/pipeline.h"
#include "data/place.h"
#include <mixtape/ops.h>

static bool append_all(mix_list *all, mix_list *part) {
  for (int i = 0; part && i < mix_list_count(part); i++) mix_list_append(all, mix_list_get(part, i));
  return part && !mix_failed();
}

mix_list *mix_feed_arrays(mix_model *model, const mix_feed_data *data, mix_feed_use use, const char *call, int *weight_arguments) {
  *weight_arguments = 0;
  mix_list *all = mix_list_new(0, NULL);
  mix_list *xs = mix_tensors_given(data->x, call, "x");
  if (!append_all(all, xs)) return NULL;
  if (use == MIX_FEED_PREDICT) return mix_model_arrays(all, call);
  mix_list *ys = mix_tensors_given(data->y, call, "y");
  if (!append_all(all, ys)) return NULL;
  int outputs = model->state->output_count;
  if (mix_list_count(ys) != outputs)
    return mix_fail(MIX_VALUE_ERROR, "%s: %d arrays of labels; the model has %d outputs", call, mix_list_count(ys), outputs);
  if (mix_list_count(xs) != mix_model_input_count(model))
    return mix_fail(MIX_VALUE_ERROR, "%s: %d inputs given; the model has %d", mix_model_name(model), mix_list_count(xs),
                    mix_model_input_count(model));
  if (data->sample_weight) {
    mix_list *weights = mix_tensors_given(data->sample_weight, call, "sample_weight");
    if (!append_all(all, weights)) return NULL;
    *weight_arguments = mix_list_count(weights);
    if (*weight_arguments != 1 && *weight_arguments != outputs)
      return mix_fail(MIX_VALUE_ERROR, "%s: %d arrays of sample weights; expected one, or one for each of the %d outputs", call,
                      *weight_arguments, outputs);
  }
  return mix_model_arrays(all, call);
}

bool mix_feed_open_arrays(mix_feed *feed, mix_list *arrays, int64_t rows, int64_t batch_size, int64_t epochs) {
  mix_tensor *list[3 * MIX_MODEL_MOST];
  int count = arrays ? mix_list_count(arrays) : 0;
  if (!arrays) return false;
  if (count > 3 * MIX_MODEL_MOST) {
    mix_fail(MIX_VALUE_ERROR, "%s: too many arrays", feed->call);
    return false;
  }
  for (int i = 0; i < count; i++) list[i] = mix_list_get(arrays, i);
  if (rows < 0) rows = mix_tensor_shape(list[0]).dims[0];
  if (!batch_size) batch_size = feed->steps ? rows / feed->steps + (rows % feed->steps != 0) : MIX_STANDARD_BATCH;
  feed->batches = mix_batches_new(count, list, 0, rows, batch_size, feed->call);
  if (!feed->batches) return false;
  feed->target = feed->steps ? feed->steps : mix_batches_count(feed->batches);
  feed->going_on = feed->use == MIX_FEED_TRAIN && feed->steps && feed->steps != mix_batches_count(feed->batches);
  feed->passes = feed->model->semantics->history_keys_sorted ? -1 : epochs; /* tf_keras repeats arrays so often, without a break */
  return true;
}

static bool open_dataset(mix_feed *feed, const mix_feed_data *data) {
  feed->dataset = data->x;
  if (data->y || data->sample_weight)
    mix_fail(MIX_VALUE_ERROR, "%s: %s given beside a data set, whose elements hold it: (x, y) or (x, y, sample_weight)", feed->call,
             data->y ? "y" : "sample_weight");
  if (data->batch_size)
    mix_fail(MIX_VALUE_ERROR, "%s: batch_size is %lld with a data set; its elements are the batches: use mix_dataset_batch",
             feed->call, (long long)data->batch_size);
  int64_t cardinality = mix_dataset_cardinality(feed->dataset);
  if (mix_failed()) return false;
  if (cardinality == MIX_INFINITE && !feed->steps)
    mix_fail(MIX_VALUE_ERROR, "%s: the data set never ends; give the steps to take", feed->call);
  feed->target = feed->steps ? feed->steps : cardinality >= 0 ? cardinality : -1;
  feed->going_on = feed->use == MIX_FEED_TRAIN && feed->steps && feed->steps != cardinality;
  return !mix_failed();
}

bool mix_feed_open(mix_feed *feed, mix_model *model, const mix_feed_data *data, mix_feed_use use, const char *call) {
  *feed = (mix_feed){.model = model, .call = call, .use = use, .steps = data->steps};
  if (mix_is_dataset(data->x)) return open_dataset(feed, data);
  mix_list *arrays = mix_feed_arrays(model, data, use, call, &feed->weight_arguments);
  return mix_feed_open_arrays(feed, arrays, -1, data->batch_size, 1);
}

void mix_feed_close(mix_feed *feed) {
  mix_release(feed->iterator);
  feed->iterator = NULL;
}

static bool begin_pass(mix_feed *feed) { return mix_batches_begin(feed->batches, feed->order, feed->seed, (uint64_t)feed->pass); }

static bool begin_arrays(mix_feed *feed, mix_batch_order order, uint64_t seed, int64_t epoch) {
  if (feed->going_on && feed->begun) return true;
  feed->order = order, feed->seed = seed;
  if (!feed->going_on || !feed->resumed) feed->pass = epoch, feed->next = 0;
  feed->begun = true;
  return begin_pass(feed);
}

bool mix_feed_begin(mix_feed *feed, mix_batch_order order, uint64_t seed, uint64_t epoch) {
  feed->position = 0;
  if (feed->batches) return begin_arrays(feed, order, seed, (int64_t)epoch);
  if (feed->iterator && feed->going_on) return true;
  mix_feed_close(feed);
  MIX_SCOPE { feed->iterator = mix_retain(mix_dataset_iterate(feed->dataset)); }
  return feed->iterator != NULL;
}

/* Tensors behind the labels of a data set's element; -1 with the error recorded where the element does not fit the model. */
static int weights_of_element(const mix_feed *feed, mix_list *element) {
  int count = mix_list_count(element), inputs = mix_model_input_count(feed->model), outputs = mix_model_output_count(feed->model);
  for (int i = 0; i < count; i++)
    if (mix_tensor_shape(mix_list_get(element, i)).rank < 1) {
      mix_fail(MIX_VALUE_ERROR,
               "%s: tensor %d of the data set's elements is a scalar; expected batches (rows, ...): use mix_dataset_batch",
               feed->call, i);
      return -1;
    }
  int weights = count - inputs - outputs;
  if (feed->use == MIX_FEED_PREDICT ? count >= inputs : weights == 0 || weights == 1 || weights == outputs) return weights;
  mix_fail(MIX_VALUE_ERROR, "%s: the data set's elements have %d tensors; the model wants %d inputs%s", feed->call, count, inputs,
           feed->use == MIX_FEED_PREDICT ? "" : ", its labels, and perhaps sample weights");
  return -1;
}

static mix_list *next_element(mix_feed *feed, int *weights) {
  mix_list *element = feed->iterator ? mix_iterator_next(feed->iterator) : NULL;
  /* Keras 3 begins anew where the last epoch happened to end with the data. */
  if (!element && !mix_failed() && feed->going_on && !feed->position && feed->model->semantics->history_keys_sorted) {
    mix_feed_close(feed);
    MIX_SCOPE { feed->iterator = mix_retain(mix_dataset_iterate(feed->dataset)); }
    element = feed->iterator ? mix_iterator_next(feed->iterator) : NULL;
  }
  if (!element) {
    mix_feed_close(feed);
    return NULL;
  }
  *weights = weights_of_element(feed, element);
  if (mix_failed()) return NULL;
  int inputs = mix_model_input_count(feed->model);
  if (feed->use != MIX_FEED_PREDICT || mix_list_count(element) == inputs) return element;
  mix_list *alone = mix_list_new(0, NULL);
  for (int i = 0; i < inputs; i++) mix_list_append(alone, mix_list_get(element, i));
  return alone;
}

/* NULL at the end of the data, or with the error recorded. */
static mix_list *next_batch(mix_feed *feed) {
  if (feed->next == mix_batches_count(feed->batches)) {
    const bool ends = feed->passes < 0 ? feed->position > 0 : feed->pass + 1 >= feed->passes;
    if (!feed->going_on || ends) return NULL;
    feed->pass++, feed->next = 0;
    if (!begin_pass(feed)) return NULL;
  }
  return mix_batches_get(feed->batches, feed->next++);
}

mix_list *mix_feed_next(mix_feed *feed) {
  mix_compiled_state *state = feed->model->state;
  int weights = feed->weight_arguments;
  if (feed->steps && feed->position == feed->steps) return NULL;
  mix_list *batch = feed->batches ? next_batch(feed) : next_element(feed, &weights);
  if (!batch) return NULL;
  if (feed->use != MIX_FEED_PREDICT) state->weight_arguments = weights;
  if (feed->use == MIX_FEED_TRAIN && weights && state->class_weights && feed->model->semantics->history_keys_sorted)
    return mix_fail(MIX_VALUE_ERROR, "%s: class weights and sample weights together; keras3 takes one of them", feed->call);
  feed->position++;
  return batch;
}

/* ---- checkpoints ---- */

bool mix_feed_put_place(const mix_feed *feed, mix_state *state, bool over) {
  if (!feed->dataset)
    return !feed->going_on || mix_state_put_integers(state, "fit/pass", 2, (const int64_t[]){feed->pass, feed->next});
  return mix_place_put(state, "fit/data", feed->dataset, over && !feed->going_on ? NULL : feed->iterator);
}

static bool get_pass(mix_feed *feed, mix_state *state) {
  int64_t place[2];
  if (!mix_state_get_integers(state, "fit/pass", 2, place)) return false;
  feed->pass = place[0], feed->next = place[1];
  feed->resumed = true;
  if (feed->pass >= 0 && feed->next >= 0 && feed->next <= mix_batches_count(feed->batches)) return true;
  mix_fail(MIX_FORMAT_ERROR, "%s: 'fit/pass' is no place in the data", mix_state_path(state));
  return false;
}

bool mix_feed_get_place(mix_feed *feed, mix_state *state) {
  int64_t drawn;
  if (mix_failed()) return false;
  if (!feed->dataset) return !feed->going_on || get_pass(feed, state);
  if (!mix_place_get(state, "fit/data", feed->dataset, &drawn)) return false;
  if (!drawn) return true;
  MIX_SCOPE { feed->iterator = mix_retain(mix_dataset_iterate(feed->dataset)); }
  return feed->iterator && mix_iterator_pass_over(feed->iterator, drawn);
}

bool mix_feed_resume(mix_feed *feed, mix_batch_order order, uint64_t seed, uint64_t epoch, int64_t position) {
  if (feed->batches && !mix_feed_begin(feed, order, seed, epoch)) return false;
  feed->position = position;
  if (!feed->going_on) feed->next = position;
  return !mix_failed();
}
