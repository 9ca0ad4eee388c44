/* Classes of models: those of KerasHub by texts of a few lines, with their errors, and those of a user. */
#include "model/support.h"
#include "support/folder.h"
#include "support/skip.h"

#include "formats/file.h"
#include <jansson.h>

#define BACKBONE(options)                                                                                    \
  "{\"class_name\": \"BertBackbone\", \"registered_name\": \"keras_hub>BertBackbone\", \"config\": "         \
  "{\"name\": \"bert\", \"dtype\": \"float32\", \"vocabulary_size\": 20, \"num_heads\": 2, "                 \
  "\"hidden_dim\": 8, \"intermediate_dim\": 12, \"max_sequence_length\": 6, \"num_segments\": 2" options     \
  "}}"
#define BERT BACKBONE(", \"num_layers\": 1")
#define TASK                                                                                                 \
  "{\"class_name\": \"BertTextClassifier\", \"registered_name\": \"keras_hub>BertTextClassifier\", "         \
  "\"config\": {\"name\": \"task\", \"num_classes\": 3, \"backbone\": " BERT "}}"

#define PHI3(type, short, long)                                                                              \
  "{\"class_name\": \"Phi3Backbone\", \"registered_name\": \"keras_hub>Phi3Backbone\", \"config\": "         \
  "{\"vocabulary_size\": 20, \"num_layers\": 1, \"num_query_heads\": 2, \"num_key_value_heads\": 1, "        \
  "\"hidden_dim\": 8, \"intermediate_dim\": 12, \"rope_scaling_type\": " type                                \
  ", \"rope_scaling_short_factor\": " short ", \"rope_scaling_long_factor\": " long "}}"

static int begin(void **state) {
  mix_set_semantics("keras3");
  return folder_begin(state);
}

static mix_list *inputs(void) {
  static const int32_t ids[2][4] = {{1, 2, 3, 0}, {4, 19, 6, 7}}, mask[2][4] = {{1, 1, 1, 0}, {1, 1, 1, 1}},
                       segments[2][4] = {{0, 0, 1, 1}, {0, 1, 1, 1}};
  const mix_shape shape = MIX_SHAPE(2, 4);
  return mix_dict_of("token_ids", mix_tensor_from(ids, MIX_INT32, shape), "padding_mask",
                     mix_tensor_from(mask, MIX_INT32, shape), "segment_ids",
                     mix_tensor_from(segments, MIX_INT32, shape));
}

static mix_model *task(void) {
  mix_model *model = mix_model_from_json(TASK);
  assert_no_error();
  return model;
}

/* Bit for bit: what is read is what was written. */
static void assert_predicts_alike(mix_model *a, mix_model *b) {
  mix_list *x = inputs(), *y = mix_model_predict(a, x), *z = mix_model_predict(b, x);
  assert_no_error();
  assert_int_equal(mix_list_count(y), mix_list_count(z));
  for (int i = 0; i < mix_list_count(y); i++) {
    const int64_t count = mix_shape_size(mix_tensor_shape(mix_list_get(y, i)));
    for (int64_t k = 0; k < count; k++) assert_true(at(mix_list_get(y, i), k) == at(mix_list_get(z, i), k));
  }
}

static void inputs_are_named(void **state) {
  (void)state;
  mix_model *model = task();
  mix_list *x = inputs();
  mix_tensor *padding = mix_dict_get(x, "padding_mask"), *segments = mix_dict_get(x, "segment_ids");
  mix_list *named = mix_model_predict(model, x),
           *listed = mix_model_predict(model, mix_list_of(padding, segments, mix_dict_get(x, "token_ids")));
  assert_no_error();
  for (int i = 0; i < 6; i++) assert_true(at(mix_list_get(named, 0), i) == at(mix_list_get(listed, 0), i));
  mix_model_predict(model, mix_dict_of("token_ids", mix_dict_get(x, "token_ids"), "padding_mask", padding));
  assert_error(MIX_VALUE_ERROR, "segment_ids");
}

static void files_and_folders_hold_the_model(void **state) {
  (void)state;
  mix_model *model = task();
  mix_model_save(model, in_folder("task.keras"));
  mix_model_save(model, in_folder("task/"));
  assert_predicts_alike(model, mix_model_load(in_folder("task.keras")));
  assert_predicts_alike(model, mix_model_load(in_folder("task")));
  mix_model *other = task(); /* weights alone: of the backbone and the classifier */
  mix_model_load_weights(other, in_folder("task"));
  assert_predicts_alike(model, other);
  mix_model_save(model, in_folder("task/"), .no_overwrite = true);
  assert_error(MIX_IO_ERROR, "exists already");
  mix_model_save_weights(model, in_folder("task/"));
  assert_error(MIX_VALUE_ERROR, "names a whole model");
  assert_null(mix_model_load(in_folder("")));
  assert_error(MIX_IO_ERROR, "a folder without config.json");
}

/* A folder of a task without the weights beside the backbone's: these begin as in a new model. */
static void a_new_head_is_random(void **state) {
  (void)state;
  mix_model *model = task();
  mix_model_save(model, in_folder("head/"));
  assert_int_equal(unlink(in_folder("head/task.weights.h5")), 0);
  mix_model *again = mix_model_load(in_folder("head"));
  assert_no_error();
  mix_tensor *kernel = mix_list_get(mix_model_get_weights(again), 23);
  assert_true(mix_tensor_item(mix_reduce_max(mix_abs(kernel), MIX_ALL_AXES, false)) > 0);
  assert_int_equal(unlink(in_folder("head/model.weights.h5")), 0);
  assert_null(mix_model_load(in_folder("head")));
  assert_error(MIX_IO_ERROR, "has neither model.weights.h5 nor model.weights.json");
}

static void what_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *text;
    mix_status status;
    const char *message;
  } rows[] = {
      {"{\"class_name\": \"BertBackbones\", \"registered_name\": \"keras_hub>BertBackbones\", "
       "\"config\": {}}",
       MIX_UNSUPPORTED, "'BertBackbones' of KerasHub is not supported; did you mean 'BertBackbone'?"},
      {"{\"class_name\": \"MixtralBackbone\", \"registered_name\": \"keras_hub>MixtralBackbone\", "
       "\"config\": {\"num_experts\": 8}}",
       MIX_UNSUPPORTED, "'MixtralBackbone' of KerasHub is not supported; did you mean 'MistralBackbone'?"},
      {"{\"class_name\": \"QwenMoeBackbone\", \"registered_name\": \"keras_hub>QwenMoeBackbone\", "
       "\"config\": {}}",
       MIX_UNSUPPORTED, "'QwenMoeBackbone' of KerasHub is not supported; did you mean 'QwenBackbone'?"},
      {"{\"class_name\": \"QwenMoeCausalLM\", \"registered_name\": \"keras_hub>QwenMoeCausalLM\", "
       "\"config\": {}}",
       MIX_UNSUPPORTED, "did you mean 'QwenCausalLM'?"},
      {PHI3("\"su\"", "[1.0, 2.0]", "[2.0, 3.0], \"num_experts\": 4"), MIX_VALUE_ERROR, "num_experts"},
      {BACKBONE(", \"num_layers\": 1, \"num_experts\": 4"), MIX_VALUE_ERROR, "num_experts"},
      {BACKBONE(", \"num_layers\": 1001"), MIX_VALUE_ERROR, "num_layers"},
      {BACKBONE(", \"num_layers\": 0"), MIX_VALUE_ERROR, "num_layers"},
      {BACKBONE(", \"num_layers\": \"many\""), MIX_TYPE_ERROR, "num_layers"},
      {BACKBONE(""), MIX_TYPE_ERROR, "num_layers"},
      {BACKBONE(", \"num_layers\": 1, \"dropout\": 2"), MIX_VALUE_ERROR, "dropout"},
      {"{\"class_name\": \"BertTextClassifier\", \"registered_name\": \"keras_hub>BertTextClassifier\", "
       "\"config\": {\"num_classes\": 3, \"backbone\": {\"class_name\": \"Dense\", \"config\": {\"units\": "
       "3}}}}",
       MIX_VALUE_ERROR, "expected a backbone"},
      {"{\"class_name\": \"AlbertBackbone\", \"registered_name\": \"keras_hub>AlbertBackbone\", "
       "\"config\": {\"vocabulary_size\": 20, \"num_layers\": 500, \"num_groups\": 1, "
       "\"num_inner_repetitions\": 500, \"num_heads\": 2, \"embedding_dim\": 4, \"hidden_dim\": 8, "
       "\"intermediate_dim\": 12, \"max_sequence_length\": 6, \"num_segments\": 2}}",
       MIX_VALUE_ERROR, "num_inner_repetitions 500; expected a product of at most 1000"},
      {PHI3("\"su\"", "[1.0]", "[2.0, 3.0]"), MIX_VALUE_ERROR,
       "rope_scaling_short_factor has 1 numbers; expected 2 above 0"},
      {PHI3("\"su\"", "[1.0, 2.0]", "[2.0, 0.0]"), MIX_VALUE_ERROR, "rope_scaling_long_factor"},
      {PHI3("\"su\"", "null", "null"), MIX_VALUE_ERROR, "rope_scaling_short_factor has 0 numbers"},
      {PHI3("\"su\"", "[1.0, 2.0]", "[2.0, 3.0], \"pretraining_sequence_length\": 1"), MIX_VALUE_ERROR,
       "pretraining_sequence_length is 1"},
      {PHI3("\"yarn\"", "[1.0, 2.0]", "[2.0, 3.0]"), MIX_VALUE_ERROR, "rope_scaling_type"},
      {"{\"class_name\": \"RobertaTextClassifier\", \"registered_name\": "
       "\"keras_hub>RobertaTextClassifier\", \"config\": {\"num_classes\": 3, \"backbone\": " BERT "}}",
       MIX_VALUE_ERROR, "'bert', a BertBackbone, has several outputs"},
      {"{\"class_name\": \"BertTextClassifier\", \"registered_name\": \"keras_hub>BertTextClassifier\", "
       "\"config\": 4}",
       MIX_VALUE_ERROR, "expected an object"},
      {"{\"class_name\": \"Tower\", \"registered_name\": \"other>Tower\", \"config\": {}}", MIX_VALUE_ERROR,
       "mix_register_model"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_null(mix_model_from_json(rows[i].text));
    assert_error(rows[i].status, rows[i].message);
  }
}

/* Dense layers keep a scale for each unit, EinsumDense ones with axes of length 1 before: KerasHub reads the
 * output of BLOOM's attention as the first, of GPT-NeoX's as the second. */
static void outputs_of_attention_are_quantized_as_in_keras_hub(void **state) {
  (void)state;
  static const struct {
    const char *class, *options;
    int rank;
  } rows[] = {{"Bloom", "", 1}, {"GPTNeoX", ", \"max_sequence_length\": 6", 3}};
  for (int i = 0; i < 2; i++) {
    char json[600];
    snprintf(json, sizeof json,
             "{\"class_name\": \"%sBackbone\", \"registered_name\": \"keras_hub>%sBackbone\", \"config\": "
             "{\"name\": \"b\", \"vocabulary_size\": 20, \"num_layers\": 1, \"num_heads\": 2, "
             "\"hidden_dim\": 16, \"intermediate_dim\": 12%s}}",
             rows[i].class, rows[i].class, rows[i].options);
    mix_model *model = mix_model_from_json(json);
    mix_model_quantize(model, "int8");
    mix_list *weights = mix_model_weights(model);
    assert_no_error();
    int found = 0;
    for (int k = 0; k < mix_list_count(weights); k++) {
      const mix_variable *weight = mix_list_get(weights, k);
      const char *name = mix_variable_name(weight);
      if (!strstr(name, i ? "/attention_output/kernel_scale" : "/output_dense/kernel_scale")) continue;
      if (strstr(name, "mlp")) continue;
      assert_int_equal(mix_variable_shape(weight).rank, rows[i].rank);
      found++;
    }
    assert_int_equal(found, 1);
  }
}

/* In a window of padding alone attention gives 0, as KerasHub's softmax does: the result there is of the
 * position's own token. */
static void a_window_of_padding_gives_nothing(void **state) {
  (void)state;
  mix_model *model = mix_model_from_json(
      "{\"class_name\": \"MistralBackbone\", \"registered_name\": \"keras_hub>MistralBackbone\", \"config\": "
      "{\"name\": \"m\", \"vocabulary_size\": 20, \"num_layers\": 2, \"num_query_heads\": 2, "
      "\"num_key_value_heads\": 1, \"hidden_dim\": 8, \"intermediate_dim\": 12, \"sliding_window\": 2}}");
  static const int32_t ids[2][6] = {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 4, 11, 6}},
                       mask[2][6] = {{1, 1, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}};
  const mix_shape shape = MIX_SHAPE(2, 6);
  mix_list *made =
      mix_model_predict(model, mix_dict_of("token_ids", mix_tensor_from(ids, MIX_INT32, shape),
                                           "padding_mask", mix_tensor_from(mask, MIX_INT32, shape)));
  assert_no_error();
  mix_tensor *y = mix_list_get(made, 0);
  for (int position = 0; position < 6; position++) {
    bool same = true;
    for (int i = 0; i < 8; i++) same &= at(y, position * 8 + i) == at(y, (6 + position) * 8 + i);
    assert_int_equal(same, position == 3 || position == 5); /* the same token, and no keys */
  }
}

/* Configs that were written before KerasHub had an option, such as those of the first Gemma, have its
 * default.
 */
static void options_that_a_config_lacks(void **state) {
  (void)state;
  static const char gemma[] =
      "{\"class_name\": \"GemmaBackbone\", \"registered_name\": \"keras_hub>GemmaBackbone\", \"config\": "
      "{\"name\": \"gemma\", \"vocabulary_size\": 20, \"num_layers\": 1, \"num_query_heads\": 2, "
      "\"num_key_value_heads\": 1, \"hidden_dim\": 8, \"intermediate_dim\": 12, \"head_dim\": 4, "
      "\"layer_norm_epsilon\": 1e-6, \"dropout\": 0}}";
  static const char bert[] =
      "{\"class_name\": \"BertBackbone\", \"registered_name\": \"keras_hub>BertBackbone\", \"config\": "
      "{\"name\": \"bert\", \"vocabulary_size\": 20, \"num_layers\": 1, \"num_heads\": 2, "
      "\"hidden_dim\": 8, \"intermediate_dim\": 12}}";
  assert_non_null(mix_model_from_json(gemma));
  mix_model *model = mix_model_from_json(bert);
  assert_no_error();
  static const struct {
    const char *layer;
    int64_t rows;
  } tables[] = {{"position_embedding", 512}, {"segment_embedding", 2}};
  for (int i = 0; i < 2; i++) {
    mix_list *weights = mix_layer_weights(mix_model_get_layer(model, tables[i].layer));
    assert_int_equal(mix_variable_shape(mix_list_get(weights, 0)).dims[0], tables[i].rows);
  }
}

/* The first layer whose weights do not fit is named. */
static void weights_that_do_not_fit(void **state) {
  (void)state;
  mix_model *model = mix_model_from_json(BACKBONE(", \"num_layers\": 1"));
  mix_model_save_weights(model, in_folder("one.weights.h5"));
  mix_model *other = mix_model_from_json(BACKBONE(", \"num_layers\": 2"));
  mix_model_load_weights(other, in_folder("one.weights.h5"));
  assert_error(MIX_VALUE_ERROR, "layers/transformer_encoder_1/");
}

static mix_model *task_of(int classes) {
  char text[2000];
  snprintf(text, sizeof text,
           "{\"class_name\": \"BertTextClassifier\", \"registered_name\": "
           "\"keras_hub>BertTextClassifier\", \"config\": {\"num_classes\": %d, \"backbone\": %s}}",
           classes, BERT);
  return mix_model_from_json(text);
}

/* The last layers stand in the second file; the backbone's weights are in the first one. */
static void a_head_that_does_not_fit_changes_nothing(void **state) {
  (void)state;
  mix_model *model = task_of(3), *plain = task_of(3);
  mix_model_save(task_of(4), in_folder("four/"));
  mix_model_set_weights(plain, mix_model_get_weights(model));
  assert_no_error();
  mix_model_load_weights(model, in_folder("four/"));
  assert_error(MIX_VALUE_ERROR, "logits");
  assert_predicts_alike(model, plain);
}

static void a_backbone_replaces_the_task_of_a_folder(void **state) {
  (void)state;
  mix_model_save(task_of(3), in_folder("reused/"));
  mix_model *backbone = mix_model_from_json(BERT);
  mix_model_save(backbone, in_folder("reused/"));
  mix_model *again = mix_model_load(in_folder("reused"));
  assert_no_error();
  assert_string_equal(mix_model_to_json(backbone), mix_model_to_json(again));
}

/* As in Keras, where the config makes it; a file of a clone loads. */
static void clones_are_of_the_class(void **state) {
  (void)state;
  mix_model *model = task(), *clone = mix_model_clone(model);
  assert_no_error();
  mix_model_set_weights(clone, mix_model_get_weights(model));
  mix_model_save(clone, in_folder("clone.keras"));
  assert_no_error();
  assert_predicts_alike(model, mix_model_load(in_folder("clone.keras")));
}

/* What could not be read back is not written. */
static void files_that_cannot_say_it(void **state) {
  (void)state;
  mix_model *model = task(), *backbone = mix_model_from_json(BERT);
  mix_model_save(model, in_folder("task.h5"));
  assert_error(MIX_UNSUPPORTED, "which no .h5 can say");
  mix_model *part = mix_model_new(mix_model_inputs(backbone),
                                  mix_list_get(mix_model_layer_outputs(backbone, "transformer_layer_0"), 0));
  assert_no_error();
  mix_model_save(part, in_folder("part.keras"));
  assert_error(MIX_UNSUPPORTED, "is a part of a model of KerasHub");
}

static void a_policy_is_the_backbones(void **state) {
  (void)state;
  mix_model_save(task(), in_folder("plain.keras"));
  mix_model *model = mix_model_load(in_folder("plain.keras"), .policy = "mixed_bfloat16");
  assert_no_error();
  assert_non_null(strstr(mix_model_to_json(model), "\"mixed_bfloat16\""));
  mix_layer *bert = mix_model_get_layer(model, "bert");
  assert_string_equal(mix_policy_name(mix_layer_policy(bert)), "mixed_bfloat16");
}

/* KerasHub has the modes of layers by their paths in the backbone's dtype. */
static void quantized_layers_are_in_the_config(void **state) {
  (void)state;
  mix_model *model = task();
  mix_model_quantize(model, "int8");
  mix_model_save(model, in_folder("int8.keras"));
  assert_no_error();
  assert_non_null(strstr(mix_model_to_json(model), "\"transformer_layer_0/self_attention_layer/query\""));
  assert_predicts_alike(model, mix_model_load(in_folder("int8.keras")));
  mix_model_save(model, in_folder("int8/")); /* the last layers have a mode too */
  assert_predicts_alike(model, mix_model_load(in_folder("int8")));
}

/* Queries and values, and all of the classifier; nothing else of the backbone. */
static void lora_is_where_keras_hub_has_it(void **state) {
  (void)state;
  mix_model *model = task();
  mix_model_enable_lora(model, 2);
  mix_list *weights = mix_model_trainable_variables(model);
  assert_no_error();
  assert_int_equal(mix_list_count(weights), 2 * 3 + 2); /* bias, a and b; kernel and bias */
}

/* ---- a class of a user ---- */

static mix_model *make_tower(mix_config *config) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3), .name = "features"), *y = x;
  mix_layer *inner = mix_config_get_layer(config, "last");
  for (int64_t i = mix_config_get_integer(config, "depth", 2); i > 0; i--) y = mix_call(mix_dense(4), y);
  return mix_model_new(x, inner ? mix_call(inner, y) : y);
}
static mix_model *make_nothing(mix_config *config) { return NULL; }
static mix_model *make_bert(mix_config *config) { return mix_model_from_json(BERT); }

static void classes_of_a_user(void **state) {
  (void)state;
  static const char tower[] = "{\"class_name\": \"Tower\", \"registered_name\": \"lab>Tower\", \"config\": "
                              "{\"name\": \"t\", \"depth\": 1, \"last\": {\"class_name\": \"Dense\", "
                              "\"config\": {\"name\": \"end\", \"units\": 2}}}}";
  const mix_model_class class = {sizeof class, .name = "Tower", .from_config = make_tower},
                        nothing = {sizeof nothing, .name = "Tower", .from_config = make_nothing};
  mix_register_model("lab", NULL, &class);
  mix_model *model = mix_model_from_json(tower);
  assert_no_error();
  assert_string_equal(mix_model_name(model), "t");
  assert_int_equal(mix_list_count(mix_model_layers(model)), 3);
  mix_model_save(model, in_folder("tower.keras"));
  mix_model *again = mix_model_load(in_folder("tower.keras"));
  assert_no_error();
  assert_string_equal(mix_model_to_json(model), mix_model_to_json(again));
  mix_model_clone(model);
  assert_no_error();
  mix_register_model("lab", NULL,
                     &(mix_model_class){sizeof class, .name = "Tower", .from_config = make_bert});
  mix_model *bert = mix_model_from_json(tower); /* a model that has a class gets this one */
  assert_no_error();
  assert_non_null(strstr(mix_model_to_json(bert), "\"lab>Tower\""));
  mix_register_model("lab", NULL, &nothing);
  assert_null(mix_model_from_json(tower));
  assert_error(MIX_VALUE_ERROR, "made no model");
  mix_register_model("a>b", NULL, &class);
  assert_error(MIX_VALUE_ERROR, "short names without '>'");
  mix_register_model("lab", NULL, NULL);
  assert_error(MIX_TYPE_ERROR, "needs a model class");
  mix_register_model("lab", NULL, &(mix_model_class){.size = sizeof(mix_model_class), .name = "Tower"});
  assert_error(MIX_VALUE_ERROR, "from_config");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(inputs_are_named),
                                     TEST(files_and_folders_hold_the_model),
                                     TEST(a_new_head_is_random),
                                     TEST(what_is_refused),
                                     TEST(options_that_a_config_lacks),
                                     TEST(a_window_of_padding_gives_nothing),
                                     TEST(outputs_of_attention_are_quantized_as_in_keras_hub),
                                     TEST(weights_that_do_not_fit),
                                     TEST(a_head_that_does_not_fit_changes_nothing),
                                     TEST(a_backbone_replaces_the_task_of_a_folder),
                                     TEST(clones_are_of_the_class),
                                     TEST(files_that_cannot_say_it),
                                     TEST(a_policy_is_the_backbones),
                                     TEST(quantized_layers_are_in_the_config),
                                     TEST(lora_is_where_keras_hub_has_it),
                                     TEST(classes_of_a_user)};
  return cmocka_run_group_tests_name("classes of models", tests, begin, folder_end);
}
