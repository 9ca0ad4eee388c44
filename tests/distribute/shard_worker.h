/* Tasks of worker.c about optimizers whose state is divided among the ranks. */
#ifndef TESTS_DISTRIBUTE_SHARD_WORKER_H
#define TESTS_DISTRIBUTE_SHARD_WORKER_H

/* TASK [FOLDER]: 0, or 1 after a message. */
int shard_task(int argc, char **argv);

#endif
