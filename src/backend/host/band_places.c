#include "backend/host/band_places.h"

static bool overlap(const mix_range_access *a, const mix_range_access *b) {
  return a->space == b->space && a->index == b->index && a->begin < b->end && b->begin < a->end;
}

/* The open place of the same bytes, accessed by rows; -1: none. */
static int find(const mix_band_places *places, const mix_range_access *access) {
  for (int i = 0; i < places->count && access->in_order; i++) {
    const mix_band_place *place = &places->list[i];
    if (!place->closed && place->range.in_order && mix_same_range(&place->range, access)) return i;
  }
  return -1;
}

/* Can the place be a thread's own? It then holds nothing from before the bands. */
static bool may_be_own(const mix_band_place *place) {
  return place->range.space == MIX_SLOT_ARENA && place->range.in_order && place->range.write;
}

/* Values that overlap in the arena are never needed at the same time; what a step writes over an operand has
 * all of its bytes. Of two in different rows the earlier one must therefore be gone, with all its readers in
 * the group, and can be a thread's own. */
static bool meets(const mix_band_place *place, const mix_range_access *access) {
  return !place->closed && overlap(&place->range, access) && (place->written || access->write) &&
         !(access->in_order && place->range.in_order && mix_same_range(&place->range, access));
}

/* The same range listed twice by one step counts once, as in mix_step_bytes. */
static size_t bytes_of_step(const mix_access_set *step) {
  size_t bytes = 0;
  for (int i = 0; i < step->count; i++) {
    bool repeated = !step->list[i].in_order;
    for (int j = 0; j < i; j++)
      repeated = repeated || (step->list[j].write == step->list[i].write && step->list[j].in_order &&
                              mix_same_range(&step->list[j], &step->list[i]));
    if (!repeated) bytes += step->list[i].end - step->list[i].begin;
  }
  return bytes;
}

bool mix_band_places_add(mix_band_places *places, int member, const mix_access_set *step) {
  if (places->count + step->count > MIX_BAND_PLACES ||
      places->operand_count + step->count > MIX_BAND_OPERANDS)
    return false;
  for (int i = 0; i < step->count; i++)
    for (int p = 0; p < places->count; p++)
      if (meets(&places->list[p], &step->list[i]) &&
          !(may_be_own(&places->list[p]) && step->list[i].write && step->list[i].space == MIX_SLOT_ARENA))
        return false;
  for (int i = 0; i < step->count; i++)
    for (int p = 0; p < places->count; p++)
      if (meets(&places->list[p], &step->list[i])) places->list[p].own = places->list[p].closed = true;
  for (int i = 0; i < step->count; i++) {
    const mix_range_access *access = &step->list[i];
    int place = find(places, access);
    if (place < 0) places->list[place = places->count++] = (mix_band_place){.range = *access};
    places->list[place].written = places->list[place].written || access->write;
    if (access->operand >= 0)
      places->operands[places->operand_count++] = (mix_band_operand){member, access->operand, place};
  }
  places->apart += bytes_of_step(step);
  return true;
}

static const mix_range_access *find_overlap(const mix_access_set *set, const mix_range_access *range) {
  for (int i = 0; i < set->count; i++)
    if (overlap(&set->list[i], range)) return &set->list[i];
  return NULL;
}

/* Does a step that is no member read the value of the range? A write ends it, even of some of the bytes: see
 * meets. Operands are listed before results. */
static bool read_elsewhere(const mix_executable *executable, const mix_range_access *range,
                           const mix_access_set *later, int end, mix_access_set *memory) {
  const mix_range_access *access = find_overlap(later, range);
  for (int i = end; !access && i < executable->plan->step_count; i++) {
    mix_step_accesses(executable, i, memory);
    access = find_overlap(memory, range);
  }
  return access && !access->write;
}

void mix_band_places_own(mix_band_places *places, const mix_executable *executable,
                         const mix_access_set *later, int end, mix_access_set *memory) {
  for (int p = 0; p < places->count; p++) {
    mix_band_place *place = &places->list[p];
    if (!place->own && may_be_own(place) && !read_elsewhere(executable, &place->range, later, end, memory))
      place->own = true;
  }
}

size_t mix_band_places_bytes(const mix_band_places *places) {
  size_t bytes = 0;
  for (int p = 0; p < places->count; p++) {
    const mix_band_place *place = &places->list[p];
    const size_t one = place->range.in_order && !place->own ? place->range.end - place->range.begin : 0;
    bytes += !place->range.write * one + place->written * one;
  }
  return bytes;
}

size_t mix_band_row_bytes(const mix_band_places *places, int64_t rows) {
  size_t bytes = 0;
  for (int p = 0; p < places->count; p++)
    if (places->list[p].range.in_order)
      bytes += (places->list[p].range.end - places->list[p].range.begin) / (size_t)rows;
  return bytes;
}
