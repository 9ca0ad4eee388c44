/* Data pipelines: byte images become float batches during training, on threads of the pipeline. Several
 * sources run side by side or in turn. Nested elements feed a model of two inputs by their names. An error
 * in a worker becomes an error of fit.
 *
 *   07_data_pipeline [EPOCHS] */
#include <mixtape/dataset.h>
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>

/* (28, 28) uint8 becomes (784) float32 in [0, 1]. Called by several threads at once. */
static mix_list *normalise(void *context, mix_list *element) {
  (void)context;
  const unsigned char *pixels = mix_tensor_data(mix_list_get(element, 0));
  float x[784];
  for (int i = 0; pixels && i < 784; i++) x[i] = (float)pixels[i] / 255;
  return mix_list_of(mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(784)), mix_list_get(element, 1));
}

/* A generator makes element `index`; NULL is the end. Here: weights that grow over the first thousand
 * examples. */
static mix_list *weight_of(void *context, int64_t index) {
  const int64_t *count = context;
  return index < *count ? mix_list_of(mix_scalar(index < 1000 ? (double)(index + 1) / 1000 : 1, MIX_FLOAT32))
                        : NULL;
}

/* Every fourth image, starting at the element's number, as if each quarter were a separate file. */
static mix_dataset *quarter(void *context, mix_list *element) {
  return mix_dataset_shard(context, 4, (int64_t)mix_tensor_item(mix_list_get(element, 0)));
}

static bool is_even(void *context, mix_list *element) {
  (void)context;
  return (int)mix_tensor_item(mix_list_get(element, 0)) % 2 == 0;
}

/* Elements with label 7 fail: the operation's error becomes the pipeline's. */
static mix_list *fail_at_sevens(void *context, mix_list *element) {
  if (mix_tensor_item(mix_list_get(element, 1)) != 7) return normalise(context, element);
  return mix_list_of(mix_reshape(mix_list_get(element, 0), MIX_SHAPE(7, 7)), mix_list_get(element, 1));
}

static mix_model *small_model(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(784));
  mix_tensor *x = mix_call(mix_dense(.units = 64, .activation = "relu"), inputs);
  mix_model *model = mix_model_new(
      inputs, mix_call(mix_activation("softmax", .dtype = "float32"), mix_call(mix_dense(.units = 10), x)));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"});
  return model;
}

/* ({"pixels": (784), "ink": (1)}, {"digit": y}): the names of the model's inputs and of its output. */
static mix_list *by_name(void *context, mix_list *element) {
  mix_list *plain = normalise(context, element);
  mix_tensor *pixels = mix_list_get(plain, 0);
  mix_tensor *ink = mix_reshape(mix_reduce_mean(pixels, MIX_AXES(0), false), MIX_SHAPE(1));
  return mix_list_of(mix_dict_of("pixels", pixels, "ink", ink), mix_dict_of("digit", mix_list_get(plain, 1)));
}

static mix_model *two_inputs(void) {
  mix_tensor *pixels = mix_input(.shape = MIX_SHAPE(784), .name = "pixels");
  mix_tensor *ink = mix_input(.shape = MIX_SHAPE(1), .name = "ink");
  mix_tensor *x = mix_call(mix_dense(.units = 64, .activation = "relu"), pixels);
  x = mix_call(mix_dense(.units = 10), mix_call(mix_concatenate(), mix_list_of(x, ink)));
  mix_model *model = mix_model_new(
      mix_list_of(pixels, ink), mix_call(mix_activation("softmax", .dtype = "float32", .name = "digit"), x));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy");
  return model;
}

int main(int argc, char **argv) {
  const int epochs = argc > 1 ? atoi(argv[1]) : 3;
  mix_scope *scope = mix_scope_begin();
  mix_set_seed(1);
  mix_set_global_policy("mixed_bfloat16");
  mix_images digits = mix_digits_load(.bytes = true);
  mix_dataset *images = mix_dataset_from_tensors(digits.x_train, digits.y_train);
  int64_t count = mix_dataset_cardinality(images);

  /* A small pipeline first: the even numbers from 0 to 9, in pairs. */
  mix_iterator *pairs = mix_dataset_iterate(
      mix_data_pipeline(mix_dataset_range(0, 10, 1), mix_step_filter(is_even), mix_step_batch(2)));
  for (mix_list *pair; (pair = mix_iterator_next(pairs));) {
    char text[96];
    printf("%s\n", mix_tensor_text(mix_list_get(pair, 0), text, sizeof text));
  }

  /* Four readers in turn, images zipped with their weights, in random order, normalised by two threads, in
   * full batches, prefetched. */
  mix_dataset *read = mix_data_pipeline(
      mix_dataset_range(0, 4, 1), mix_step_interleave(quarter, .context = images, .cycle_length = 4),
      mix_step_shuffle(2000, .seed = 1), mix_step_map(normalise, .num_parallel_calls = 2));
  mix_dataset *weights = mix_dataset_from_generator(weight_of, .context = &count);
  mix_dataset *train = mix_data_pipeline(mix_dataset_zip(read, weights),
                                         mix_step_batch(128, .drop_remainder = true), mix_step_prefetch(-1));
  /* The test data never changes, so it is normalised once. */
  mix_dataset *test = mix_data_pipeline(mix_dataset_from_tensors(digits.x_test, digits.y_test),
                                        mix_step_map(normalise), mix_step_batch(500), mix_step_cache());

  mix_model *model = small_model();
  mix_history *history =
      mix_model_fit(model, train, NULL, .epochs = epochs, .validation_x = test, .verbose = MIX_SILENT);
  for (int64_t e = 0; e < mix_history_epochs(history); e++)
    printf("Epoch %lld: loss %.4f, val_accuracy %.4f\n", (long long)e,
           mix_logs_get(mix_history_epoch(history, e), "loss"),
           mix_logs_get(mix_history_epoch(history, e), "val_accuracy"));
  if (!mix_error())
    printf("%lld images, %lld steps\n", (long long)count, (long long)mix_history_steps(history));

  /* Nested elements: x and y are dicts, whose names say which input and output they are. */
  mix_dataset *named =
      mix_data_pipeline(images, mix_step_take(2000), mix_step_map(by_name), mix_step_batch(100));
  printf("Elements: %s\n", mix_dataset_element_spec(named));
  history = mix_model_fit(two_inputs(), named, NULL, .verbose = MIX_SILENT);
  printf("Two inputs: loss %.4f\n", mix_logs_get(mix_history_epoch(history, 0), "loss"));

  /* A worker fails: fit ends with its error, and the history keeps the epochs before it. */
  mix_dataset *broken = mix_dataset_map(images, fail_at_sevens, .num_parallel_calls = 2);
  if (!mix_error()) {
    history = mix_model_fit(model, mix_dataset_prefetch(mix_dataset_batch(broken, 32), 2), NULL,
                            .verbose = MIX_SILENT);
    char message[512];
    const mix_status status = mix_error_take(message, sizeof message);
    printf("fit returned %s: %s: %s\n", history ? "a history" : "NULL", mix_status_name(status), message);
  }

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
