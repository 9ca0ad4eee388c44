/* mix_dataset_zip: elements of several data sets side by side. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/structure.h"
#include "data/pipeline/row_stream.h"

typedef struct zip_dataset {
  mix_dataset base;
  mix_list *inputs; /* retained: the data sets of nested lists, with their structure */
  int count;
} zip_dataset;

typedef struct zip_cursor {
  mix_cursor base;
  mix_stream *streams; /* one for each input */
  mix_list **parts;    /* (count): their elements, retained */
} zip_cursor;

static mix_dataset *input_of(const zip_dataset *zip, int index) { return mix_list_items(zip->inputs)[index]; }

static int64_t zip_cardinality(const mix_dataset *dataset) {
  const zip_dataset *zip = (const zip_dataset *)dataset;
  int64_t shortest = MIX_INFINITE;
  for (int i = 0; i < zip->count; i++) {
    int64_t input = mix_dataset_length(input_of(zip, i));
    if (input == MIX_UNKNOWN_CARDINALITY) return input;
    if (input != MIX_INFINITE && (shortest == MIX_INFINITE || input < shortest)) shortest = input;
  }
  return shortest;
}

static bool zip_open(mix_cursor *cursor) {
  const zip_dataset *dataset = (const zip_dataset *)cursor->dataset;
  zip_cursor *zip = (zip_cursor *)cursor;
  zip->streams = mix_calloc((size_t)dataset->count, sizeof *zip->streams);
  zip->parts = zip->streams ? mix_calloc((size_t)dataset->count, sizeof *zip->parts) : NULL;
  for (int i = 0; zip->parts && i < dataset->count; i++)
    if (!mix_stream_open(&zip->streams[i], input_of(dataset, i))) return false;
  return zip->parts != NULL;
}

/* ---- the structure of the elements ---- */

/* Appends what stands for one item of the given lists: nested elements as one component, the tensors of flat
 * ones each for itself. In a dict several tensors become a list, because only one can have the name. */
static int append_item(mix_list *const *parts, const mix_structure *given, int *next, bool named,
                       const mix_structure **items);

static const mix_structure *structure_of(mix_list *const *parts, const mix_structure *given, int count,
                                         int *next) {
  int capacity = 0, used = 0;
  for (int i = 0, inner = *next; i < count; i++) {
    int below = given && given->items[i] ? given->items[i]->leaves : 1;
    capacity += below > 1 || (given && given->items[i]) ? 1 : mix_list_count(parts[inner]) + 1;
    inner += below;
  }
  const mix_structure **items = mix_calloc((size_t)capacity + 1, sizeof *items), *made = NULL;
  for (int i = 0; items && i < count && used >= 0; i++) {
    int added = append_item(parts, given ? given->items[i] : NULL, next, given && given->names, items + used);
    used = added < 0 ? -1 : used + added;
  }
  if (items && used >= 0) made = mix_structure_of(used, given ? given->names : NULL, items);
  mix_free(items);
  return made;
}

static int append_item(mix_list *const *parts, const mix_structure *given, int *next, bool named,
                       const mix_structure **items) {
  if (given) return (items[0] = structure_of(parts, given, given->count, next)) ? 1 : -1;
  const mix_list *part = parts[(*next)++];
  int count = mix_list_count(part);
  if (mix_list_structure(part)) return items[0] = mix_list_structure(part), 1;
  if (!named || count == 1) return count; /* leaves: NULL */
  const mix_structure **leaves = mix_calloc((size_t)count + 1, sizeof *leaves);
  if (leaves) items[0] = mix_structure_of(count, NULL, leaves);
  mix_free(leaves);
  return items[0] ? 1 : -1;
}

static bool set_structure(const zip_dataset *dataset, mix_list *const *parts, mix_list *values) {
  const mix_structure *given = mix_list_structure(dataset->inputs);
  bool nested = given != NULL;
  for (int i = 0; i < dataset->count; i++) nested |= mix_list_structure(parts[i]) != NULL;
  int next = 0;
  if (nested)
    mix_list_set_structure(values, structure_of(parts, given, given ? given->count : dataset->count, &next));
  return !mix_failed();
}

static mix_pull zip_next(mix_cursor *cursor, mix_element *element) {
  zip_cursor *zip = (zip_cursor *)cursor;
  const zip_dataset *dataset = (const zip_dataset *)cursor->dataset;
  mix_scope *scope = mix_scope_begin();
  mix_list *values = scope ? mix_list_new(0, NULL) : NULL;
  mix_pull pull = values ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
  for (int i = 0; pull == MIX_PULL_ELEMENT && i < dataset->count; i++) {
    mix_element part = {0};
    pull = mix_stream_next(&zip->streams[i], &part);
    for (int j = 0; pull == MIX_PULL_ELEMENT && j < mix_list_count(part.values); j++)
      if (mix_list_append(values, mix_list_items(part.values)[j]) != MIX_OK) pull = MIX_PULL_FAILED;
    zip->parts[i] = part.values;
  }
  if (pull == MIX_PULL_ELEMENT && !set_structure(dataset, zip->parts, values)) pull = MIX_PULL_FAILED;
  for (int i = 0; zip->parts && i < dataset->count; i++) {
    mix_release(zip->parts[i]);
    zip->parts[i] = NULL;
  }
  if (pull == MIX_PULL_ELEMENT) *element = (mix_element){.values = mix_retain(values)};
  mix_scope_end(scope);
  return pull;
}

static void zip_close(mix_cursor *cursor) {
  zip_cursor *zip = (zip_cursor *)cursor;
  for (int i = 0; zip->streams && i < ((const zip_dataset *)cursor->dataset)->count; i++)
    mix_stream_close(&zip->streams[i]);
  mix_free(zip->streams);
  mix_free(zip->parts);
}

static void zip_finalize(mix_dataset *dataset) { mix_release(((zip_dataset *)dataset)->inputs); }

static mix_dataset *zip_beside(const mix_dataset *dataset, int index) {
  const zip_dataset *zip = (const zip_dataset *)dataset;
  return index < zip->count ? input_of(zip, index) : NULL;
}

static const mix_dataset_class zip_class = {
    .name = "zip",
    .cursor_size = sizeof(zip_cursor),
    .cardinality = zip_cardinality,
    .open = zip_open,
    .next = zip_next,
    .close = zip_close,
    .finalize = zip_finalize,
    .beside = zip_beside,
};

mix_dataset *mix_dataset_zip_list(mix_list *datasets) {
  if (mix_failed()) return NULL;
  if (!mix_list_count(datasets))
    return mix_failed() ? NULL : mix_fail_value("dataset_zip: no data sets; expected at least one");
  mix_list *leaves = mix_list_flatten(datasets, "dataset_zip");
  int count = mix_list_count(leaves);
  if (leaves && !count) mix_fail_value("dataset_zip: no data sets; expected at least one");
  for (int i = 0; i < count; i++)
    if (!mix_dataset_given(mix_list_items(leaves)[i], "dataset_zip")) return NULL;
  zip_dataset *dataset = mix_failed() ? NULL : mix_dataset_new(sizeof *dataset, &zip_class, NULL, false);
  if (!dataset) return NULL;
  dataset->inputs = mix_retain(mix_list_new(count, mix_list_items(leaves)));
  mix_list_set_structure(dataset->inputs, mix_list_structure(leaves));
  if (!dataset->inputs) {
    mix_release(dataset);
    return NULL;
  }
  dataset->count = count;
  return mix_scoped(dataset);
}
