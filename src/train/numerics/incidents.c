/* Incidents of following steps, which the report names as one. */
#include "train/numerics/numerics.h"

static bool follows(const mix_numerics_incident *a, const mix_numerics_incident *b) {
  return a->entry == b->entry && a->forward == b->forward && a->applied == b->applied && a->nan == b->nan &&
         b->step - a->step == 1;
}

void mix_numerics_run_of_incidents(const mix_numerics *r, int index, int *first, int *last) {
  for (*first = index; *first > 0 && follows(&r->incidents[*first - 1], &r->incidents[*first]); --*first)
    continue;
  for (*last = index;
       *last + 1 < r->incident_count && follows(&r->incidents[*last], &r->incidents[*last + 1]); ++*last)
    continue;
}
