/* Models of many layers: reading, saving and describing four times as many takes about four times as long.
 * Time is that of the processor, of which a quadratic algorithm takes 16 times as much. */
#include "model/support.h"

#include "base/alloc.h"
#include "base/text.h"
#include "support/expect.h"
#include "support/folder.h"
#include <time.h>

/* ---- configs ---- */

static void put_layer(mix_text *text, const char *class, int i, const char *options) {
  mix_text_put(text, "%s{\"class_name\":\"%s\",\"config\":{\"name\":\"l%d\"%s}", i ? "," : "", class, i,
               options);
}

static void put_input(mix_text *text) {
  mix_text_put(text, "{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"in\",\"batch_shape\":[null,1]},"
                     "\"name\":\"in\",\"inbound_nodes\":[]}");
}

static char *chain_of_flatten(int count) {
  mix_text text = {.grows = true};
  mix_text_put(&text, "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[");
  for (int i = 0; i < count; i++) put_layer(&text, "Flatten", i, ""), mix_text_put(&text, "}");
  mix_text_put(&text, "],\"build_input_shape\":[null,1]}}");
  return text.text;
}

static char *chain_of_dense(int count) {
  mix_text text = {.grows = true};
  mix_text_put(&text, "{\"class_name\":\"Sequential\",\"keras_version\":\"3.0.0\",\"config\":{\"name\":\"s\","
                      "\"layers\":[");
  for (int i = 0; i < count; i++)
    put_layer(&text, "Dense", i, ",\"units\":1,\"use_bias\":false"), mix_text_put(&text, "}");
  mix_text_put(&text, "],\"build_input_shape\":[null,1]}}");
  return text.text;
}

static void begin_functional(mix_text *text) {
  mix_text_put(text, "{\"class_name\":\"Functional\",\"keras_version\":\"2.13.1\",\"config\":{\"name\":\"f\","
                     "\"layers\":[");
}

static char *end_functional(mix_text *text, const char *layer, int call) {
  mix_text_put(text, ",");
  put_input(text);
  mix_text_put(text, "],\"input_layers\":[[\"in\",0,0]],\"output_layers\":[[\"%s\",%d,0]]}}", layer, call);
  return text->text;
}

/* Layer i reads layer i + 1: what was called first stands last. */
static char *backward_graph(int count) {
  mix_text text = {.grows = true};
  begin_functional(&text);
  for (int i = 0; i < count; i++) {
    put_layer(&text, "Flatten", i, "");
    if (i + 1 < count)
      mix_text_put(&text, ",\"name\":\"l%d\",\"inbound_nodes\":[[[\"l%d\",0,0,{}]]]}", i, i + 1);
    else
      mix_text_put(&text, ",\"name\":\"l%d\",\"inbound_nodes\":[[[\"in\",0,0,{}]]]}", i);
  }
  return end_functional(&text, "l0", 0);
}

static char *forward_graph(int count) {
  char last[16];
  mix_text text = {.grows = true};
  begin_functional(&text);
  for (int i = 0; i < count; i++) {
    put_layer(&text, "Flatten", i, "");
    if (i)
      mix_text_put(&text, ",\"name\":\"l%d\",\"inbound_nodes\":[[[\"l%d\",0,0,{}]]]}", i, i - 1);
    else
      mix_text_put(&text, ",\"name\":\"l%d\",\"inbound_nodes\":[[[\"in\",0,0,{}]]]}", i);
  }
  snprintf(last, sizeof last, "l%d", count - 1);
  return end_functional(&text, last, 0);
}

/* One layer, called again and again. */
static char *one_layer_called_often(int count) {
  mix_text text = {.grows = true};
  begin_functional(&text);
  put_layer(&text, "Flatten", 0, "");
  mix_text_put(&text, ",\"name\":\"l0\",\"inbound_nodes\":[[[\"in\",0,0,{}]]");
  for (int i = 0; i + 1 < count; i++) mix_text_put(&text, ",[[\"l0\",%d,0,{}]]", i);
  mix_text_put(&text, "]}");
  return end_functional(&text, "l0", count - 1);
}

/* The first layer reads all others, each of which reads the one behind it. */
static char *merge_of_all(int count) {
  mix_text text = {.grows = true};
  begin_functional(&text);
  put_layer(&text, "Concatenate", 0, ",\"axis\":-1");
  mix_text_put(&text, ",\"name\":\"l0\",\"inbound_nodes\":[[");
  for (int i = count; i; i--) mix_text_put(&text, "[\"l%d\",0,0,{}]%s", i, i > 1 ? "," : "]]}");
  for (int i = 1; i <= count; i++) {
    put_layer(&text, "Flatten", i, "");
    mix_text_put(&text, ",\"name\":\"l%d\",\"inbound_nodes\":[[[\"", i);
    mix_text_put(&text, i < count ? "l%d\",0,0,{}]]]}" : "in\",0,0,{}]]]}", i + 1);
  }
  return end_functional(&text, "l0", 0);
}

/* ---- what is measured ---- */

static void read_config(mix_model *model, const char *text) {
  (void)model;
  assert_non_null(mix_model_from_json(text));
}
static void describe(mix_model *model, const char *text) {
  (void)text;
  assert_non_null(mix_model_summary(model));
}
static void write_config(mix_model *model, const char *text) {
  (void)text;
  assert_non_null(mix_model_to_json(model));
}
static void clone(mix_model *model, const char *text) {
  (void)text;
  assert_non_null(mix_model_clone(model));
}
/* Each model has files of its own. */
static const char *file_of(mix_model *model, const char *ending) {
  char name[32];
  snprintf(name, sizeof name, "%d.%s", mix_list_count(mix_model_layers(model)), ending);
  return in_folder(name);
}
static void save_archive(mix_model *model, const char *text) {
  (void)text;
  assert_int_equal(mix_model_save(model, file_of(model, "keras")), MIX_OK);
}
static void load_archive(mix_model *model, const char *text) {
  (void)text;
  assert_non_null(mix_model_load(file_of(model, "keras")));
}
static void save_legacy(mix_model *model, const char *text) {
  (void)text;
  assert_int_equal(mix_model_save(model, file_of(model, "h5")), MIX_OK);
}
static void load_legacy(mix_model *model, const char *text) {
  (void)text;
  assert_non_null(mix_model_load(file_of(model, "h5")));
}

typedef struct measured {
  const char *name;
  void (*run)(mix_model *model, const char *text);
} measured;
#define MEASURED(function)                                                                                   \
  { #function, function }

static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(const measured *what, mix_model *model, const char *text) {
  const double begin = processor_seconds();
  MIX_SCOPE { what->run(model, text); }
  return processor_seconds() - begin;
}

static double ratio_of(const measured *what, mix_model *const models[2], char *const texts[2]) {
  const double few = seconds_of(what, models[0], texts[0]), many = seconds_of(what, models[1], texts[1]);
  print_message("%s: %.3f s and %.3f s\n", what->name, few, many);
  return many / few;
}

/* The best of some ratios, each of two runs after another: what else runs on the machine takes of the caches,
 * but not of the shorter run alone time after time. */
static void expect_linear(char *(*config)(int count), int count, const measured *steps, int step_count) {
  enum { MORE = 4, LIMIT = 6, TRIES = 8 };
  MIX_SCOPE {
    char *texts[] = {config(count), config(MORE * count)};
    assert_true(texts[0] && texts[1]);
    mix_model *models[] = {mix_model_from_json(texts[0]), mix_model_from_json(texts[1])};
    assert_true(models[0] && models[1]);
    for (int i = 0; i < step_count; i++) {
      double best = INFINITY;
      for (int t = 0; t < TRIES && best > LIMIT; t++) best = fmin(best, ratio_of(&steps[i], models, texts));
      if (best > LIMIT)
        fail_msg("%s takes %.1f times as long for %d times as many layers", steps[i].name, best, MORE);
    }
    mix_free(texts[0]);
    mix_free(texts[1]);
  }
}

static const measured of_structure[] = {MEASURED(read_config), MEASURED(describe), MEASURED(write_config),
                                        MEASURED(clone)};
static const measured of_weights[] = {MEASURED(read_config),  MEASURED(describe),    MEASURED(save_archive),
                                      MEASURED(load_archive), MEASURED(save_legacy), MEASURED(load_legacy)};
#define COUNT(steps) ((int)(sizeof(steps) / sizeof *(steps)))

static void sequential_models(void **state) {
  (void)state;
  expect_linear(chain_of_flatten, 2500, of_structure, COUNT(of_structure));
}
static void functional_models(void **state) {
  (void)state;
  expect_linear(forward_graph, 2000, of_structure, COUNT(of_structure));
}
static void layers_listed_backwards(void **state) {
  (void)state;
  expect_linear(backward_graph, 2000, of_structure, COUNT(of_structure));
}
static void calls_of_one_layer(void **state) {
  (void)state;
  expect_linear(one_layer_called_often, 2500, of_structure, COUNT(of_structure));
}
static void inputs_listed_backwards(void **state) {
  (void)state;
  expect_linear(merge_of_all, 2000, of_structure, COUNT(of_structure));
}
static void weights_of_many_layers(void **state) {
  (void)state;
  expect_linear(chain_of_dense, 500, of_weights, COUNT(of_weights));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(weights_of_many_layers, teardown),
      cmocka_unit_test_teardown(sequential_models, teardown),
      cmocka_unit_test_teardown(functional_models, teardown),
      cmocka_unit_test_teardown(layers_listed_backwards, teardown),
      cmocka_unit_test_teardown(calls_of_one_layer, teardown),
      cmocka_unit_test_teardown(inputs_listed_backwards, teardown),
  };
  return cmocka_run_group_tests_name("many layers", tests, folder_begin, folder_end);
}
