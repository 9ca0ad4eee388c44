/* What tests/distribute/local_part.c has. */
#ifndef TESTS_DISTRIBUTE_LOCAL_PART_H
#define TESTS_DISTRIBUTE_LOCAL_PART_H

int local_part_begin(void); /* starts MPI; the Fortran handle of its world */
void local_part_end(void);

#endif
