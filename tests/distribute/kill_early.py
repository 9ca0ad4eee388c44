#!/usr/bin/env python3
"""kill_early.py FLAVOR COUNT SEED PROGRAM...: jobs of PROGRAM one of whose ranks is killed while they start.

All ranks of every job must end by themselves within the limit while ranks meet and what a launcher takes to
end processes, and not as if nothing had happened. The delays come from the seed; from one job to the next
there are two ranks or three, and another rank is the victim. Prints each job that did not end, and the
longest time of the others. Open MPI's mpirun 4.1.4 at times does not end itself although it has ended all
ranks ("PMIX ERROR: UNREACHABLE"): these are counted, and ended here."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 10  # MIXTAPE_MPI_TIMEOUT
END = 15  # seconds more, of a launcher on a busy machine
START = 0.6  # seconds in which the victim is killed: on an idle machine ranks have met after 0.4 to 1


def environment():
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMP_NUM_THREADS="1", MIXTAPE_MPI_TIMEOUT=str(LIMIT), ASAN_OPTIONS="detect_leaks=0")


def launcher(flavor):
    if flavor == "openmpi":
        return ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
    return ["mpirun.mpich"]


def descendants(process):
    """All processes under one, nearest first."""
    parents = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as file:
                parents.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
        except (OSError, ValueError, IndexError):
            continue
    found = [process]
    for one in found:
        found.extend(parents.get(one, []))
    return found[1:]


def is_alive(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"


def of_program(processes, program, rank=None):
    """Those that run the program, as this rank or as any."""
    found = []
    for process in processes:
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            own = os.path.realpath(f"/proc/{process}/exe") == os.path.realpath(program) and is_alive(process)
        except OSError:
            continue
        names = [b"PMI_RANK=%d", b"OMPI_COMM_WORLD_RANK=%d"]
        if own and (rank is None or any(name % rank in variables for name in names)):
            found.append(process)
    return found


def kill_rank(job, rank, program, choose):
    """Kills one process of the rank, as soon as there is one. False: the job ended before."""
    while job.poll() is None:
        victims = of_program(descendants(job.pid), program, rank)
        if victims:
            os.kill(choose.choice(victims), signal.SIGKILL)
            return True
        time.sleep(0.002)
    return False


def end_all(job):
    for process in descendants(job.pid) + [job.pid]:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    job.wait()


def wait_for_end(job, program):
    """"ended", "launcher" if that alone is left, or "ranks"."""
    end = time.monotonic() + LIMIT + END
    while time.monotonic() < end:
        if job.poll() is not None:
            return "ended"
        time.sleep(0.05)
    return "ranks" if of_program(descendants(job.pid), program) else "launcher"


def try_once(flavor, program, choose):
    """How the job ended, and after how many seconds. "ranks" also if it looks like success, or if a launcher
    that is to end itself is left."""
    ranks, delay = choose.choice([2, 3]), choose.uniform(0, START)
    rank = choose.randrange(ranks)
    with tempfile.TemporaryFile() as output:
        job = subprocess.Popen(launcher(flavor) + ["-n", str(ranks)] + program, stdin=subprocess.DEVNULL,
                               stdout=output, stderr=subprocess.STDOUT, env=environment())
        time.sleep(delay)
        killed = kill_rank(job, rank, program[0], choose)
        begin = time.monotonic()
        outcome = wait_for_end(job, program[0])
        seconds = time.monotonic() - begin
        end_all(job)
        if outcome == "launcher" and flavor != "openmpi":
            outcome = "ranks"
        if outcome == "ranks" or not killed or job.returncode == 0:
            output.seek(0)
            print(f"rank {rank} of {ranks} after {delay:.3f} s, killed: {killed}, left: {outcome}, exit "
                  f"code {job.returncode}\n{output.read().decode(errors='replace')}", flush=True)
            outcome = "ranks"
        return outcome, seconds


def main():
    flavor, count, seed, program = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    choose = random.Random(seed)
    jobs = [try_once(flavor, program, choose) for _ in range(count)]
    ended = [seconds for outcome, seconds in jobs if outcome == "ended"]
    left = sum(outcome == "ranks" for outcome, _ in jobs)
    print(f"{flavor}: of {count} jobs {count - left} ended, {count - left - len(ended)} of them without "
          f"their launcher; the last one after {max(ended, default=0):.1f} s")
    return left > 0


if __name__ == "__main__":
    sys.exit(main())
