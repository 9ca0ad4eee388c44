/* The host of 16_in_situ: its processes, and a field of which each has some rows. With -DWITH_MPI it is an
 * MPI program, which starts and ends MPI itself; without, one process. */
#ifndef HOST_H
#define HOST_H

#ifdef WITH_MPI
#include <mpi.h>
#endif

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 48, HALO = 2, WIDTH = CELLS + 2 * HALO }; /* a square of cells, closed to a torus */

typedef struct host {
  int rank, ranks;
  int rows;               /* of this rank */
  float (*field)[WIDTH];  /* rows + 2 HALO, of which the host's own begin at [HALO][HALO] */
  float (*former)[WIDTH]; /* the field before the latest steps */
} host;

/* ---- processes ---- */

static void host_begin(host *h, int *argc, char ***argv) {
  *h = (host){.ranks = 1};
#ifdef WITH_MPI
  int level;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &h->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &h->ranks);
#else
  (void)argc, (void)argv;
#endif
}

static void host_end(host *h) {
  free(h->field);
  free(h->former);
#ifdef WITH_MPI
  MPI_Finalize();
#endif
}

/* Ends all processes. */
static void host_fail(const host *h, const char *what, const char *why) {
  fprintf(stderr, "rank %d: %s: %s\n", h->rank, what, why);
#ifdef WITH_MPI
  MPI_Abort(MPI_COMM_WORLD, 1);
#endif
  exit(1);
}

/* The blocks of all ranks on rank 0, one after the other. */
static void host_gather(const void *own, int bytes, void *all) {
#ifdef WITH_MPI
  MPI_Gather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
  memcpy(all, own, (size_t)bytes);
#endif
}

static void host_scatter(const void *all, int bytes, void *own) {
#ifdef WITH_MPI
  MPI_Scatter(all, bytes, MPI_BYTE, own, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
  memcpy(own, all, (size_t)bytes);
#endif
}

/* From rank 0. */
static void host_broadcast(void *data, int bytes) {
#ifdef WITH_MPI
  MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
  (void)data, (void)bytes;
#endif
}

static void host_sum(double *values, int count) {
#ifdef WITH_MPI
  MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#else
  (void)values, (void)count;
#endif
}

/* ---- the field ---- */

/* Rows of other ranks, then columns of the other side. */
static void host_fill_halo(host *h) {
  float(*u)[WIDTH] = h->field;
#ifdef WITH_MPI
  const int before = (h->rank + h->ranks - 1) % h->ranks, after = (h->rank + 1) % h->ranks;
  const int count = HALO * WIDTH;
  MPI_Sendrecv(u[HALO], count, MPI_FLOAT, before, 1, u[HALO + h->rows], count, MPI_FLOAT, after, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(u[h->rows], count, MPI_FLOAT, after, 2, u[0], count, MPI_FLOAT, before, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
#else
  memcpy(u[HALO + h->rows], u[HALO], sizeof u[0] * HALO);
  memcpy(u[0], u[h->rows], sizeof u[0] * HALO);
#endif
  for (int i = 0; i < h->rows + 2 * HALO; i++) {
    memcpy(u[i], u[i] + CELLS, sizeof(float[HALO]));
    memcpy(u[i] + HALO + CELLS, u[i] + HALO, sizeof(float[HALO]));
  }
}

/* Waves of several lengths, positive everywhere. */
static void host_set_field(host *h) {
  const size_t lines = (size_t)(h->rows + 2 * HALO);
  h->field = calloc(lines, sizeof *h->field);
  h->former = calloc(lines, sizeof *h->former);
  if (!h->field || !h->former) host_fail(h, "the field", "out of memory");
  for (int i = 0; i < h->rows; i++)
    for (int j = 0; j < CELLS; j++) {
      const double y = 6.283185307179586 * (h->rank * h->rows + i) / CELLS, x = 6.283185307179586 * j / CELLS;
      h->field[HALO + i][HALO + j] =
          (float)(1 + 0.3 * sin(x) * cos(y) + 0.2 * sin(3 * x + y) + 0.1 * cos(5 * y));
    }
  host_fill_halo(h);
}

/* Burgers' equation u_t + u (u_x + u_y) = nu (u_xx + u_yy), upwind and explicit. */
static void host_step(host *h) {
  static float next[CELLS][CELLS];
  float(*u)[WIDTH] = h->field;
  for (int i = HALO; i < HALO + h->rows; i++)
    for (int j = HALO; j < HALO + CELLS; j++) {
      const float c = u[i][j], up = u[i - 1][j], left = u[i][j - 1];
      next[i - HALO][j - HALO] =
          c - 0.2f * c * (2 * c - up - left) + 0.02f * (up + left + u[i + 1][j] + u[i][j + 1] - 4 * c);
    }
  for (int i = 0; i < h->rows; i++) memcpy(u[HALO + i] + HALO, next[i], sizeof next[i]);
  host_fill_halo(h);
}

/* Two steps, which a cell's neighbours within two cells decide. */
static void host_advance(host *h) {
  memcpy(h->former, h->field, sizeof *h->field * (size_t)(h->rows + 2 * HALO));
  host_step(h);
  host_step(h);
}

#endif
