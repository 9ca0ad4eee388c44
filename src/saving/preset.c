/* Folders of KerasHub, both ways. */
#include "saving/preset.h"

#include "base/alloc.h"
#include "base/error.h"
#include "saving/model_json.h"
#include "saving/write_weights.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

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
static bool write_json(const char *folder, const char *name, json_t *json, const char *call) {
  char *text = json ? mix_json_python_text(json) : NULL, *path = text ? mix_path_join(folder, name) : NULL;
  const bool done = path && mix_file_replace(path, &(mix_bytes){text, strlen(text)}, 1, call);
  mix_free(path);
  mix_free(text);
  json_decref(json);
  return done;
}

static bool write_object(const char *folder, const char *name, mix_layer *layer, const char *call) {
  json_t *object = mix_layer_to_json(layer, false);
  leave_out(object);
  return write_json(folder, name, object, call);
}

static bool write_weights(const char *folder, const char *name, mix_hdf5_writer *file, const char *call) {
  char *path = file ? mix_path_join(folder, name) : NULL;
  const bool done = path && mix_hdf5_save(file, path, call);
  mix_free(path);
  return done;
}

static bool write_metadata(const char *folder, mix_model *backbone, const char *call) {
  json_t *about = mix_metadata_json(backbone->semantics);
  mix_list *weights = mix_model_weights(backbone);
  int64_t count = 0;
  for (int i = 0; weights && i < mix_list_count(weights); i++)
    count += mix_shape_size(((mix_variable *)mix_list_items(weights)[i])->shape);
  if (about) mix_json_set(about, "parameter_count", json_integer(count));
  return write_json(folder, "metadata.json", about, call);
}

/* What the folder has of a task that was saved there before, which would be read in place of the backbone. */
static bool remove_task(const char *folder, const char *call) {
  static const char *const names[] = {"task.json", "task.weights.h5"};
  bool done = true;
  for (size_t i = 0; i < sizeof names / sizeof *names && done; i++) {
    char *path = mix_path_join(folder, names[i]);
    done = path && (!unlink(path) || errno == ENOENT);
    if (path && !done) mix_fail_io("%s: %s cannot be removed: %s", call, path, strerror(errno));
    mix_free(path);
  }
  return done;
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
  return write_weights(folder, "model.weights.h5", mix_weights_file(backbone, call, true, false), call) &&
         (!inner ||
          write_weights(folder, "task.weights.h5", mix_weights_file_without(model, inner, call), call)) &&
         (inner ? write_object(folder, "task.json", model->layer, call) : remove_task(folder, call)) &&
         write_metadata(folder, backbone, call) && write_object(folder, "config.json", backbone->layer, call);
}
