/* Opens files of Keras: the archive's members, or the attributes of a legacy file. */
#include "saving/keras_file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "formats/file_set.h"
#include "formats/file_mapping.h"
#include "formats/zip_stored.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HDF5_SIGNATURE "\211HDF\r\n\032\n"
#define WEIGHTS_MEMBER "model.weights.h5"
enum { SIGNATURE_SIZE = 8, MAX_CONFIG = 1 << 26, MAX_METADATA = 1 << 20 };

static bool is_zip(const char *first) { return !memcmp(first, "PK\3\4", 4) || !memcmp(first, "PK\5\6", 4); }

/* ---- .keras ---- */

/* A text without zeros in it. NULL with the error recorded. */
static char *read_text(mix_zip *zip, const mix_keras_file *file, const char *member, size_t limit) {
  size_t size;
  char *text = mix_zip_read(zip, member, limit, &size);
  if (!text || strlen(text) == size) return text;
  mix_free(text);
  return mix_fail_format("%s: '%s' is no text", file->name, member);
}

static json_t *parse(const mix_keras_file *file, const char *text) {
  char call[256];
  snprintf(call, sizeof call, "%.200s: the model's config", file->name);
  if (!mix_json_has_few_values(text, call)) return NULL;
  json_t *json = mix_json_parse(text, call);
  if (!json || json_is_object(json)) return json;
  json_decref(json);
  return mix_fail_format("%s is no object", call);
}

/* The version tells the generation where the config does not. A damaged or missing text tells nothing. */
static void take_version(const mix_keras_file *file, const char *metadata) {
  json_t *json = json_loads(metadata, 0, NULL), *version = json_object_get(json, "keras_version");
  if (json_is_string(version) && !json_object_get(file->model, "keras_version"))
    mix_json_set(file->model, "keras_version", json_incref(version));
  json_decref(json);
}

static bool read_structure(mix_keras_file *file, mix_zip *zip) {
  char *text = read_text(zip, file, "config.json", MAX_CONFIG);
  file->model = text ? parse(file, text) : NULL;
  mix_free(text);
  if (!file->model || !mix_zip_has(zip, "metadata.json")) return file->model;
  char *metadata = read_text(zip, file, "metadata.json", MAX_METADATA);
  if (metadata) take_version(file, metadata);
  mix_free(metadata);
  return metadata;
}

/* The weights where they lie in the archive, if they do and it is mapped. */
static bool use_stored(mix_keras_file *file, mix_zip *zip, mix_memory *archive) {
  size_t size = 0;
  const char *whole = archive ? mix_memory_map(archive, MIX_MAP_READ) : NULL;
  const char *found =
      whole ? mix_zip_find_stored(zip, WEIGHTS_MEMBER, whole, mix_memory_bytes(archive), &size) : NULL;
  if (!found || !(file->bytes = mix_memory_part(archive, (size_t)(found - whole), size))) return false;
  if (!mix_hdf5_open(&file->hdf5, file->name, found, size)) return false;
  file->hdf5.memory = file->bytes;
  return true;
}

static bool use_copy(mix_keras_file *file, mix_zip *zip) {
  size_t size;
  void *data = mix_zip_read(zip, WEIGHTS_MEMBER, SIZE_MAX - 1, &size);
  if (!data) return false;
  if (!(file->bytes = mix_memory_wrap(data, size, mix_free))) return mix_free(data), false;
  return mix_hdf5_open(&file->hdf5, file->name, data, size);
}

static bool read_archive(mix_keras_file *file, mix_zip *zip, mix_memory *archive, bool structure) {
  file->by_path = true;
  if (structure && !read_structure(file, zip)) return false;
  if (!mix_zip_has(zip, WEIGHTS_MEMBER) && mix_zip_has(zip, "model.weights.npz"))
    return mix_fail_unsupported(
        "%s: the weights are model.weights.npz; expected model.weights.h5, which Keras writes "
        "by default",
        file->name);
  return use_stored(file, zip, archive) || (!mix_failed() && use_copy(file, zip));
}

static bool open_archive(mix_keras_file *file, bool structure) {
  mix_memory *archive = file->copies ? NULL : mix_file_map(file->name);
  const void *bytes = archive ? mix_memory_map(archive, MIX_MAP_READ) : NULL;
  mix_zip *zip =
      bytes ? mix_zip_open_memory(file->name, bytes, mix_memory_bytes(archive)) : mix_zip_open(file->name);
  const bool good = zip && read_archive(file, zip, archive, structure);
  mix_release(archive);
  return good;
}

/* ---- folders of KerasHub ---- */

/* A file of the folder as text, NULL without an error if there is none; mix_free it. */
static char *folder_text(const char *folder, const char *name, size_t limit) {
  size_t size = 0;
  char *path = mix_path_join(folder, name), *longer = NULL;
  char *text = path && mix_file_exists(path) ? mix_file_read(path, limit, &size) : NULL;
  if (text && !(longer = mix_realloc(text, size + 1))) mix_free(text);
  if (longer) longer[size] = 0;
  if (longer && strlen(longer) != size) {
    mix_fail_format("%s: no text", path);
    mix_free(longer);
    longer = NULL;
  }
  mix_free(path);
  return longer;
}

/* The task where the folder has one, else the backbone. */
static bool open_folder(mix_keras_file *file) {
  char *text = folder_text(file->name, "task.json", MAX_CONFIG);
  if (!text && !mix_failed()) text = folder_text(file->name, "config.json", MAX_CONFIG);
  file->by_path = file->preset = true;
  if (text) file->model = parse(file, text);
  mix_free(text);
  char *metadata = file->model ? folder_text(file->name, "metadata.json", MAX_METADATA) : NULL;
  if (metadata) take_version(file, metadata);
  mix_free(metadata);
  return file->model && !mix_failed();
}

bool mix_is_preset_folder(const char *path) {
  char *config = path ? mix_path_join(path, MIX_PRESET_MARK) : NULL;
  const bool is = config && mix_file_exists(config);
  mix_free(config);
  return is;
}

/* ---- HDF5 ---- */

/* The text of an attribute; mix_free it. NULL without an error if there is none. */
static char *attribute_text(mix_keras_file *file, const char *name) {
  mix_hdf5_value value;
  char *text = NULL;
  if (!mix_hdf5_attribute(&file->hdf5, "", name, &value)) return NULL;
  if (value.texts && value.count == 1)
    text = mix_strdup(value.texts[0]);
  else
    mix_fail_format("%s: the attribute %s is no text", file->name, name);
  mix_hdf5_value_free(&value);
  return text;
}

/* The arguments of compile as archives have them. */
static bool read_training(const mix_keras_file *file, const char *text) {
  json_t *training = parse(file, text), *optimizer = json_object_get(training, "optimizer_config");
  if (!training) return false;
  if (optimizer) mix_json_set(training, "optimizer", json_incref(optimizer));
  json_object_del(training, "optimizer_config");
  return mix_json_set(file->model, "compile_config", training) && !mix_failed();
}

static bool read_model(mix_keras_file *file) {
  char *config = attribute_text(file, "model_config"), *training = attribute_text(file, "training_config");
  char *version = attribute_text(file, "keras_version");
  if (!mix_failed() && !config)
    mix_fail_format("%s: no model in the file, which has no attribute model_config; weights alone "
                    "need mix_model_load_weights (--model MODEL --init-weights FILE)",
                    file->name);
  if (!mix_failed()) file->model = parse(file, config);
  if (file->model && version) mix_json_set(file->model, "keras_version", json_string(version));
  const bool good = file->model && !mix_failed() && (!training || read_training(file, training));
  mix_free(config);
  mix_free(training);
  mix_free(version);
  return good;
}

/* Legacy files say in an attribute which layers they have. */
static bool find_weights(mix_keras_file *file) {
  file->root = mix_hdf5_has(&file->hdf5, "model_weights") ? "model_weights" : "";
  mix_hdf5_value names;
  bool legacy = *file->root;
  static const char *const marks[] = {"layer_names", "layer_names0"};
  for (int i = 0; i < 2 && !legacy && !mix_failed(); i++) {
    legacy = mix_hdf5_attribute(&file->hdf5, "", marks[i], &names);
    if (legacy) mix_hdf5_value_free(&names);
  }
  file->by_path = !legacy;
  return !mix_failed();
}

/* An index of JSON, whose shards are opened too. */
static bool read_shards(mix_keras_file *file, bool structure) {
  size_t size;
  if (structure)
    return mix_fail_format("%s: no model in the file, which is an index of weights alone; it needs "
                           "mix_model_load_weights (--model MODEL --init-weights FILE)",
                           file->name);
  char *text = mix_file_read(file->name, MAX_CONFIG, &size),
       *longer = text ? mix_realloc(text, size + 1) : NULL;
  if (!longer) return mix_free(text), false;
  longer[size] = 0;
  if (strlen(longer) == size)
    file->shards = mix_weight_shards_open(file->name, longer, file->copies);
  else
    mix_fail_format("%s: no text", file->name);
  mix_free(longer);
  return file->by_path = true, file->shards;
}

static bool read_hdf5(mix_keras_file *file, const void *bytes, size_t size, bool structure) {
  return bytes && mix_hdf5_open(&file->hdf5, file->name, bytes, size) && find_weights(file) &&
         (!structure || read_model(file));
}

/* ---- opening ---- */

/* False: it cannot be opened, or is no file; opening a pipe could wait for ever. */
static bool read_first(const char *path, char *first) {
  FILE *stream = mix_file_exists(path) ? fopen(path, "rb") : NULL;
  memset(first, 0, SIGNATURE_SIZE);
  if (stream) (void)!fread(first, 1, SIGNATURE_SIZE, stream);
  if (stream) fclose(stream);
  return stream;
}

static bool is_folder(const char *path) {
  struct stat status;
  return path && !stat(path, &status) && S_ISDIR(status.st_mode);
}

/* A folder that is none of KerasHub, or one whose files were being replaced. */
static bool no_preset(const char *folder) {
  if (mix_file_set_interrupted(folder, MIX_PRESET_MARK))
    return mix_fail_io("%s: a folder without config.json, whose saving has not ended; save the model again, "
                       "or take \".part-...\" off the names of its new files, which are whole, and remove "
                       "task.json if a backbone was saved",
                       folder);
  return mix_fail_io("%s: a folder without config.json; expected a file, or a folder of KerasHub", folder);
}

bool mix_is_array_file(const char *path) {
  char first[SIGNATURE_SIZE];
  if (!read_first(path, first) || !is_zip(first)) return false;
  mix_zip *zip = mix_zip_open(path);
  return zip && !mix_zip_has(zip, "config.json") && !mix_zip_has(zip, "model.weights.h5");
}

static bool opened(mix_keras_file *file, bool good) {
  if (!good) mix_keras_file_close(file);
  return good;
}

static bool neither(const mix_keras_file *file) {
  return mix_fail_format("%s: neither an archive (.keras) nor HDF5 (.h5), or not a whole one", file->name);
}

static bool open_hdf5(mix_keras_file *file, bool structure) {
  bool mapped;
  file->bytes = mix_file_memory(file->name, file->copies, &mapped);
  const void *data = file->bytes ? mix_memory_map(file->bytes, MIX_MAP_READ) : NULL;
  if (!data || !read_hdf5(file, data, mix_memory_bytes(file->bytes), structure)) return false;
  file->hdf5.memory = mapped ? file->bytes : NULL;
  return true;
}

static bool open_file(mix_keras_file *file, bool structure) {
  char first[SIGNATURE_SIZE];
  const char *path = file->name;
  if (mix_failed()) return false;
  if (mix_is_preset_folder(path)) return opened(file, open_folder(file));
  const bool opens = read_first(path, first);
  if (!opens && is_folder(path)) return no_preset(path);
  if (is_zip(first)) return opened(file, open_archive(file, structure));
  if (opens && mix_weight_shards_begin(first, SIGNATURE_SIZE))
    return opened(file, read_shards(file, structure));
  if (opens && memcmp(first, HDF5_SIGNATURE, SIGNATURE_SIZE)) return neither(file);
  return opened(file, open_hdf5(file, structure));
}

bool mix_keras_file_open(mix_keras_file *file, const char *path, bool structure) {
  *file = (mix_keras_file){.name = path, .root = ""};
  return open_file(file, structure);
}

bool mix_keras_file_read(mix_keras_file *file, const char *path, bool structure) {
  *file = (mix_keras_file){.name = path, .root = "", .copies = true};
  return open_file(file, structure);
}

bool mix_keras_file_open_memory(mix_keras_file *file, const char *name, const void *data, size_t size,
                                bool structure) {
  *file = (mix_keras_file){.name = name, .root = ""};
  if (mix_failed()) return false;
  if (size >= SIGNATURE_SIZE && !memcmp(data, HDF5_SIGNATURE, SIGNATURE_SIZE))
    return opened(file, read_hdf5(file, data, size, structure));
  if (size < SIGNATURE_SIZE || !is_zip(data)) return neither(file);
  mix_zip *zip = mix_zip_open_memory(name, data, size);
  return opened(file, zip && read_archive(file, zip, NULL, structure));
}

mix_hdf5 *mix_keras_file_with(mix_keras_file *file, const char *path) {
  mix_hdf5 *hdf5 = file->shards ? mix_weight_shards_with(file->shards, path) : &file->hdf5;
  return hdf5 && mix_hdf5_has(hdf5, path) ? hdf5 : NULL;
}

void mix_keras_file_close(mix_keras_file *file) {
  mix_weight_shards_close(file->shards);
  json_decref(file->model);
  mix_hdf5_close(&file->hdf5);
  mix_release(file->bytes);
  *file = (mix_keras_file){.root = ""};
}
