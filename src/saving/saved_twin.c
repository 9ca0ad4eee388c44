/* Models of a generation that is saved as another: as a model of that one, with the same weights and state.
 */
#include "base/error.h"
#include "base/json.h"
#include "optim/optimizer.h"
#include "saving/model_json.h"
#include "saving/weight_tree.h"

/* The optimizer is of the family that the other generation calls legacy, also inside a loss-scale optimizer.
 */
static void mark_legacy(json_t *optimizer) {
  json_t *config = json_object_get(optimizer, "config"), *inner = json_object_get(config, "optimizer");
  if (!inner) inner = json_object_get(config, "inner_optimizer");
  mix_json_set(inner ? inner : optimizer, "module", json_string("keras.optimizers.legacy"));
}

static bool copy_values(mix_list *from, mix_list *to) {
  if (!from || !to || mix_list_count(from) != mix_list_count(to)) return !mix_failed();
  for (int i = 0; i < mix_list_count(from) && !mix_failed(); i++)
    MIX_SCOPE {
      mix_variable_assign(mix_list_items(to)[i], mix_variable_true_value(mix_list_items(from)[i]));
    }
  return !mix_failed();
}

static bool copy_optimizer(mix_model *model, mix_model *twin) {
  mix_optimizer *from = model->state ? model->state->optimizer : NULL;
  mix_optimizer *to = twin->state ? twin->state->optimizer : NULL;
  if (!from || !to) return true;
  if (mix_optimizer_plain(from)->built &&
      mix_optimizer_build(mix_optimizer_plain(to), mix_model_trainable_variables(twin)))
    return false;
  return copy_values(mix_optimizer_saved_variables(from), mix_optimizer_saved_variables(to));
}

mix_model *mix_model_saved_twin(mix_model *model, const json_t *object, bool compiled) {
  const mix_semantics *rules = model->semantics;
  json_t *copy = mix_json_copy(object), *config = json_object_get(copy, "compile_config");
  mark_legacy(json_object_get(config, "optimizer"));
  mix_from_json_options options = {
      .size = sizeof options, .semantics = rules->saved_as, .no_compile = !compiled};
  mix_model *twin = NULL;
  if (mix_json_set(copy, "keras_version", json_string(rules->keras_version)))
    twin = mix_model_from_object(copy, &options, true);
  json_decref(copy);
  const bool good =
      twin && copy_values(mix_model_weights(model), mix_model_weights(twin)) && copy_optimizer(model, twin);
  return good ? twin : NULL;
}
