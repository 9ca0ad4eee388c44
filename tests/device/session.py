"""Parts of a session on a device: their time limits, their commands, and one JSON after each part."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

TAIL = 2000  # characters of a command's output that a failed part keeps
SHORT_SHARES = 16  # a short run takes one of so many shares of the cases


class LeftOut(Exception):
    """The part cannot run here; the text says why."""


class Failed(Exception):
    """The part ran and something was wrong."""


class Part:
    """`function(session)` returns what goes into the JSON. `seconds`: its limit; it begins only if `least`
    seconds of the call are left."""

    def __init__(self, name, function, seconds, least=None):
        self.name, self.function, self.seconds = name, function, seconds
        self.least = seconds / 3 if least is None else least


class Outcome:
    def __init__(self, code, out, err, seconds, timed_out):
        self.code, self.out, self.err, self.seconds, self.timed_out = code, out, err, seconds, timed_out

    def json(self):
        """The JSON object in the output, which may follow other lines."""
        return json.loads(self.out[self.out.index("{"):])


class Session:
    def __init__(self, options):
        self.begin = time.monotonic()
        self.carried = options.carried.resolve()
        self.device, self.short, self.call = options.device, options.short, options.call
        self.end = self.begin + options.seconds
        self.part_end = self.end
        self.out = options.out.resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="first_hour-"))
        self.results, self.partial = {}, None
        self.environment = dict(
            os.environ, LD_LIBRARY_PATH=str(self.carried / "lib"), MIXTAPE_DEVICE=self.device,
            MIXTAPE_TESTS_DIR=str(self.carried / "tests"), MIXTAPE_XLA_CACHE="off",
            MIXTAPE_PROGRAM=str(self.carried / "bin" / "mixtape"), TMPDIR=str(self.scratch))
        if self.device.startswith("xla:"):
            self.environment["MIXTAPE_PJRT_PLUGIN"] = str(pathlib.Path(self.device[4:]).resolve())
            self.environment["MIXTAPE_DEVICE"] = self.device = "xla"

    @property
    def on_gpu(self):
        return self.device.startswith("cuda")

    def left(self):
        """Seconds that the part at work may still take."""
        return self.part_end - time.monotonic()

    def keep(self, value):
        """What the part has found so far, which stays if its time ends."""
        self.partial = value

    # ---- commands ----

    def command(self, words, environment=None, seconds=None, check=True):
        """Runs a command of the session's environment. Failed if it ends with an error and `check`."""
        limit = max(1, min(self.left(), seconds or self.left()))
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.PIPE, cwd=self.scratch, start_new_session=True,
                                   env={**self.environment, **(environment or {})}, errors="replace")
        try:
            out, err = process.communicate(timeout=limit)
            timed_out = False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            timed_out = True
        outcome = Outcome(process.returncode, out, err, time.monotonic() - begin, timed_out)
        if check and timed_out:
            raise Failed(f"{words[0]}: over {limit:.0f} s; {(out + err)[-TAIL:]}")
        if check and outcome.code:
            raise Failed(f"{' '.join(map(str, words))}: {outcome.code}; {(out + err)[-TAIL:]}")
        return outcome

    def mixtape(self, *words, **options):
        return self.command([self.carried / "bin" / "mixtape", *words], **options)

    def python(self, script, *words, **options):
        """A script of this folder, by the machine's Python and without the libraries that were carried."""
        environment = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
        return self.command(["python3", self.carried / "device" / script, *words], environment, **options)

    def run_shares(self, program, variable, environment):
        """Runs a test program that was carried as several processes, each with its share K/N of the cases in
        `variable`; {share} in the environment is K. Their outputs; Failed if time ends before all have."""
        count = 1 if self.short else min(8, os.cpu_count() or 1)
        running = []
        for share in range(1, count + 1):
            own = {key: value.format(share=share) for key, value in environment.items()}
            own[variable] = f"{share}/{SHORT_SHARES if self.short else count}"
            log = open(self.scratch / f"{program}-{share}.log", "w+", errors="replace")
            running.append((log, subprocess.Popen([self.carried / "bin" / program], cwd=self.scratch,
                                                  stdout=log, stderr=log, start_new_session=True,
                                                  env={**self.environment, **own})))
        late = 0
        for _, process in running:
            try:
                process.wait(max(0.1, self.left()))
            except subprocess.TimeoutExpired:
                late += 1
                os.killpg(process.pid, 9)
                process.wait()
        texts = []
        for log, _ in running:
            log.seek(0)
            texts.append(log.read())
            log.close()
        if late:
            self.keep({"unfinished": [text[-TAIL:] for text in texts]})
            raise Failed(f"time ended before {late} of {count} shares of {program} did")
        return texts

    # ---- parts ----

    def run_part(self, part):
        now = time.monotonic()
        if self.end - now < part.least:
            self.record(part.name, "left out", f"{self.end - now:.0f} s are left of the call", now)
            return
        # A short run shows that a part works; its machine may be slow.
        self.part_end, self.partial = self.end if self.short else min(self.end, now + part.seconds), None
        try:
            self.record(part.name, "done", part.function(self), now)
        except LeftOut as reason:
            self.record(part.name, "left out", str(reason), now)
        except Exception as error:  # a part that breaks must not take the others with it
            text = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
            self.record(part.name, "failed", {"error": text, "so_far": self.partial}, now)

    def record(self, name, state, result, begin):
        entry = {"state": state, "seconds": round(time.monotonic() - begin, 1), "result": result}
        self.results[name] = entry
        print(json.dumps({name: entry}), flush=True)
        path = self.out / f"call{self.call}.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(self.results, indent=1) + "\n")
        fresh.replace(path)

    def finish(self):
        shutil.rmtree(self.scratch, ignore_errors=True)
        states = [entry["state"] for entry in self.results.values()]
        print(f"first_hour: {states.count('done')} done, {states.count('failed')} failed, "
              f"{states.count('left out')} left out, {time.monotonic() - self.begin:.0f} s", flush=True)
        return 1 if "failed" in states else 0
