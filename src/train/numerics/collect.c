/* Sums over the steps, and the first value that was not finite in each step that went wrong. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/numerics/numerics.h"
#include "ops/magnitudes.h"
#include <math.h>

enum { INCIDENTS_MAX = 10000 };

int mix_numerics_entry_of(mix_numerics *r, const mix_numerics_entry *like) {
  for (int i = 0; i < r->entry_count; i++) {
    mix_numerics_entry *entry = &r->entries[i];
    if (entry->layer != like->layer || entry->tensor != like->tensor || entry->dtype != like->dtype) continue;
    entry->has_gradient |= like->has_gradient;
    return i;
  }
  if (!mix_reserve(&r->entries, &r->entry_capacity, r->entry_count + 1, sizeof *r->entries)) return -1;
  mix_numerics_entry *entry = &r->entries[r->entry_count];
  *entry = *like;
  size_t bins = (size_t)mix_magnitude_bins(like->dtype);
  mix_numerics_sum *const sums[] = {&entry->forward, &entry->gradient, &entry->applied};
  bool good = true;
  for (int i = 0; i < 3; i++) good &= (sums[i]->bins = mix_calloc(bins, sizeof *sums[i]->bins)) != NULL;
  for (int i = 0; i < 3 && !good; i++) mix_free(sums[i]->bins);
  return good ? r->entry_count++ : -1;
}

static mix_numerics_statistics statistics_of(const int64_t *vector) {
  return (mix_numerics_statistics){.elements = vector[MIX_MAGNITUDE_ELEMENTS],
                                   .zeros = vector[MIX_MAGNITUDE_ZEROS],
                                   .subnormals = vector[MIX_MAGNITUDE_SUBNORMALS],
                                   .infinities = vector[MIX_MAGNITUDE_INFINITIES],
                                   .nans = vector[MIX_MAGNITUDE_NANS],
                                   .smallest = mix_magnitude_value(vector[MIX_MAGNITUDE_SMALLEST]),
                                   .largest = mix_magnitude_value(vector[MIX_MAGNITUDE_LARGEST])};
}

static void add(mix_numerics_sum *sum, const int64_t *vector, mix_dtype dtype) {
  mix_numerics_statistics *s = &sum->statistics, more = statistics_of(vector);
  s->elements += more.elements;
  s->zeros += more.zeros;
  s->subnormals += more.subnormals;
  s->infinities += more.infinities;
  s->nans += more.nans;
  if (more.smallest > 0 && (s->smallest == 0 || more.smallest < s->smallest)) s->smallest = more.smallest;
  if (more.largest > s->largest) s->largest = more.largest;
  for (int i = 0; i < mix_magnitude_bins(dtype); i++) sum->bins[i] += vector[MIX_MAGNITUDE_BINS + i];
}

/* ---- what went wrong in a step ---- */

typedef struct step {
  const mix_numerics_layout *layout;
  const int64_t **vectors; /* of each place */
  bool applied;
} step;

static bool is_finite(const int64_t *vector) {
  return !vector[MIX_MAGNITUDE_INFINITIES] && !vector[MIX_MAGNITUDE_NANS];
}

/* Were loss and weights' gradients finite, and was the step applied? */
static bool went_well(const mix_numerics *r, const step *s) {
  for (int i = 0; i < s->layout->count; i++) {
    const mix_numerics_entry *entry = &r->entries[s->layout->places[i].entry];
    bool matters =
        s->layout->places[i].gradient ? entry->kind == MIX_NUMERICS_WEIGHT : entry->kind == MIX_NUMERICS_LOSS;
    if (matters && !is_finite(s->vectors[i])) return false;
  }
  return s->applied;
}

/* Place of the first forward value that is not finite: of the loss times its scale only where nothing else is
 * to blame, no gradient either; -1: none. */
static int first_forward(const mix_numerics *r, const step *s, bool scaled_loss) {
  for (int i = 0; i < s->layout->count; i++) {
    const mix_numerics_entry *entry = &r->entries[s->layout->places[i].entry];
    if (!s->layout->places[i].gradient && entry->scaled_loss == scaled_loss && !entry->harmless &&
        !is_finite(s->vectors[i]))
      return i;
  }
  return -1;
}

static int first_backward(const step *s) {
  for (int i = s->layout->count - 1; i >= 0; i--)
    if (s->layout->places[i].gradient && !is_finite(s->vectors[i])) return i;
  return -1;
}

/* Where there are very many, the latest takes the place of the one before it. */
static bool add_incident(mix_numerics *r, const step *s, double scale) {
  if (r->incident_count == INCIDENTS_MAX) r->incident_count--;
  if (!mix_reserve(&r->incidents, &r->incident_capacity, r->incident_count + 1, sizeof *r->incidents))
    return false;
  mix_numerics_incident incident = {
      .step = r->steps, .applied = s->applied, .entry = -1, .loss_scale = scale};
  if (s->layout) {
    int place = first_forward(r, s, false);
    incident.forward = place >= 0;
    if (place < 0) place = first_forward(r, s, true);
    if (place < 0) place = first_backward(s);
    if (place >= 0) {
      incident.entry = s->layout->places[place].entry;
      incident.nan = s->vectors[place][MIX_MAGNITUDE_NANS] > 0;
      mix_numerics_entry *entry = &r->entries[incident.entry];
      *(incident.forward || entry->scaled_loss ? &entry->first_forward : &entry->first_gradient) = true;
    }
  }
  r->incidents[r->incident_count++] = incident;
  return true;
}

static void note_harmless(mix_numerics *r, const step *s) {
  for (int i = 0; i < s->layout->count; i++)
    if (!s->layout->places[i].gradient && !is_finite(s->vectors[i]))
      r->entries[s->layout->places[i].entry].harmless = true;
}

static void take_scale(mix_numerics *r, double scale) {
  if (!r->watched) r->first_scale = r->min_scale = scale;
  if (scale < r->min_scale) r->min_scale = scale;
  r->scale = scale;
}

/* Skipped steps in a row; two at one scale say that it has reached its floor. */
static void count_skip(mix_numerics *r, bool applied, bool watched, double former_scale) {
  bool again = r->skipped_in_row > 0 && watched && r->scale == former_scale;
  r->skipped_in_row = applied ? 0 : r->skipped_in_row + 1;
  r->skipped += !applied;
  if (applied && watched) r->applied_scale = r->scale;
  if (!applied && (again || r->skipped_in_row >= r->stall_limit)) r->stalled = true;
}

static bool take_vectors(mix_numerics *r, step *s, const int64_t *data, int64_t size) {
  int64_t used = 0;
  for (int i = 0; i < s->layout->count; i++) {
    s->vectors[i] = data + used;
    used += MIX_MAGNITUDE_BINS + mix_magnitude_bins(r->entries[s->layout->places[i].entry].dtype);
  }
  if (used != size)
    mix_fail(MIX_INTERNAL_ERROR, "numerics: %lld numbers for %lld", (long long)size, (long long)used);
  return used == size;
}

static void note_growth(mix_numerics_entry *entry, const int64_t *vector) {
  entry->latest_largest = mix_magnitude_value(vector[MIX_MAGNITUDE_LARGEST]);
  if (entry->first_largest == 0) entry->first_largest = entry->latest_largest;
}

static void add_step(mix_numerics *r, const step *s, bool well) {
  for (int i = 0; i < s->layout->count; i++) {
    mix_numerics_entry *entry = &r->entries[s->layout->places[i].entry];
    bool gradient = s->layout->places[i].gradient;
    add(gradient ? &entry->gradient : &entry->forward, s->vectors[i], entry->dtype);
    if (gradient && well) add(&entry->applied, s->vectors[i], entry->dtype);
    if (!gradient) note_growth(entry, s->vectors[i]);
  }
}

static mix_status take_watched(mix_numerics *r, mix_list *results, int own, step *s) {
  mix_tensor *vectors = mix_list_get(results, own);
  double scale = mix_tensor_item(mix_list_get(results, own + 1)), former = r->scale;
  int layout = (int)mix_tensor_item(mix_list_get(results, own + 2));
  const int64_t *data = mix_tensor_data(vectors);
  if (mix_failed()) return mix_error();
  s->layout = &r->layouts[layout];
  s->vectors = mix_calloc((size_t)s->layout->count + 1, sizeof *s->vectors);
  if (!s->vectors || !take_vectors(r, s, data, mix_tensor_shape(vectors).dims[0])) return mix_error();
  take_scale(r, scale);
  r->watched++;
  count_skip(r, s->applied, true, former);
  bool well = went_well(r, s);
  add_step(r, s, well);
  if (well)
    note_harmless(r, s);
  else
    add_incident(r, s, scale);
  return mix_error();
}

mix_status mix_numerics_after(void *context, mix_list *results, bool watched, int own) {
  mix_numerics *r = context;
  step s = {.applied = mix_tensor_item(mix_list_get(results, 1)) != 0};
  r->steps++;
  if (mix_failed()) return mix_error();
  if (watched) {
    take_watched(r, results, own, &s);
    mix_free(s.vectors);
    return mix_error();
  }
  count_skip(r, s.applied, false, r->scale);
  if (!s.applied) add_incident(r, &s, r->scale);
  return mix_error();
}
