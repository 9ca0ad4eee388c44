/* Tasks of worker.c about whose rows the data of the ranks are. */
#ifndef TESTS_DISTRIBUTE_ROWS_WORKER_H
#define TESTS_DISTRIBUTE_ROWS_WORKER_H

/* TASK RANKS FOLDER: what that many ranks compute, on them or in one process. Each writes its logs to
 * FOLDER/RANK.log and its weights to FOLDER/RANK.npz. Those of mismatch keep a checkpoint there. */
int rows_task(int argc, char **argv);

#endif
