/* Collects statistics over the steps, and for each failed step the first non-finite value. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/numerics/numerics.h"
#include "ops/magnitudes.h"

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

/* ---- the cause of a failed step ---- */

typedef struct step {
  const mix_numerics_layout *layout;
  const int64_t **vectors; /* the vector of each slot */
  bool applied;
} step;

static bool is_finite(const int64_t *vector) {
  return !vector[MIX_MAGNITUDE_INFINITIES] && !vector[MIX_MAGNITUDE_NANS];
}

/* True if loss and weight gradients were finite and the step was applied. */
static bool succeeded(const mix_numerics *r, const step *s) {
  for (int i = 0; i < s->layout->count; i++) {
    const mix_numerics_entry *entry = &r->entries[s->layout->slots[i].entry];
    bool matters =
        s->layout->slots[i].gradient ? entry->kind == MIX_NUMERICS_WEIGHT : entry->kind == MIX_NUMERICS_LOSS;
    if (matters && !is_finite(s->vectors[i])) return false;
  }
  return s->applied;
}

/* The slot of the first non-finite forward value; -1: none. The scaled loss is searched separately: it is the
 * cause only if no other forward value is. */
static int first_forward(const mix_numerics *r, const step *s, bool scaled_loss) {
  for (int i = 0; i < s->layout->count; i++) {
    const mix_numerics_entry *entry = &r->entries[s->layout->slots[i].entry];
    if (!s->layout->slots[i].gradient && entry->scaled_loss == scaled_loss && !entry->harmless &&
        !is_finite(s->vectors[i]))
      return i;
  }
  return -1;
}

static int first_backward(const step *s) {
  for (int i = s->layout->count - 1; i >= 0; i--)
    if (s->layout->slots[i].gradient && !is_finite(s->vectors[i])) return i;
  return -1;
}

/* When the list is full the newest incident replaces the last one. */
static bool add_incident(mix_numerics *r, const step *s, double scale) {
  if (r->incident_count == INCIDENTS_MAX) r->incident_count--;
  if (!mix_reserve(&r->incidents, &r->incident_capacity, r->incident_count + 1, sizeof *r->incidents))
    return false;
  mix_numerics_incident incident = {
      .step = r->steps, .applied = s->applied, .entry = -1, .loss_scale = scale};
  if (s->layout) {
    int slot = first_forward(r, s, false);
    incident.forward = slot >= 0;
    if (slot < 0) slot = first_forward(r, s, true);
    if (slot < 0) slot = first_backward(s);
    if (slot >= 0) {
      incident.entry = s->layout->slots[slot].entry;
      incident.nan = s->vectors[slot][MIX_MAGNITUDE_NANS] > 0;
      mix_numerics_entry *entry = &r->entries[incident.entry];
      *(incident.forward || entry->scaled_loss ? &entry->first_forward : &entry->first_gradient) = true;
    }
  }
  r->incidents[r->incident_count++] = incident;
  return true;
}

static void note_harmless(mix_numerics *r, const step *s) {
  for (int i = 0; i < s->layout->count; i++)
    if (!s->layout->slots[i].gradient && !is_finite(s->vectors[i]))
      r->entries[s->layout->slots[i].entry].harmless = true;
}

static void record_scale(mix_numerics *r, double scale) {
  if (!r->watched) r->first_scale = r->min_scale = scale;
  if (scale < r->min_scale) r->min_scale = scale;
  r->scale = scale;
}

/* Counts consecutive skipped steps. Two at the same scale mean that the scale has reached its minimum. */
static void count_skip(mix_numerics *r, bool applied, bool watched, double previous_scale) {
  bool repeated = r->skipped_in_row > 0 && watched && r->scale == previous_scale;
  r->skipped_in_row = applied ? 0 : r->skipped_in_row + 1;
  r->skipped += !applied;
  if (applied && watched) r->applied_scale = r->scale;
  if (!applied && (repeated || r->skipped_in_row >= r->stall_limit)) r->stalled = true;
}

static bool split_vectors(mix_numerics *r, step *s, const int64_t *data, int64_t size) {
  int64_t used = 0;
  for (int i = 0; i < s->layout->count; i++) {
    s->vectors[i] = data + used;
    used += MIX_MAGNITUDE_BINS + mix_magnitude_bins(r->entries[s->layout->slots[i].entry].dtype);
  }
  if (used != size) mix_fail_internal("numerics: %lld numbers for %lld", (long long)size, (long long)used);
  return used == size;
}

static void note_growth(mix_numerics_entry *entry, const int64_t *vector) {
  entry->latest_largest = mix_magnitude_value(vector[MIX_MAGNITUDE_LARGEST]);
  if (entry->first_largest == 0) entry->first_largest = entry->latest_largest;
}

static void add_step(mix_numerics *r, const step *s, bool good) {
  for (int i = 0; i < s->layout->count; i++) {
    mix_numerics_entry *entry = &r->entries[s->layout->slots[i].entry];
    bool gradient = s->layout->slots[i].gradient;
    add(gradient ? &entry->gradient : &entry->forward, s->vectors[i], entry->dtype);
    if (gradient && good) add(&entry->applied, s->vectors[i], entry->dtype);
    if (!gradient) note_growth(entry, s->vectors[i]);
  }
}

static mix_status record_watched(mix_numerics *r, mix_list *results, int own, step *s) {
  mix_tensor *vectors = mix_list_get(results, own);
  double scale = mix_tensor_item(mix_list_get(results, own + 1)), previous = r->scale;
  int layout = (int)mix_tensor_item(mix_list_get(results, own + 2));
  const int64_t *data = mix_tensor_data(vectors);
  if (mix_failed()) return mix_error();
  s->layout = &r->layouts[layout];
  s->vectors = mix_calloc((size_t)s->layout->count + 1, sizeof *s->vectors);
  if (!s->vectors || !split_vectors(r, s, data, mix_tensor_shape(vectors).dims[0])) return mix_error();
  record_scale(r, scale);
  r->watched++;
  count_skip(r, s->applied, true, previous);
  bool good = succeeded(r, s);
  add_step(r, s, good);
  if (good)
    note_harmless(r, s);
  else
    add_incident(r, s, scale);
  return mix_error();
}

/* Keeps every second point when there are too many. A skipped step without a point marks the one before. */
static bool add_point(mix_numerics *r, double loss, bool applied) {
  enum { POINTS_MAX = 2000 };
  if (r->point_count == POINTS_MAX) {
    for (int i = 0; i < POINTS_MAX / 2; i++) {
      const bool next = r->points[2 * i + 1].applied;
      r->points[i] = r->points[2 * i];
      r->points[i].applied &= next;
    }
    r->point_count = POINTS_MAX / 2;
    r->stride *= 2;
  }
  if ((r->steps - 1) % r->stride) {
    if (r->point_count) r->points[r->point_count - 1].applied &= applied;
    return true;
  }
  if (!mix_reserve(&r->points, &r->point_capacity, r->point_count + 1, sizeof *r->points)) return false;
  r->points[r->point_count++] = (mix_numerics_point){loss, r->scale, applied};
  return true;
}

mix_status mix_numerics_after(void *context, mix_list *results, bool watched, int own) {
  mix_numerics *r = context;
  step s = {.applied = mix_tensor_item(mix_list_get(results, 1)) != 0};
  r->steps++;
  if (mix_failed()) return mix_error();
  if (watched) {
    record_watched(r, results, own, &s);
    mix_free(s.vectors);
  } else {
    count_skip(r, s.applied, false, r->scale);
    if (!s.applied) add_incident(r, &s, r->scale);
  }
  if (!mix_failed()) {
    r->loss = mix_tensor_item(mix_list_get(results, 0));
    add_point(r, r->loss, s.applied);
  }
  return mix_error();
}
