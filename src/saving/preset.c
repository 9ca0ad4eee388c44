/* Folders of KerasHub, both ways. */
#include "saving/preset.h"

#include "base/alloc.h"
#include "base/error.h"
#include "formats/file_set.h"
#include "saving/model_json.h"
#include "saving/write_weights.h"

static bool has(const char *folder, const char *name) {
  char *path = mix_path_join(folder, name);
  const bool found = path && mix_file_exists(path);
  mix_free(path);
  return found;
}

/* The backbone of a task: the model in it that its config names so. NULL: the model is none. */
static mix_layer *backbone_of(const mix_layer *model) {
  const json_t *config = json_object_get(model->origin, "config");
  const json_t *object = json_object_get(config, "backbone");
  return object ? mix_class_inner_model(model, object) : NULL;
}

bool mix_preset_has_all(const mix_keras_file *file) {
  return !json_object_get(json_object_get(file->model, "config"), "backbone") ||
         has(file->name, "task.weights.h5");
}

/* ---- reading ---- */

static bool read_file(const char *folder, const char *name, const mix_weights_reader *like, mix_model *model,
                      mix_layer *skipped, bool (*read)(mix_weights_reader *)) {
  mix_keras_file file;
  char *path = mix_path_join(folder, name);
  bool good = path && (like->file->copies ? mix_keras_file_read : mix_keras_file_open)(&file, path, false);
  if (good) {
    mix_weights_reader reader = *like;
    reader.file = &file;
    reader.model = model;
    reader.skipped = skipped;
    reader.no_optimizer = true;
    good = mix_quantize_as_file(&reader) && read(&reader);
    mix_keras_file_close(&file);
  }
  mix_free(path);
  return good && !mix_failed();
}

bool mix_preset_read(const char *folder, const mix_weights_reader *reader) {
  mix_layer *layer = reader->model->layer, *backbone = backbone_of(layer);
  mix_model *model = backbone ? mix_model_wrap(backbone, MIX_FUNCTIONAL) : reader->model;
  const bool whole = has(folder, "model.weights.h5");
  if (!model) return false;
  if (!whole && !has(folder, "model.weights.json"))
    return mix_fail_io("%s: %s has neither model.weights.h5 nor model.weights.json", reader->call, folder);
  const char *weights = whole ? "model.weights.h5" : "model.weights.json", *head = "task.weights.h5";
  const bool both = backbone && has(folder, head);
  return (!both || read_file(folder, head, reader, reader->model, backbone, mix_check_weights)) &&
         read_file(folder, weights, reader, model, NULL, mix_read_weights) &&
         (!both || read_file(folder, head, reader, reader->model, backbone, mix_read_weights));
}

/* ---- writing ---- */

/* KerasHub's files lack these everywhere. */
static void leave_out(json_t *value) {
  const char *key;
  json_t *item;
  void *next;
  if (!json_is_object(value)) return;
  json_object_del(value, "compile_config");
  json_object_del(value, "build_config");
  json_object_foreach_safe(value, next, key, item) leave_out(item);
}

/* Takes the JSON. */
static bool write_json(mix_file_set *set, const char *name, json_t *json) {
  char *text = json ? mix_json_python_text(json) : NULL;
  const bool done = text && mix_file_set_add_text(set, name, text);
  mix_free(text);
  json_decref(json);
  return done;
}

static bool write_object(mix_file_set *set, const char *name, mix_layer *layer) {
  json_t *object = mix_layer_to_json(layer, false);
  leave_out(object);
  return write_json(set, name, object);
}

static bool write_weights(mix_file_set *set, const char *name, mix_hdf5_writer *file) {
  mix_piece_source bytes;
  return mix_hdf5_writer_source(file, &bytes) && mix_file_set_add(set, name, &bytes);
}

static bool write_metadata(mix_file_set *set, mix_model *backbone) {
  json_t *about = mix_metadata_json(backbone->semantics);
  mix_list *weights = mix_model_weights(backbone);
  int64_t count = 0;
  for (int i = 0; weights && i < mix_list_count(weights); i++)
    count += mix_shape_size(((mix_variable *)mix_list_items(weights)[i])->shape);
  if (about) mix_json_set(about, "parameter_count", json_integer(count));
  return write_json(set, "metadata.json", about);
}

/* The task, or that the folder has none: a task from before would be read in place of the backbone. */
static bool write_task(mix_file_set *set, mix_model *model, mix_layer *backbone) {
  if (!backbone) return mix_file_set_remove(set, "task.json") && mix_file_set_remove(set, "task.weights.h5");
  return write_weights(set, "task.weights.h5", mix_weights_file_without(model, backbone, set->call)) &&
         write_object(set, "task.json", model->layer);
}

bool mix_preset_write(mix_model *model, const char *folder, const char *call) {
  mix_layer *inner = backbone_of(model->layer);
  mix_model *backbone = inner ? mix_model_wrap(inner, MIX_FUNCTIONAL) : model;
  if (!backbone) return false;
  if (!model->layer->origin)
    return mix_fail_value(
        "%s: '%s' is no model of KerasHub; expected one of its classes, or a name that ends "
        "in .keras",
        call, model->layer->name);
  if (!mix_folder_make(folder)) return mix_fail_io("%s: %s cannot be made", call, folder);
  mix_file_set set = {.folder = folder, .call = call};
  const bool done = write_weights(&set, "model.weights.h5", mix_weights_file(backbone, call, true, false)) &&
                    write_task(&set, model, inner) && write_metadata(&set, backbone) &&
                    write_object(&set, MIX_PRESET_MARK, backbone->layer) && mix_file_set_commit(&set);
  mix_file_set_free(&set);
  return done;
}
